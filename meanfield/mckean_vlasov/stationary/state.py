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
    """g, shape (d1,), Lambda and, where the norm is free, G of the closure, with derivatives by x in the last axis.

    Where variances differ g has g, g' and h, see `Limit`.
    """

    g: FloatArray
    diffusion: float
    g_slope: FloatArray
    diffusion_slope: FloatArray
    growth: float = 0.0
    growth_slope: FloatArray | None = None

    def through(self, slopes: FloatArray) -> Coefficients:
        """The same with derivatives by other unknowns, by which those here have some derivatives."""
        own = None if self.growth_slope is None else self.growth_slope @ slopes
        found = self._replace(g_slope=self.g_slope @ slopes, diffusion_slope=self.diffusion_slope @ slopes)
        return found._replace(growth_slope=own)


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
        return self.coefficients.through(by_averages(self.x, len(self.q), self.norm))

    @property
    def members(self) -> list[Member]:
        """Itself, as the only density: all coordinates have one variance."""
        return [Member(1.0, 1.0, self)]

    @property
    def overlaps(self) -> FloatArray:
        """Averages that g multiplies in the balance of the norm."""
        return self.q


class Member(NamedTuple):
    """The density at a variance rho of the noise, and the share of coordinates that have it."""

    rho: float
    share: float
    state: State


AHEAD = np.array([1.0]), np.array([-1.0, 1.0])
AROUND = np.array([-2.0, -1.0, 1.0, 2.0]), np.array([0.0, 1.0, -8.0, 8.0, -1.0]) / 12.0
"""Places of differences in steps, and factors of the value in the middle and of those at these places."""


def coefficients(limit: Limit, x: FloatArray, one_sided: bool = False) -> Coefficients:
    """Closure and its derivatives inside the unit ball, by central differences of order four, or by one-sided ones."""
    d1, values = len(limit.coordinates), closure_at(limit, x)
    # The step of differences of order four; g and Lambda have nine digits or more.
    h = min(1e-3, 0.2 * (1.0 - math.sqrt(x[:d1] @ x[:d1])))
    slopes, length, d1 = [], math.sqrt(limit.initial_norm), limit.overlaps
    places, factors = AHEAD if one_sided else AROUND
    for k in range(len(x)):
        shifted = np.repeat(x[None, :], len(places), axis=0)
        shifted[:, k] += h * places
        if limit.free_norm or limit.spectrum is not None:
            around = [closure_at(limit, each) for each in shifted]
        else:  # within the ball, and of the shapes that the first call had: there is nothing to look after
            around = [np.array([*g, diffusion]) for g, diffusion in map(limit.closure, length * shifted)]
        slopes.append(factors @ np.array([values, *around]) / h)
    slope = np.array(slopes).T
    found = Coefficients(values[:d1], float(values[d1]), slope[:d1], slope[d1])
    return found._replace(growth=float(values[-1]), growth_slope=slope[-1]) if limit.free_norm else found
