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

TOLERANCE = Tolerance(relative=1e-9, absolute=1e-8)
"""Tolerance of a step of the logarithms of variances, and of correlations: the next order in 1/N is far larger at any N
that is simulated."""

LEAST_SHARE = 1e-12
"""Least offset of a variance under its logarithm, relative to the largest: a direction may have no noise."""

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

    Notes
    -----
    What is integrated are log(1 + C_ii/offset_i) and the correlations of i and j: entries of C differ by many orders of
    magnitude on the way out of an unstable point, and the large ones multiply the rounding errors of J.
    """
    d1 = field.features
    if times.size < 2:
        return np.zeros((times.size, d1, d1)), False

    @lru_cache(maxsize=1)  # the integrator asks several times for the same t: corrections, and differences in C
    def drift_and_noise(t: float) -> tuple[FloatArray, FloatArray]:
        q = trajectory(t)
        return field.jacobian(q), noise(q)

    variances = np.diag(drift_and_noise(times[0])[1]) * (times[-1] - times[0])
    offset = np.maximum(variances, max(LEAST_SHARE * float(variances.max()), np.finfo(float).tiny))

    def covariance(y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        R = y.reshape(d1, d1).copy()
        size = np.sqrt(offset) * np.exp(0.5 * np.diag(R))
        scales = np.outer(size, size)
        np.fill_diagonal(R, offset * np.expm1(np.diag(R)) / np.diag(scales))
        return R * scales, R, scales

    def derivative(t: float, y: FloatArray) -> FloatArray:
        (J, S), (C, R, scales) = drift_and_noise(t), covariance(y)
        drift = J @ C
        relative = (drift + drift.T + S) / scales
        growth = np.diag(relative)
        change = relative - 0.5 * R * (growth[:, None] + growth)
        np.fill_diagonal(change, growth)
        return np.asarray(change.ravel())

    def margin(t: float, y: FloatArray) -> float:
        return float(LARGEST_COVARIANCE - np.abs(covariance(y)[0]).max())

    solution = solve_ode(derivative, np.zeros(d1 * d1), times, TOLERANCE, stops=[margin], interruptible=True)
    return np.array([covariance(y)[0] for y in solution.values]), solution.status == "interrupted"


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
