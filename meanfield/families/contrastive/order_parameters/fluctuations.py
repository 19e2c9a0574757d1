"""Fluctuations of the overlaps about their limit, of order 1/sqrt(N).

To leading order the covariance of q over runs of SGD is C/N, with

    dC/dt = J C + C J^T + S(q_t),   J = db/dq at q_t,

and C(0) = 0, because every run starts at the same q. At a stable fixed point C tends to the solution of
J C + C J^T + S = 0. Source: theory.md, section 4.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.linalg import solve_continuous_lyapunov

from meanfield.errors import InputError
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.order_parameters.noise import StepNoise
from meanfield.numerics.ode import Path, Tolerance, solve_ode
from meanfield.typing import FloatArray

TOLERANCE = Tolerance(relative=1e-7, absolute=1e-9)
"""Tolerance of a step of C, the absolute one in units of the size that C would have without drift: the next order in
1/N is far larger at any N that is simulated."""

DIFFERENCE_ROUNDING = 1e-13
"""Largest entry of the Jacobian that may be rounding, relative to the largest entry."""

LARGEST_COVARIANCE = 1e12
"""Largest N times the covariance: overlaps lie in the unit ball, so it is at most N, and no N is larger than this."""


def covariance_along(
    field: VectorField, noise: StepNoise, trajectory: Path, times: FloatArray
) -> tuple[FloatArray, bool]:
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
    C : ndarray, shape (times, d1, d1)
        C_t; NaN from where it is larger than it can be at any N, as happens on the way out of unstable points.
    interrupted : bool
        Whether Ctrl-C ended the integration; C_t is NaN from there.
    """
    d1 = field.features
    if times.size < 2:
        return np.zeros((times.size, d1, d1)), False

    @lru_cache(maxsize=1)  # the integrator asks several times for the same t: corrections, and differences in C
    def drift_and_noise(t: float) -> tuple[FloatArray, FloatArray]:
        q = trajectory(t)
        J = field.jacobian(q)
        # What is 0 by symmetry is noise after differencing, which a large C would make too rough to integrate.
        J[np.abs(J) < DIFFERENCE_ROUNDING * np.abs(J).max()] = 0.0
        return J, noise(q)

    def derivative(t: float, flat: FloatArray) -> FloatArray:
        J, S = drift_and_noise(t)
        drift = J @ flat.reshape(d1, d1)
        return np.asarray((drift + drift.T + S).ravel())

    def margin(t: float, flat: FloatArray) -> float:
        return float(LARGEST_COVARIANCE - np.abs(flat).max())

    ends = (np.abs(noise(trajectory(t))).max() for t in (times[0], times[-1]))
    size = float(max(ends)) * (times[-1] - times[0])
    tolerance = Tolerance(TOLERANCE.relative, max(TOLERANCE.absolute * size, np.finfo(float).tiny))
    solution = solve_ode(derivative, np.zeros(d1 * d1), times, tolerance, stops=[margin], interruptible=True)
    return solution.values.reshape(-1, d1, d1), solution.status == "interrupted"


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
