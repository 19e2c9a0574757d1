"""Datasets of states: their variables stacked into arrays, and the driver that follows states along a parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from meanfield.numerics.continuation import SearchableEquations, all_branches
from meanfield.numerics.continuation.roots import TOLERANCE
from meanfield.problems.base import Problem
from meanfield.problems.known_families import family_of
from meanfield.problems.problem_keys import check_range, with_value
from meanfield.process.progress import counted
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    import xarray as xr


class StateEquations(SearchableEquations, Protocol):
    """Equations whose roots are states of a problem, for every value of one of its numbers."""

    def variables(self, x: FloatArray, p: float) -> Mapping[str, Any] | None:
        """Variables of the state at a root x; None where there is no such state after all."""


@solver
def continue_states(
    problem: Problem,
    key: str,
    start: float,
    stop: float,
    points: int,
    *,
    kind: str,
    states: str,
    parts: Sequence[str],
    equations: Callable[[tuple[float, float]], Sequence[StateEquations]],
    none_found: Callable[[], str] = lambda: "complete",
    warning: Callable[[Any, Mapping[str, Any]], str] = lambda made, arrays: "",
    tolerance: float = TOLERANCE,
    at: Callable[[Any, str, float], Any] = with_value,
) -> Solved:
    """Branches of states as a number of the problem goes from `start` to `stop`, around turning points too.

    Parameters
    ----------
    key : str
        Key of the number that is varied.
    start, stop : float
        Ends of its range, which are points of all branches that reach them.
    points : int
        Steps are so short that a branch without curvature has about that many points.
    kind : str
        The attribute `method` of the result.
    states : str
        Name of the states in messages, such as `fixed points`.
    parts : sequence of str
        Tables of a problem file that the states depend on.
    equations : callable
        The equations of the states, given the range of the number, increasing: several where there are subspaces with
        states of their own. They are made after the checks.
    none_found : callable
        Gives the attribute `status` of a result without points.
    warning : callable
        Gives the attribute `warning` from the equations and the arrays of the result.
    tolerance : float
        Largest component of F at a root.
    at : callable
        Problem with a value of the number, if others change with it.

    Returns
    -------
    xarray.Dataset
        Along `point`: `parameter`, `branch`, `turning` and the variables of a state. The attribute `key` of
        `parameter` is the key.

    Raises
    ------
    InputError
        If there is no such key, it holds no real number, the states do not depend on it, or a value is not allowed.
    """
    check_range(problem, key, start, stop, points, parts, states, at)
    made = equations((min(start, stop), max(start, stop)))
    longest = 1.0 / (points - 1)
    branches = [(each, b) for each in made for b in all_branches(each, (start, stop), longest, tolerance)]
    places = [
        (number, each, *point)
        for number, (each, branch) in enumerate(branches)
        for point in zip(branch.x, branch.p, branch.turning, strict=True)
    ]
    rows = [
        {**variables, "parameter": p, "branch": number, "turning": np.int8(turning)}
        for number, each, x, p, turning in counted(places, states, "point")
        if (variables := each.variables(x, float(p))) is not None
    ]
    arrays = stacked(rows, kind, problem)
    first, last = (at(problem, key, value).labels for value in (start, stop))
    return Solved(
        kind,
        arrays,
        "complete" if rows else none_found(),
        warning(made, arrays),
        effort={"key": key},
        variable_attributes={"parameter": {"key": key}},
        without=_varied(problem, first, last),
    )


def _varied(problem: Problem, first: Mapping[str, float], last: Mapping[str, float]) -> list[str]:
    """Names of variables that repeat a number of the problem which is not the same at both ends."""
    known = family_of(problem).variables
    return [name for name in known if first.get(known[name].label) != last.get(known[name].label)]


def stacked(rows: Sequence[Mapping[str, Any]], kind: str, problem: Problem) -> dict[str, Any]:
    """Variables of all states, each with one more leading dimension.

    Parameters
    ----------
    rows : sequence of mapping
        The variables of each state. Without any there are those that results of the kind must have along its leading
        dim, which has the length 0, as dims have of which the problem does not know the length.
    kind : str
        A kind of results that the family of the problem declares.
    problem : Problem
    """
    if rows:
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}
    family, held = family_of(problem), problem.fixed_dims
    declared, found = family.all_kinds[kind], {}
    for name in declared.variables:
        known = family.all_variables[name]
        dims = declared.dims(known, held=held)
        if declared.leading in dims and family.exists(known, held):
            sizes = [held.get(dim, 0) if dim != declared.leading else 0 for dim in dims]
            found[name] = np.empty(sizes, dtype=str if known.words else float)
    return found


def branches_of(result: xr.Dataset) -> list[xr.Dataset]:
    """Points of each branch of a result of `continue_states`, in the order of their numbers."""
    number = result["branch"].values
    return [result.isel(point=np.flatnonzero(number == n)) for n in np.unique(number)]
