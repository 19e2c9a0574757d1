"""States at rest without noise, which are no densities: all weights are w = q.u, and Lambda = 0 there.

They lie where |q|^2 = E[w^2], as for a student that has become its teacher and makes no error any more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from meanfield.mckean_vlasov.cells import feature_quadrature
from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.stationary.unknowns import closure_at, norm_at, overlap_at, unknowns_at
from meanfield.numerics.continuation import directions
from meanfield.typing import FloatArray

NO_NOISE, AT_REST = 1e-9, 1e-6
"""Largest Lambda, and root mean square of the drift in units of Lambda/sqrt E[w^2], relative to Lambda at q = 0."""

SIZES = sorted(np.linspace(-5.0, 5.0, 41), key=abs)
"""Values of log E[w^2] between which noise is looked for that vanishes, usual ones first."""


class PointMass(NamedTuple):
    """Overlap q, shape (d1,), and E[w^2] = |q|^2 of weights w = q.u at rest."""

    q: FloatArray
    norm: float


def point_masses(limit: Limit) -> list[PointMass]:
    """Point masses along features, and along sums of features, at rest without noise."""
    d1, found = len(limit.coordinates), []
    usual = closure_at(limit, unknowns_at(limit, np.zeros(d1), 0.0))[limit.overlaps]
    for direction in directions(d1):
        x = _quietest(limit, direction)
        if closure_at(limit, x)[limit.overlaps] <= NO_NOISE * usual and _drift(limit, x) <= AT_REST * usual:
            found.append(PointMass(overlap_at(limit, x), norm_at(limit, x)))
    return found


def _quietest(limit: Limit, direction: FloatArray) -> FloatArray:
    """Unknowns along a direction where the noise is least."""
    if not limit.free_norm:
        return unknowns_at(limit, direction, 0.0)

    def noise(size: float) -> float:
        return float(closure_at(limit, unknowns_at(limit, direction, size))[limit.overlaps])

    size, step = min(SIZES, key=noise), abs(SIZES[1] - SIZES[0])
    lower = minimize_scalar(noise, bounds=(size - step, size + step), method="bounded", options={"xatol": 1e-10})
    return unknowns_at(limit, direction, lower.x if lower.fun < noise(size) else size)


def _drift(limit: Limit, x: FloatArray) -> float:
    """Root mean square of the drift of weights w = q.u, in units of 1/sqrt E[w^2]."""
    d1, norm, values = len(limit.coordinates), norm_at(limit, x), closure_at(limit, x)
    nodes, weight = feature_quadrature(limit.coordinates, None, spectrum=limit.spectrum)
    factors, rho = limit.factors(nodes)
    w = nodes[:, :d1] @ overlap_at(limit, x)
    pull = factors @ values[: factors.shape[1]] + limit.learning_rate * limit.prior.force(w)
    if limit.spectrum is not None:
        pull += values[limit.overlaps - 1] * rho * w
    G = values[-1] if limit.free_norm else (weight @ (w * pull)) / norm  # what keeps the norm
    return float(np.sqrt(weight @ (G * w - pull) ** 2 * norm))
