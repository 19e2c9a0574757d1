"""Times at which SGD leaves a start that is at rest but unstable, such as one that knows nothing of the features.

In the limit overlaps stay there for ever. At finite N they fluctuate by O(1/sqrt(N)), from the noise of the steps and
of a random start, and this grows along the directions that are unstable until it is of order 1: after a time of order
log(N)/(2 j), where j is the largest growth rate.
"""

from __future__ import annotations

import numpy as np

from meanfield.errors import InputError
from meanfield.families.update_rule.order_parameters.equations import Equations
from meanfield.families.update_rule.order_parameters.fluctuations import fluctuations
from meanfield.families.update_rule.order_parameters.trajectory import (
    check_order_parameters,
    places_along,
    resolved,
)
from meanfield.families.update_rule.problem import Problem
from meanfield.numerics.exact_products import root
from meanfield.numerics.ode import first_times
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

ESCAPED = 0.15
"""Length of the change of R from which a run counts as escaped: growth is still linear there."""

QUANTILES = np.array([0.1, 0.5, 0.9])
"""Shares of runs whose escape times results hold."""

SAMPLES = 2**14
"""Number of random deviations: quantiles of their lengths are off by 1 %, and times by 0.01/j."""


@solver
def predict_escape(problem: Problem, random_start: bool = False) -> Solved:
    """Escape from a start at which R is at rest but unstable: when runs of SGD at finite N leave it.

    The covariance of R over runs grows along the path of the limit, on which R stays where it is, and a run has escaped
    once the linearised change of its R is 0.15 long. At large N the time is log(N)/(2 j) and a random number, with the
    growth rate j of the start.

    Parameters
    ----------
    problem : Problem
        With `particles.dimension`, N, and a start at which the limit does not move R; Q and side variables may move.
    random_start : bool
        Whether overlaps with features scatter at the start as those of random vectors do, by sqrt(Q/N). By default all
        runs begin with those of the problem, as `meanfield.simulate_sgd` does.

    Returns
    -------
    xarray.Dataset
        Order parameters of the limit; `deviation`, the length of the linearised change of R at that N, root mean
        square over runs, with its error; its growth rate `deviation_rate`; and the times by which 10, 50 and 90 % of
        runs have escaped, NaN if later than the end.

    Raises
    ------
    InputError
        If there are no features, the order parameters do not close, R leaves the start by itself, or fluctuations are
        not known.

    Notes
    -----
    Source: update_rules.md, section 6.
    """
    check_order_parameters(problem)
    if not problem.features:
        raise InputError("features is empty, and an escape is one of overlaps with features; add [[features]]")
    equations, _, solution, found, _ = resolved(Equations(problem), problem.order_parameters.tolerance, {})
    moved = np.nanmax(np.abs(found["R"] - found["R"][0]))
    if moved > 1e-3:  # more than a start at rest moves
        raise InputError(
            f"features.initial_overlap: R moves by {moved:.2g} in the limit, so that runs leave this start without "
            "their fluctuations; take order_parameters, or a start at rest, such as initial_overlap = 0"
        )
    start = _random_start(equations, problem) if random_start else None
    try:
        covariances, interrupted = fluctuations(equations, solution, places_along(equations, solution.values), start)
    except InputError as reason:
        raise InputError(f"fluctuations at the start are not known: {reason}") from reason
    N, numbers = problem.particles.dimension, found["R"][0].size
    C, error = (covariances[name].reshape(-1, numbers, numbers) / N for name in ("R_covariance", "R_covariance_error"))
    deviation = np.sqrt(np.trace(C, axis1=1, axis2=2))
    # Errors are stated where C is largest, at the end. It grows exponentially, so that they are relative to its size.
    relative = 0.5 * np.nanmax(np.trace(error, axis1=1, axis2=2)) / np.nanmax(deviation**2)
    times = first_times(problem.time.outputs_at, _lengths(C), np.full(len(QUANTILES), ESCAPED))
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.gradient(np.log(deviation), problem.time.outputs_at)
    arrays = {
        "time": problem.time.outputs_at,
        **{name: values for name, values in found.items() if name in ("R", "Q", "v")},
        "deviation": deviation,
        "deviation_error": relative * deviation,
        "deviation_rate": np.where(np.isfinite(rate), rate, np.nan),
        "quantile": QUANTILES,
        "escape_time_quantile": times,
    }
    late = np.isnan(times[1]) and solution.status == "complete"
    warning = f"half of the runs escape after t = {problem.time.stop:g}, if at all; raise time.stop" if late else ""
    status = "interrupted" if interrupted else solution.status
    names = {name: values for name, values in problem.names.items() if name == "side_name"}
    return Solved("escape", arrays | names, status, warning)


def _random_start(equations: Equations, problem: Problem) -> FloatArray:
    """N times the covariance of packed overlaps of random vectors with features, and of no others."""
    state = equations.state(np.arange(len(equations.start), dtype=float))
    C = np.zeros((len(equations.start),) * 2)
    for places in state.R.astype(int).T:
        C[np.ix_(places, places)] = problem.initial_Q - problem.initial_R @ problem.initial_R.T
    return C


def _lengths(C: FloatArray) -> FloatArray:
    """Lengths that shares `QUANTILES` of Gaussian deviations exceed, shape (times, shares); NaN where C is unknown."""
    z = np.random.default_rng(0).standard_normal((SAMPLES, C.shape[1]))
    found = np.full((len(C), len(QUANTILES)), np.nan)
    for row in np.flatnonzero(np.isfinite(C).all(axis=(1, 2))):
        found[row] = np.quantile(np.linalg.norm(z @ root(C[row]).T, axis=1), 1.0 - QUANTILES)
    return found
