"""States of the order parameters of update rules at rest as a Dataset, with stability, errors and what they attract."""

from __future__ import annotations

from typing import Any

import numpy as np

from meanfield.arguments import as_whole
from meanfield.errors import InputError
from meanfield.families.update_rule.fixed_points.search import RestingStates, fixed_point_at, rest_from
from meanfield.families.update_rule.fixed_points.symmetries import Symmetries
from meanfield.families.update_rule.fixed_points.velocity import Velocity
from meanfield.families.update_rule.order_parameters.equations import Equations, Rules
from meanfield.families.update_rule.order_parameters.errors import chosen_rule, errors_by, other_rules
from meanfield.families.update_rule.order_parameters.trajectory import AVERAGE_SHARE, check_order_parameters
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.rule import arguments_of
from meanfield.numerics.growth_rates import FixedPoint
from meanfield.numerics.refinement import missed
from meanfield.process.progress import counted
from meanfield.results.solved import Solved, solver
from meanfield.results.states import stacked
from meanfield.typing import FloatArray

SEARCH_TOLERANCE = 1e-5
"""Tolerance of averages in the search; states that it finds are solved again with finer ones."""


@solver
def find_fixed_points(problem: Problem, starts: int = 0, seed: int = 0) -> Solved:
    """Fixed points of the order parameters: all that a search finds, with stability and errors.

    Newton's method goes from the start of the problem, from simple arrangements of students along features, and from
    random overlaps that vectors can have, until many starts bring nothing new. States that are images of each other,
    by exchanges and signs of students, features and side variables under which the equations do not change, are listed
    once, and so is each continuum of states.

    Parameters
    ----------
    problem : Problem
        With a linear prior, and numbers that do not change in time.
    starts : int
        Number of starts that are followed to what attracts them: students with the lengths of the problem and random
        directions.
    seed : int
        Seed of these.

    Returns
    -------
    xarray.Dataset
        Along `state`, those with fewer unstable directions first: `R`, `Q`, side variables `v` and `observables` with
        their errors, `residual`, eigenvalues, `stability`, `kind`, and `copies`, the number of images under symmetries,
        infinite in a continuum. With starts `region_share`, the share of them that one of the images attracts; others
        come to rest nowhere. The attribute `indices_add_up` says whether states pass a test of completeness, where
        there is one. No search can prove that it has found all.

    Raises
    ------
    InputError
        If the order parameters do not close, or the rule reads the time.

    Notes
    -----
    All quantities are dimensionless. Source: update_rules.md, section 6.
    """
    check_fixed_points(problem)
    as_whole(starts, "starts", "give a number of starts to follow, 0 for none", least=0)
    equations, tolerance = Equations(problem), problem.order_parameters.tolerance
    velocity = coarse_velocity(equations, max(SEARCH_TOLERANCE, AVERAGE_SHARE * tolerance))
    states = RestingStates(velocity, Symmetries(velocity))
    states.search()
    states.attractor(velocity.start[velocity.free])
    rng = np.random.default_rng(seed)
    ends = [states.attractor(velocity.random(rng)) for _ in counted(range(starts), "attractors", "start")]
    rows = {
        number: row
        for number in counted(range(len(states.x)), "fixed points", "state")
        if (row := solved_again(equations, states, number, AVERAGE_SHARE * tolerance)) is not None
    }
    arrays = stacked(list(rows.values()), "fixed_points", problem)
    if starts:
        arrays["region_share"] = np.array([ends.count(number) / starts for number in rows])
    order = np.lexsort((arrays["growth_rate"], arrays["unstable_directions"]))
    arrays = {name: values[order] for name, values in arrays.items()}
    lost = len(states.x) - len(rows)
    indices = None if lost else states.index_sum
    return Solved(
        "fixed_points",
        arrays | problem.names,
        warning="; ".join(_warnings(problem, arrays, indices, lost)),
        attributes={} if indices is None else {"indices_add_up": str(indices == 1.0).lower()},
        variable_attributes={"region_share": {"starts": starts, "seed": seed}} if starts else {},
    )


def check_fixed_points(problem: Problem) -> None:
    """Refuse problems without closed equations that are the same at all times.

    Raises
    ------
    InputError
    """
    check_order_parameters(problem)
    if problem.data.spectrum is not None:
        raise InputError(
            "data.spectrum: fixed points are found where all coordinates have one variance; leave it out, or take "
            "stationary for one student, or order_parameters with a late time.stop"
        )
    check_at_rest(problem)


def check_at_rest(problem: Problem) -> None:
    """Refuse rules that read the time.

    Raises
    ------
    InputError
    """
    for what, function in (each for kind in problem.kinds for each in problem.functions_of(kind)):
        if "t" in arguments_of(function, what):
            raise InputError(f"model.rule: {what} reads the time t, and nothing is at rest; write it without t")


def coarse_velocity(equations: Equations, tolerance: float) -> Velocity:
    """Velocity with averages that are good enough for a search."""
    choices = equations.choose([(0.0, equations.start)], tolerance, {})
    return Velocity(equations, equations.rules(choices, chosen_rule), tolerance)


def solved_again(equations: Equations, states: RestingStates, number: int, tolerance: float) -> dict[str, Any] | None:
    """Variables of a state by averages that are as fine as they need to be there; None if these have no such state."""
    x, coarse = states.symmetries.representative(states.x[number]), states.velocity
    try:
        places = [(0.0, coarse.embedded(x))]
        choices = equations.choose(places, tolerance, {})
        equations = equations.with_enough_hidden_nodes(places, choices, tolerance)
    except InputError:  # averages that cannot be resolved are no state of the problem
        return None
    fewer = equations.with_fewer_hidden_nodes()
    levels = [(equations, equations.rules(choices, chosen_rule))]
    levels += [(fewer, fewer.rules(choices, which)) for which in other_rules(choices)]
    velocities = [Velocity(*level, tolerance) for level in levels]
    found = [root for velocity in velocities if (root := solved_near(velocity, x)) is not None]
    point = fixed_point_at(velocities[0], found[0], number) if len(found) == len(levels) else None
    if point is None:
        return None
    here, *others = (
        measured(each, velocity, rules, root)
        for (each, rules), velocity, root in zip(levels, velocities, found, strict=True)
    )
    copies = np.inf if states.is_continuum(number) else states.symmetries.copies(x)
    return state_variables(velocities[0], point) | here | errors_by(others, here) | {"copies": copies}


def solved_near(velocity: Velocity, x: FloatArray) -> FloatArray | None:
    """State at rest near one of other averages."""
    root = rest_from(velocity, x)
    if root is None or np.abs(root - x).max() > 0.05 * (1.0 + np.abs(x).max()):  # from where coarser averages found it
        return None
    return root


def measured(equations: Equations, velocity: Velocity, rules: Rules, x: FloatArray) -> dict[str, FloatArray]:
    """Order parameters and observables at a state."""
    y = velocity.embedded(x)
    found = velocity.state(y)._asdict() | {"observables": equations.measured(rules, 0.0, y)}
    return {name: values for name, values in found.items() if values.size}


def state_variables(velocity: Velocity, point: FixedPoint) -> dict[str, Any]:
    """What the Jacobian says of a state."""
    return {
        "residual": np.abs(velocity(point.q)).max(),
        "growth_rate": point.eigenvalues[0].real,
        "unstable_directions": point.unstable_directions,
        "eigenvalue_real": point.eigenvalues.real,
        "eigenvalue_imag": point.eigenvalues.imag,
        "stability": np.int8(point.verdict),
        "kind": point.kind,
    }


def _warnings(problem: Problem, arrays: dict[str, Any], indices: float | None, lost: int) -> list[str]:
    """What is to be known of a search, in sentences."""
    found = []
    if not len(arrays["stability"]):
        found.append("no state at rest was found; solve the order parameters to see where they go")
    if lost:
        found.append(f"{lost} state(s) of coarse averages are not there with finer ones, and left out")
    if indices not in (1.0, None):
        found.append(f"states are missing: indices add up to {indices:g}, and those of all states to 1")
    tolerance = problem.order_parameters.tolerance
    errors = [values.max(initial=0.0) for name, values in arrays.items() if name.endswith("_error")]
    said = missed("fixed points", float(max(errors, default=0.0)), "order_parameters.tolerance", tolerance)
    return [*found, *([said] if said else [])]
