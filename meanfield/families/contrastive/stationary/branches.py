"""Branches of stationary states as one number of the problem varies."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.stationary.coordinates import Coordinates
from meanfield.families.contrastive.stationary.equations import StationaryEquations
from meanfield.families.contrastive.stationary.search import all_overlaps, check_features, resolved
from meanfield.families.contrastive.stationary.states import NO_STATE
from meanfield.families.contrastive.stationary.summary import stacked, summary
from meanfield.numerics.continuation import Branch, all_branches, by_difference
from meanfield.problems.problem_keys import check_range, with_value
from meanfield.process.progress import progress_bar
from meanfield.results.provenance import provenance
from meanfield.results.schema import build_dataset
from meanfield.typing import FloatArray

OF_THE_LIMIT = ("model", "features", "hidden", "augmentation", "prior")
"""Parts of a problem that stationary states depend on."""

MOST_RUNG = 2
"""Of the nodes in u along branches; `quadrature_error` says what they leave."""

MOST_KEPT = 200
"""Equations that are kept for values of the parameter."""


def continue_stationary_states(problem: Problem, key: str, start: float, stop: float, points: int = 41) -> xr.Dataset:
    """Branches of stationary states as a number of the problem goes from `start` to `stop`, around turning points too.

    Parameters
    ----------
    problem : Problem
        With one to three features.
    key : str
        What is varied, such as `prior.strength` or `features[0].hidden.second_moment`.
    start, stop : float
        Ends of its range, which are points of all branches that reach them.
    points : int
        Steps are so short that a branch without curvature has about that many points.

    Returns
    -------
    xarray.Dataset
        Along `point`: `parameter`, `branch`, `turning`, and what `find_stationary_states` says of a state besides its
        density. The attribute `key` of `parameter` is the key. `status` is `complete`, or `failed: ...` where no state
        was found.

    Raises
    ------
    InputError
        If there is no such key, it holds no real number, stationary states do not depend on it, or a value is not
        allowed.

    Notes
    -----
    Branches start from all states at both ends, and from states in between that no such branch leads to. A branch that
    ends inside the range does so where its density can no longer be normalised. Source: theory.md, section 6.
    """
    check_features(problem)
    check_range(problem, key, start, stop, points, OF_THE_LIMIT, "stationary states")
    started = time.perf_counter()
    family = _Family(problem, key, (min(start, stop), max(start, stop)))
    with progress_bar(1, "stationary states", "diagram") as bar:
        branches = all_branches(family, (start, stop), 1.0 / (points - 1))
        points_of = [
            _row(family, branch, number, i) for number, branch in enumerate(branches) for i in range(len(branch.p))
        ]
        rows = [row for row in points_of if row is not None]
        bar.update()
    nothing = {} if rows else {name: np.empty(0) for name in ("parameter", "branch", "turning")}
    arrays = stacked(rows, len(problem.features)) | nothing
    status = "complete" if rows else NO_STATE
    result = build_dataset("continuation", problem, arrays, status, provenance(time.perf_counter() - started, key=key))
    result["parameter"].attrs["key"] = key
    return result


class _Family:
    """The equations of stationary states for every value of a number of the problem; see `Family`."""

    def __init__(self, problem: Problem, key: str, limits: tuple[float, float]) -> None:
        self.limits = limits
        self.rung = 0
        self._problem = problem
        self._key = key
        self._closure = Closure(problem) if key.startswith("prior.") else None
        self._kept: dict[float, StationaryEquations] = {}

    def problem(self, p: float) -> Problem:
        """The problem at a value."""
        return with_value(self._problem, self._key, p)

    def closure(self, p: float) -> Closure:
        """Its closure, which no prior changes."""
        return self._closure or Closure(self.problem(p), tabulated=False)

    def at(self, p: float) -> StationaryEquations:
        """The equations at a value; those that were made last are kept."""
        if p not in self._kept:
            made = StationaryEquations(self.problem(p), self.closure(p), Coordinates(self._problem, self.rung))
            if self._kept:
                made.hint = self._kept[next(reversed(self._kept))].hint
            if len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[p] = made
        return self._kept[p]

    def equations(self, x: FloatArray, p: float) -> tuple[FloatArray, FloatArray]:
        """F and dF/dq."""
        return self.at(p)(x)

    def by_parameter(self, x: FloatArray, p: float, values: FloatArray) -> FloatArray:
        """dF/dp."""
        return by_difference(lambda p: self.at(p)(x)[0], p, values, self.limits)

    def search(self, p: float, known: Sequence[FloatArray] = ()) -> list[FloatArray]:
        """All overlaps; at the ends of the range with nodes that resolve them as far as branches can afford."""
        if p not in self.limits:
            return all_overlaps(self.at(p), known)
        equations, overlaps = resolved(self.problem(p), self.closure(p))
        needed = min(equations.coordinates.rung, MOST_RUNG)
        if needed > self.rung:
            self.rung = needed
            self._kept.clear()
        return overlaps


def _row(family: _Family, branch: Branch, number: int, i: int) -> dict[str, Any] | None:
    equations = family.at(float(branch.p[i]))
    state = equations.state(branch.x[i])
    if state is None:
        return None
    names = {"parameter": branch.p[i], "branch": number, "turning": np.int8(branch.turning[i])}
    return summary(equations, state) | names
