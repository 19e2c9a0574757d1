"""Problems with one feature that the paper's figures 2, 4, 6, 10 and 11 show, their fixed points, and SGD on them.

All is said of Q = q^2, as in the paper, and of the drift h(Q) = (dQ/dt)/tau, which knows tau and m by tau/m alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline

import meanfield
from meanfield.families.contrastive.fixed_points.points import find_fixed_points
from meanfield.families.contrastive.learnability.learnability import learnability
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.problem import Problem
from meanfield.problems.file import problem_from

LEARNING_RATE, BATCH_SIZE = 0.094, 10
"""Learning rate and batch size, of which the paper prints neither. Only tau/m between 0.0079 and 0.01 shows what it
says of m2 = 0.9, 1.0 and 1.1 in figures 2 and 6: below, there is a recovery state at 0.9 too; above, Q = 0 is stable at
1.1. And only 0.0094 lets independent noise end recovery at eta = 0.2, as it says of figure 10."""

NON_ZERO = 0.2
"""Probability of c != 0, as the moments printed for figures 3 and 9 of the paper imply: m4 = m2^2/0.2."""

SECOND_MOMENTS = (0.9, 1.0, 1.1)
"""Second moments of figures 2 and 6."""

RESOLUTION = 1e-5
"""Resolution of the value at which recovery ends."""

RUNGE_KUTTA_STEPS = 10
"""Number of Runge-Kutta steps over a time in which Q changes by a few percent: exact to rounding."""


class Ensemble(NamedTuple):
    """SGD that a study runs: time, dimension and replicas."""

    stop: float
    dimension: int
    replicas: int
    outputs: int = 2


class States(NamedTuple):
    """Fixed points of Q; Q = 0 always is one.

    Parameters
    ----------
    growth : float
        h'(0): Q = 0 is stable if it is negative.
    recovery : float
        The largest stable Q > 0; NaN if there is none.
    boundary : float
        Starts above it lead there: the unstable state below, or 0 if Q = 0 is unstable; NaN if there is no recovery.
    """

    growth: float
    recovery: float
    boundary: float


def problem_with(
    m2: float = 1.0, eta: float = 0.0, correlation: float = 0.0, non_zero: float = NON_ZERO, **model: Any
) -> Problem:
    """A three-point hidden variable, and views with noise of variance eta; `model` changes the table of that name."""
    data = {
        "model": {"activation": "quadratic", "learning_rate": LEARNING_RATE, "batch_size": BATCH_SIZE} | model,
        "features": [
            {
                "hidden": {"law": "three_point", "second_moment": m2, "fourth_moment": m2**2 / non_zero},
                "initial_overlap": 0.0,
            }
        ],
        "augmentation": {"variance": [eta, eta], "correlation": correlation},
        "time": {"stop": 1.0, "outputs": 2},
    }
    return problem_from(data)


def started(problem: Problem, Q: float, run: Ensemble, record: str = "statistics") -> Problem:
    """The problem with a start at Q and SGD to follow it."""
    data = problem.model_dump(exclude_none=True)
    data["features"][0]["initial_overlap"] = float(np.sqrt(Q))
    data["time"] = {"stop": run.stop, "outputs": run.outputs}
    data["particles"] = {
        "method": "chain",
        "dimension": run.dimension,
        "replicas": run.replicas,
        "record": record,
    }
    return problem_from(data)


def drift(problem: Problem, Q: np.ndarray) -> np.ndarray:
    """h(Q) = (dQ/dt)/tau of the reduced ODE, in which dQ/dt = 2 q b(q)."""
    q = np.sqrt(Q)
    return 2 * q * VectorField(problem)(q[:, None])[:, 0] / problem.model.learning_rate


def find_states(problem: Problem) -> States:
    """Fixed points, of which those of negative q are copies: the law of c is symmetric."""
    points = find_fixed_points(VectorField(problem)).points
    growth = 2 * float(learnability(problem).growth_rates[0]) / problem.model.learning_rate
    recovery = max((point.q[0] for point in points if point.verdict == 1), default=0.0)
    if recovery == 0.0:
        return States(growth, np.nan, np.nan)
    boundary = max(point.q[0] for point in points if point.verdict != 1 and 0 <= point.q[0] < recovery)
    return States(growth, recovery**2, boundary**2)


def end_of_recovery(problem_at: Callable[[float], Problem], found: float, lost: float) -> float:
    """The value between `found`, where there is a recovery state, and `lost`, where there is none, at which it ends."""
    while abs(lost - found) > RESOLUTION:
        middle = 0.5 * (found + lost)
        there = np.isfinite(find_states(problem_at(middle)).recovery)
        found, lost = (middle, lost) if there else (found, middle)
    return 0.5 * (found + lost)


def drift_by_sgd(problem: Problem, Q: np.ndarray, run: Ensemble) -> tuple[np.ndarray, np.ndarray]:
    """The drift h by SGD, with standard errors: the mean change of Q, started at each.

    `mean_drift` is what a curve predicts it to be.
    """
    result = np.array([_mean_change(problem, float(start), run) for start in Q])
    return result[:, 0], result[:, 1]


def _mean_change(problem: Problem, Q: float, run: Ensemble) -> tuple[float, float]:
    q, error = (values[-1] for values in overlap_by_sgd(started(problem, Q, run)))
    scale = problem.model.learning_rate * run.stop
    variance = run.replicas * error**2
    return (q**2 + variance - Q) / scale, 2 * q * error / scale


def overlap_by_sgd(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The mean of q over the replicas of SGD at the output times, and its standard errors."""
    sgd: xr.Dataset = meanfield.simulate_sgd(problem)
    variance = sgd["q_covariance"].values[:, 0, 0] / problem.particles.dimension
    return sgd["q_mean"].values[:, 0], np.sqrt(variance / problem.particles.replicas)


def mean_drift(Q: np.ndarray, h: np.ndarray, starts: np.ndarray, span: float) -> np.ndarray:
    """Prediction of `drift_by_sgd` by a curve h: the mean of h on the way of length tau t, by Runge and Kutta."""
    curve = CubicSpline(Q, h)
    step = span / RUNGE_KUTTA_STEPS
    reached = starts
    for _ in range(RUNGE_KUTTA_STEPS):
        first = curve(reached)
        second = curve(reached + 0.5 * step * first)
        third = curve(reached + 0.5 * step * second)
        reached = reached + step / 6 * (first + 2 * second + 2 * third + curve(reached + step * third))
    return (reached - starts) / span
