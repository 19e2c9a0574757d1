"""A density of some norm that may be stationary: its coefficients with their derivatives, and averages over it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.stationary.coordinates import Tilts
from meanfield.mckean_vlasov.stationary.unknowns import by_averages, closure_at
from meanfield.typing import FloatArray


class Coefficients(NamedTuple):
    """g, shape (d1,), Lambda and, where the norm is free, G of the closure, with derivatives by x in the last axis."""

    g: FloatArray
    diffusion: float
    g_slope: FloatArray
    diffusion_slope: FloatArray
    growth: float = 0.0
    growth_slope: FloatArray | None = None


class State(NamedTuple):
    """A density of some norm: stationary where F(x) = 0.

    Parameters
    ----------
    x : ndarray, shape (unknowns,)
        See `meanfield.mckean_vlasov.stationary.unknowns`.
    q : ndarray, shape (d1,)
    norm : float
        Q, which E[w^2] shall be.
    G : float
        The multiplier of the norm, or the G of the closure, less `StationaryEquations.shift`.
    tilts : Tilts
        Nodes in u.
    moments : ndarray, shape (nodes, MOMENTS)
        Averages over w at each node, see `meanfield.mckean_vlasov.stationary.panels`.
    """

    x: FloatArray
    q: FloatArray
    norm: float
    G: float
    coefficients: Coefficients
    tilts: Tilts
    moments: FloatArray

    @property
    def residual(self) -> FloatArray:
        """F: (E[u w] - q)/sqrt Q and, where the norm Q is free, log(E[w^2]/Q)."""
        unmet = (self.tilts.mean.T @ self.moments[:, 0] - self.q) / math.sqrt(self.norm)
        return np.append(unmet, math.log(self.second / self.norm)) if self.is_free else np.asarray(unmet)

    @property
    def second(self) -> float:
        """E[w^2], which is the norm at a stationary state."""
        return float(self.tilts.weight @ self.moments[:, 1])

    @property
    def spread(self) -> float:
        """V = E[Var(w|u)] in units of the norm."""
        return float(self.tilts.weight @ (self.moments[:, 1] - self.moments[:, 0] ** 2)) / self.norm

    @property
    def is_free(self) -> bool:
        """Whether the norm is."""
        return self.coefficients.growth_slope is not None

    @property
    def by_averages(self) -> Coefficients:
        """Coefficients with derivatives by q and, where it is free, E[w^2] in the place of those by x."""
        c, slopes = self.coefficients, by_averages(self.x, len(self.q), self.norm)
        found = c._replace(g_slope=c.g_slope @ slopes, diffusion_slope=c.diffusion_slope @ slopes)
        return found if c.growth_slope is None else found._replace(growth_slope=c.growth_slope @ slopes)


def coefficients(limit: Limit, x: FloatArray) -> Coefficients:
    """Closure and its derivatives inside the unit ball, by central differences of order four."""
    d1, values = len(limit.coordinates), closure_at(limit, x)
    # The step of differences of order four; g and Lambda have nine digits or more.
    h = min(1e-3, 0.2 * (1.0 - math.sqrt(x[:d1] @ x[:d1])))
    slopes, length = [], math.sqrt(limit.initial_norm)
    for k in range(len(x)):
        shifted = np.repeat(x[None, :], 4, axis=0)
        shifted[:, k] += h * np.array([-2.0, -1.0, 1.0, 2.0])
        if limit.free_norm:
            around = np.array([closure_at(limit, each) for each in shifted])
        else:  # within the ball, and of the shapes that the first call had: there is nothing to look after
            around = np.array([[*g, diffusion] for g, diffusion in map(limit.closure, length * shifted)])
        slopes.append(np.array([1.0, -8.0, 8.0, -1.0]) @ around / (12.0 * h))
    slope = np.array(slopes).T
    found = Coefficients(values[:d1], float(values[d1]), slope[:d1], slope[d1])
    return found._replace(growth=float(values[-1]), growth_slope=slope[-1]) if limit.free_norm else found
