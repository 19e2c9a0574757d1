"""Problems with one feature that the paper's figures 2 and 6 show, and the drift of Q = q^2 by theory and by SGD."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline

import meanfield
from meanfield.order_parameters.field import VectorField
from meanfield.problem import Problem
from meanfield.problem_file import parse_problem

LEARNING_RATE, BATCH_SIZE = 0.09, 10
"""The paper prints neither. Only tau/m between 0.0079 and 0.01 shows what it says of m2 = 0.9, 1.0 and 1.1: below,
there is a recovery state at 0.9 too; above, Q = 0 is stable at 1.1."""

NON_ZERO = 0.2
"""Chance of c != 0, as the moments printed for its figures 3 and 9 imply: m4 = m2^2/0.2."""

SECOND_MOMENTS = (0.9, 1.0, 1.1)

RUNGE_KUTTA_STEPS = 10
"""Of a time over which Q changes by a few percent: exact to rounding."""

TEXT = """
[model]
activation = "quadratic"
learning_rate = {learning_rate}
batch_size = {batch_size}
[[features]]
hidden = {{ law = "three_point", second_moment = {m2}, fourth_moment = {m4} }}
initial_overlap = {q}
[time]
stop = {stop}
outputs = {outputs}
[particles]
method = "chain"
dimension = {dimension}
replicas = {replicas}
record = "statistics"
"""


def problem_with(
    m2: float, Q: float = 0.1, stop: float = 1.0, outputs: int = 2, dimension: int = 1000, replicas: int = 10
) -> Problem:
    """Three-point hidden variable, sigma(x) = x^2, no noise, started at q = sqrt(Q)."""
    text = TEXT.format(
        learning_rate=LEARNING_RATE,
        batch_size=BATCH_SIZE,
        m2=m2,
        m4=m2**2 / NON_ZERO,
        q=float(np.sqrt(Q)),
        stop=stop,
        outputs=outputs,
        dimension=dimension,
        replicas=replicas,
    )
    return parse_problem(text)


def drift(problem: Problem, Q: np.ndarray) -> np.ndarray:
    """h(Q) = (dQ/dt)/tau of the reduced ODE, in which dQ/dt = 2 q b(q)."""
    q = np.sqrt(Q)
    return 2 * q * VectorField(problem)(q[:, None])[:, 0] / problem.model.learning_rate


def drift_by_sgd(problem: Problem, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same by SGD, with standard errors: the mean change of Q, started at each, over the time of the problem.

    The problem must keep statistics; `mean_drift` is what a curve predicts.
    """
    result = np.array([_mean_change(problem, float(start)) for start in Q])
    return result[:, 0], result[:, 1]


def _mean_change(problem: Problem, Q: float) -> tuple[float, float]:
    features = (problem.features[0].model_copy(update={"initial_overlap": float(np.sqrt(Q))}),)
    sgd: xr.Dataset = meanfield.simulate_sgd(problem.model_copy(update={"features": features}))
    N, replicas = problem.particles.dimension, problem.particles.replicas
    q, variance = float(sgd["q_mean"][-1, 0]), float(sgd["q_covariance"][-1, 0, 0]) / N
    scale = problem.model.learning_rate * problem.time.stop
    return (q**2 + variance - Q) / scale, 2 * q * np.sqrt(variance / replicas) / scale


def mean_drift(Q: np.ndarray, h: np.ndarray, starts: np.ndarray, time: float) -> np.ndarray:
    """What a curve h predicts `drift_by_sgd` to be: (Q_t - Q_0)/(tau t) along dQ/dt = tau h, by Runge and Kutta."""
    curve = CubicSpline(Q, h)
    step = LEARNING_RATE * time / RUNGE_KUTTA_STEPS
    reached = starts
    for _ in range(RUNGE_KUTTA_STEPS):
        first = curve(reached)
        second = curve(reached + 0.5 * step * first)
        third = curve(reached + 0.5 * step * second)
        reached = reached + step / 6 * (first + 2 * second + 2 * third + curve(reached + step * third))
    return (reached - starts) / (LEARNING_RATE * time)
