"""Problems with one feature that the paper's figures 2, 4, 6, 10 and 11 show, their fixed points, and SGD on them.

All is said of Q = q^2, as in the paper, and of the drift h(Q) = (dQ/dt)/tau, which knows tau and m by tau/m alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq, minimize_scalar

import meanfield
from meanfield.order_parameters.field import VectorField
from meanfield.problem import Problem
from meanfield.problem_file import problem_from

LEARNING_RATE, BATCH_SIZE = 0.094, 10
"""The paper prints neither. Only tau/m between 0.0079 and 0.01 shows what it says of m2 = 0.9, 1.0 and 1.1 in figures 2
and 6: below, there is a recovery state at 0.9 too; above, Q = 0 is stable at 1.1. And only 0.0094 lets independent
noise end recovery at eta = 0.2, as it says of figure 10."""

NON_ZERO = 0.2
"""Chance of c != 0, as the moments printed for its figures 3 and 9 imply: m4 = m2^2/0.2."""

SECOND_MOMENTS = (0.9, 1.0, 1.1)
"""Of figures 2 and 6."""

OVERLAPS = np.linspace(0.0, 1.0, 201)[1:]
"""Between which zeros of the drift are told apart."""

TINY = 1e-6
"""Overlaps that count as positive when a zero is sought between 0 and the first of them."""

RUNGE_KUTTA_STEPS = 10
"""Of a time over which Q changes by a few percent: exact to rounding."""


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
    """Fixed points as zeros of b(q)/q."""
    field = VectorField(problem)
    growth = origin_growth(field)
    above = np.append(growth, field(OVERLAPS[:, None])[:, 0] / OVERLAPS) > 0
    falls, rises = np.flatnonzero(above[:-1] & ~above[1:]), np.flatnonzero(~above[:-1] & above[1:])

    def zero(i: int) -> float:
        low, high = np.append(TINY, OVERLAPS)[i : i + 2]
        return float(brentq(lambda q: field(np.array([q]))[0], low, high, xtol=1e-13)) ** 2

    if not falls.size:
        return States(growth, np.nan, np.nan)
    below = rises[rises < falls[-1]]
    return States(growth, zero(falls[-1]), zero(below[-1]) if below.size else 0.0)


def origin_growth(field: VectorField) -> float:
    """h'(0)."""
    return 2 * float(field.jacobian(np.zeros(1))[0, 0]) / field.problem.model.learning_rate


def largest_growth(field: VectorField) -> float:
    """The largest h(Q)/Q: a recovery state exists where it is positive, for h(1) is not."""

    def fall(q: float) -> float:
        return -2 * float(field(np.array([q]))[0]) / q / field.problem.model.learning_rate

    q = OVERLAPS[::4]
    best = q[np.argmin([fall(x) for x in q])]
    bounds = max(best - (q[1] - q[0]), TINY), min(best + (q[1] - q[0]), 1.0)
    inside = minimize_scalar(fall, bounds=bounds, method="bounded", options={"xatol": 1e-7})
    return max(-float(inside.fun), origin_growth(field))


def threshold(
    growth: Callable[[VectorField], float], problem_at: Callable[[float], Problem], low: float, high: float
) -> float:
    """The value between `low` and `high` at which a growth changes its sign."""
    return float(brentq(lambda value: growth(VectorField(problem_at(value))), low, high, xtol=1e-7))


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
    """What a curve h predicts `drift_by_sgd` to be: the mean of h on the way of length tau t, by Runge and Kutta."""
    curve = CubicSpline(Q, h)
    step = span / RUNGE_KUTTA_STEPS
    reached = starts
    for _ in range(RUNGE_KUTTA_STEPS):
        first = curve(reached)
        second = curve(reached + 0.5 * step * first)
        third = curve(reached + 0.5 * step * second)
        reached = reached + step / 6 * (first + 2 * second + 2 * third + curve(reached + step * third))
    return (reached - starts) / span
