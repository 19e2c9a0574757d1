"""Fluctuations of the overlaps about their limit, of order 1/sqrt(N).

To leading order the covariance of q over runs of SGD is C/N, with

    dC/dt = J C + C J^T + S(q_t),   J = db/dq at q_t,

and C(0) = 0, because every run starts at the same q. At a stable fixed point C tends to the solution of
J C + C J^T + S = 0. Source: theory.md, section 4.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import solve_continuous_lyapunov

from meanfield.errors import InputError
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.order_parameters.noise import StepNoise
from meanfield.typing import FloatArray

RELATIVE_TOLERANCE = 1e-7
ABSOLUTE_TOLERANCE = 1e-9
"""Of the size that C would have without drift. The next order in 1/N is far larger at any N that is simulated."""

ROUNDING = 1e-13
"""Of differences, in units of the largest one."""

LARGEST = 1e12
"""Overlaps lie in the unit ball, so N times their covariance is at most N, and no N is larger than this."""


def covariance_along(
    field: VectorField, noise: StepNoise, trajectory: Callable[[float], FloatArray], times: FloatArray
) -> FloatArray:
    """N times the covariance of q along a trajectory that starts at the first of the times.

    Parameters
    ----------
    field : VectorField
    noise : StepNoise
    trajectory : callable
        q_t, shape (d1,), at any time between the first and the last.
    times : ndarray, shape (times,)

    Returns
    -------
    ndarray, shape (times, d1, d1)
        C_t; NaN from where it is larger than it can be at any N, as happens on the way out of unstable points.
    """
    d1 = field.features
    result = np.full((times.size, d1, d1), np.nan)
    result[0] = 0.0

    def derivative(t: float, flat: FloatArray) -> FloatArray:
        q, C = trajectory(t), flat.reshape(d1, d1)
        J = field.jacobian(q)
        # What is 0 by symmetry is noise after differencing, which a large C would make too rough to integrate.
        J[np.abs(J) < ROUNDING * np.abs(J).max()] = 0.0
        drift = J @ C
        return np.asarray((drift + drift.T + noise(q)).ravel())

    def margin(t: float, flat: FloatArray) -> float:
        return float(LARGEST - np.abs(flat).max())

    margin.terminal = True  # type: ignore[attr-defined]
    ends = (np.abs(noise(trajectory(t))).max() for t in (times[0], times[-1]))
    size = float(max(ends)) * (times[-1] - times[0])
    solution = solve_ivp(
        derivative,
        (times[0], times[-1]),
        np.zeros(d1 * d1),
        method="LSODA",
        t_eval=times,
        events=margin,
        rtol=RELATIVE_TOLERANCE,
        atol=max(ABSOLUTE_TOLERANCE * size, np.finfo(float).tiny),
    )
    if len(solution.t):  # a list if not even the first step was taken
        result[: len(solution.t)] = solution.y.T.reshape(-1, d1, d1)
    return result


def stationary_covariance(field: VectorField, noise: StepNoise, q: FloatArray) -> FloatArray:
    """N times the covariance of q about a stable fixed point, long after the start.

    Parameters
    ----------
    field : VectorField
    noise : StepNoise
    q : ndarray, shape (d1,)
        The fixed point.

    Returns
    -------
    ndarray, shape (d1, d1)
        C with J C + C J^T + S = 0.

    Raises
    ------
    InputError
        If the fixed point is not stable.
    """
    q = np.asarray(q, dtype=float)
    J = field.jacobian(q)
    growth = float(np.linalg.eigvals(J).real.max()) if np.all(np.isfinite(J)) else np.nan
    if not growth < 0:
        raise InputError(
            f"q = {q}: small perturbations grow at the rate {growth:.4g}, so that fluctuations there do not become "
            "stationary; give a stable fixed point"
        )
    return np.asarray(solve_continuous_lyapunov(J, -noise(q)))
