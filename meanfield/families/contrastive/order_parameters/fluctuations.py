"""Stationary fluctuations of the overlaps about their limit, of order 1/sqrt(N).

To leading order the covariance of q over runs of SGD is C/N (`meanfield.numerics.linear_noise`). At a stable fixed
point C tends to the solution of J C + C J^T + S = 0. Source: theory.md, section 4.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_continuous_lyapunov

from meanfield.errors import InputError
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.order_parameters.noise import StepNoise
from meanfield.typing import FloatArray


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
