"""Conditional distributions of the weights given the feature coordinate u, of SGD and of densities alike.

The density is known at quadrature nodes and SGD has every u, so a comparison at a value of u would need
interpolation in u. Groups with smooth membership need none: averages over the nodes are then as accurate as any
expectation, and averages over an SGD run weigh each coordinate by its membership.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from meanfield.numerics.distances import distribution_function
from meanfield.typing import FloatArray

CENTRES = (-1.5, -0.75, 0.0, 0.75, 1.5)
"""Centres of the groups of a feature coordinate with many values."""

WIDTH = 0.35
"""Least standard deviation of the Gaussian membership of a group of feature coordinates; neighbouring groups
overlap."""

WIDTH_IN_NODES = 0.75
"""Least standard deviation of the membership in units of the distance of quadrature nodes: averages over nodes then err
by 2 exp(-2 pi^2 0.75^2)."""

FEW_VALUES = 3
"""Largest number of values of a coordinate law for which each value is a group of its own."""


@dataclass(frozen=True)
class Group:
    """Group of feature coordinates u_k near `centre`.

    Parameters
    ----------
    centre : float
    width : float
        Standard deviation of the Gaussian membership.
    neighbours : ndarray or None
        All values of a law with few values: membership is then 1 where `centre` is the nearest, else 0.
    """

    centre: float
    width: float = WIDTH
    neighbours: FloatArray | None = None

    def membership(self, u: FloatArray) -> FloatArray:
        """Membership of each of `u` in the group, a degree in [0, 1]."""
        if self.neighbours is None:
            return np.asarray(np.exp(-0.5 * ((u - self.centre) / self.width) ** 2))
        nearest = self.neighbours[np.argmin(np.abs(u[..., None] - self.neighbours), axis=-1)]
        return np.asarray(nearest == self.centre, dtype=float)


def groups_of(density: xr.Dataset, feature: int) -> list[Group]:
    """Groups of the coordinates of feature k, in increasing order."""
    values = np.unique(density["u"].values[:, feature])
    if len(values) <= FEW_VALUES:
        return [Group(float(value), neighbours=values) for value in values]
    width = max(WIDTH, WIDTH_IN_NODES * float(np.diff(values).max()))
    return [Group(centre, width) for centre in CENTRES]


def marginal_distribution(density: xr.Dataset, time: float) -> tuple[FloatArray, FloatArray]:
    """Distribution function of w alone at the cell edges; see `group_distribution`."""
    return _mixture(density, time, np.ones(density.sizes["node"]))


def group_distribution(density: xr.Dataset, time: float, feature: int, group: Group) -> tuple[FloatArray, FloatArray]:
    """Distribution function at the cell edges that the density predicts for a group.

    Returns
    -------
    F : ndarray, shape (cells + 1,)
        Average of F(w|u) over u, weighted by membership.
    variance : ndarray, shape (cells + 1,)
        n Var[F_n] of the weighted empirical distribution function of n independent pairs (w, u) for large n. For
        equal memberships it is F (1 - F).
    """
    return _mixture(density, time, group.membership(density["u"].values[:, feature]))


def _mixture(density: xr.Dataset, time: float, membership: FloatArray) -> tuple[FloatArray, FloatArray]:
    P = density["P"].sel(time=time, method="nearest").values
    given_u = distribution_function(density["w_edge"].values, P)
    weight = density["u_weight"].values
    share = weight @ membership
    F = (weight * membership) @ given_u / share
    # E[(psi (1{w <= x} - F))^2] / E[psi]^2, the variance of a ratio of two means
    squared = weight * membership**2
    variance = (1 - 2 * F) * (squared @ given_u) + squared.sum() * F**2
    return F, np.clip(variance, 0.0, None) / share**2


def group_sample(
    particles: xr.Dataset, time: float, feature: int, group: Group
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights w of all replicas at a snapshot, their u_k and their memberships."""
    w = particles["weights"].sel(snapshot_time=time, method="nearest").values.ravel()
    u = particles["U"].values[:, :, feature].ravel()
    return w, u, group.membership(u)
