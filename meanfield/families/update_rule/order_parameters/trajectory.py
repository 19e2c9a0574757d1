"""Trajectories of the order parameters of update rules, to a tolerance that the problem file names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.families.update_rule.initial_state import check_known, check_one_start, with_errors_of_start
from meanfield.families.update_rule.order_parameters.equations import Choices, Equations, Place, Rules
from meanfield.families.update_rule.order_parameters.errors import chosen_rule, errors_by, other_rules
from meanfield.families.update_rule.order_parameters.fluctuations import fluctuations, stretches_of
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.rates import tril_indices
from meanfield.families.update_rule.trial_calls import check_functions
from meanfield.mckean_vlasov.order_parameters import check_linear
from meanfield.numerics.linear_noise import NoiseInTime, noise_in_time
from meanfield.numerics.ode import Solution
from meanfield.numerics.refinement import missed
from meanfield.problems.base import check_problem
from meanfield.problems.phases import pieces_of
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

STEP_SHARE = 1e-2
"""Tolerance of a step in units of that of the result: errors of some ten steps add up."""

PILOT = 1e-3
"""Tolerance of the steps of a first path, which shows where averages are needed."""

LOOSER_STEP = 10.0
"""Factor of that tolerance for the solution whose difference states the error."""

AVERAGE_SHARE = 1e-2
"""Tolerance of averages in units of that of the result."""

TRIED = 5
"""Number of states along a path, both ends included, at which averages are tried."""


@solver
def solve_order_parameters(problem: Problem) -> Solved:
    """Order parameters of an update rule, with errors to a tolerance that the problem names.

    The averages that the limit needs are taken from the rule by quadrature over what it reads, as finely as they need
    at the start, at the end and in between. A second solution with coarser averages and looser steps states the error;
    where averages take random points, eight solutions with independent ones do. Nodes of a spectrum are doubled until
    this changes less than the tolerance; the change is part of the error.

    Parameters
    ----------
    problem : Problem
        With a linear prior.

    Returns
    -------
    xarray.Dataset
        `R`, `Q`, side variables `v` and `observables` with their errors; with `data.spectrum` also `R_noise` and
        `Q_noise`, overlaps that are weighted with the eigenvalues, and `R_rho`, `Q_rho` at the nodes `rho`.
        `overlap_covariance` is N times the covariance of all order parameters over runs of SGD to leading order, with
        its parts `R_covariance` and so on, where it is known; `provenance` says why it is not. The attribute `status`
        is `complete`, `interrupted` or `failed: ...`; output times that were not reached are NaN. The attribute
        `warning` says so where the tolerance was not met.

    Raises
    ------
    InputError
        If the prior is not linear, or averages of the rule do not exist or cannot be resolved.

    Notes
    -----
    All quantities are dimensionless. Source: update_rules.md, sections 2 to 4, 6 and 7.
    """
    check_order_parameters(problem)
    tolerance = problem.order_parameters.tolerance
    path = resolved(Equations(problem), tolerance, {})
    half = path.equations.with_nodes(0.5)
    before = path.found if half is path.equations else half.observe(*_path(half, path.choices, tolerance))
    last = np.inf
    # A change that does not fall with more nodes is one of steps.
    while tolerance < (change := _largest(errors_by([before], path.found))) < 0.5 * last:
        if (finer := path.equations.with_nodes(2.0)) is path.equations:
            break
        before, last = path.found, change
        path = resolved(finer, tolerance, path.choices)
    equations, choices, solution, found, _ = path
    errors: dict[str, FloatArray] = {}
    warning, status = "", solution.status
    kinds = dict.fromkeys(f"{choice.rule.kind}, {choice.rule.order} points" for choice in choices.values())
    details = {"averages": "; ".join(kinds)}
    if status == "complete":
        of_nodes = errors_by([before], found)
        errors = {name: error + of_nodes[name] for name, error in _errors(path, tolerance).items()}
        errors = with_errors_of_start(problem, errors)
        warning = missed("order parameters", _largest(errors), "order_parameters.tolerance", tolerance)
        try:
            check_one_start(problem)
            covariances, interrupted = fluctuations(equations, solution, places_along(equations, solution.values))
            found, status = found | covariances, "interrupted" if interrupted else status
        except InputError as error:
            details["fluctuations"] = f"not known, as {error}"
    arrays = {"time": problem.time.outputs_at} | problem.names | found | errors | equations.at_nodes(solution)
    return Solved("order_parameters", arrays, status, warning, details)


def state_in_time(problem: Problem) -> NoiseInTime:
    """Order parameters with their covariance over runs at and between all output times; see `meanfield.fit`.

    Raises
    ------
    InputError
        If they do not close, or their covariance is not known.
    """
    check_order_parameters(problem)
    check_one_start(problem)
    path = resolved(Equations(problem), problem.order_parameters.tolerance, {})
    equations, solution = path.equations, path.solution
    if solution.status != "complete":
        raise InputError(f"order parameters are needed at all output times, and are {solution.status}")
    _, linear = stretches_of(equations, solution, places_along(equations, solution.values))
    stretches = [(each.times, lambda t, each=each: (each.J(t), each.S(t))) for each in linear]

    def of_runs(runs: Any) -> FloatArray:
        R, Q = (runs[name].transpose("replica", "time", ...).values for name in ("R", "Q"))
        i, j = tril_indices(Q.shape[-1])
        v = [runs["v"].transpose("replica", "time", ...).values] if "v" in runs else []
        return np.concatenate([R.reshape(*R.shape[:2], -1), Q[..., i, j], *v], axis=-1)

    return noise_in_time(stretches, solution.times, solution.values, of_runs)


def check_order_parameters(problem: Problem) -> None:
    """Refuse problems whose order parameters do not close.

    Raises
    ------
    InputError
        If a prior is not linear, or a function fails in a trial call.
    """
    check_problem(problem, Problem)
    for piece in pieces_of(problem):
        check_linear(piece.problem.prior, "the density, or particles")
    check_known(problem, "order parameters", at_nodes=True)
    check_functions(problem)


class Resolved(NamedTuple):
    """Path with nodes and rules of quadrature that averages need along it.

    Parameters
    ----------
    equations : Equations
    choices : Choices
    solution : Solution
    found : dict of str to ndarray
        What the path has.
    coarse : dict of str to ndarray
        The same by the next coarser averages and looser steps.
    """

    equations: Equations
    choices: Choices
    solution: Solution
    found: dict[str, FloatArray]
    coarse: dict[str, FloatArray]


def resolved(equations: Equations, tolerance: float, known: Choices) -> Resolved:
    """Nodes and rules that averages need along the path, no coarser rules than known ones, and the path.

    They are tried along a path with the next coarser rules, which then states errors; one with long steps goes ahead.
    """
    share, places = AVERAGE_SHARE * tolerance, [(0.0, equations.start)]
    shortest = LOOSER_STEP * STEP_SHARE * tolerance
    step = max(PILOT, shortest)
    choices = equations.choose(places, share, known)
    equations = equations.with_enough_hidden_nodes(places, choices, share)
    while True:
        levels = equations.rules(choices, chosen_rule).levels
        coarse = equations.with_fewer_hidden_nodes()
        rules = coarse.rules(choices, lambda each: each.coarser)
        path = coarse.follow(rules, step)
        places = list(places_along(equations, path.values))
        choices = equations.choose(places, share, choices)
        finer = equations.with_enough_hidden_nodes(places, choices, share)
        same = step == shortest and equations.rules(choices, chosen_rule).levels == levels
        if path.status == "interrupted" or (same and finer.hidden_nodes <= equations.hidden_nodes):
            break
        equations, step = max(equations, finer, key=lambda each: each.hidden_nodes), shortest
    by_coarse = coarse.observe(rules, path)
    if path.status == "interrupted":
        return Resolved(equations, choices, path, by_coarse, by_coarse)
    rules, path = _path(equations, choices, tolerance)
    return Resolved(equations, choices, path, equations.observe(rules, path), by_coarse)


def _path(equations: Equations, choices: Choices, tolerance: float) -> tuple[Rules, Solution]:
    """Rules of quadrature of some choices, and the path with them."""
    rules = equations.rules(choices, chosen_rule)
    return rules, equations.follow(rules, STEP_SHARE * tolerance, dense=True)


def places_along(equations: Equations, path: FloatArray) -> Iterator[Place]:
    """Times and states at which averages are tried: the start, the last that was reached, and some in between."""
    reached = np.flatnonzero(np.isfinite(path).all(axis=1))
    for row in np.unique(reached[np.linspace(0, len(reached) - 1, TRIED).astype(int)]):
        yield float(equations.times[row]), path[row]


def _largest(errors: dict[str, FloatArray]) -> float:
    return max((float(error.max(initial=0.0)) for error in errors.values()), default=0.0)


def _errors(path: Resolved, tolerance: float) -> dict[str, FloatArray]:
    """Estimated errors by averages and steps."""
    others = other_rules(path.choices)
    if len(others) == 1:
        return errors_by([path.coarse], path.found)
    step, coarse = LOOSER_STEP * STEP_SHARE * tolerance, path.equations.with_fewer_hidden_nodes()
    rules = [path.equations.rules(path.choices, each) for each in others]
    return errors_by([coarse.observe(each, coarse.follow(each, step)) for each in rules], path.found)
