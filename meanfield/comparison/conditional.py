"""Conditional distributions of the weights given the feature coordinate u, of SGD and of densities alike.

SGD has other u than the nodes of a density, and few near each. So what is compared is averages over groups of u with a
smooth membership: of SGD, each coordinate weighed by its membership, and of the laws that the density predicts between
its nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from meanfield.mckean_vlasov.cells import edges_of, nodes_of
from meanfield.mckean_vlasov.marginal import Laws, laws_given, marginal_density
from meanfield.numerics.distances import distribution_function
from meanfield.results.schema import problem_of
from meanfield.typing import FloatArray

CENTRES = (-1.5, -0.75, 0.0, 0.75, 1.5)
"""Centres of the groups of a feature coordinate with many values."""

WIDTH = 0.35
"""Standard deviation of the Gaussian membership of a group of feature coordinates; neighbouring groups overlap."""

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
    values = np.unique(nodes_of(density)[0][:, feature])
    if len(values) <= FEW_VALUES:
        return [Group(float(value), neighbours=values) for value in values]
    return [Group(centre) for centre in CENTRES]


def marginal_distribution(density: xr.Dataset, time: float) -> tuple[FloatArray, FloatArray]:
    """Distribution function of w alone at the cell edges, and n Var[F_n]; see `group_distribution`."""
    F = distribution_function(edges_of(density), marginal_of(density.sel(time=time, method="nearest")).values)
    return F, np.clip(F * (1 - F), 0.0, None)


def marginal_of(density: xr.Dataset) -> xr.DataArray:
    """Density of w alone, averaged over cells, of a result or of a part of one; older files lack it, and w|u tells."""
    if "P_w" in density:
        return density["P_w"]
    P, (u, u_weight) = density["P"], nodes_of(density)
    flat = P.values.reshape(-1, *P.shape[-2:])
    P_w, _ = marginal_density(problem_of(density).coordinates, u, u_weight, edges_of(density), flat)
    return P.isel({P.dims[-2]: 0}, drop=True).copy(data=P_w.reshape(*P.shape[:-2], P.shape[-1]))


def laws_given_u(density: xr.Dataset, time: float, feature: int) -> Laws:
    """Laws of w given one feature coordinate, at nodes close enough to add them up; see `laws_given`."""
    P = density["P"].sel(time=time, method="nearest").values
    return laws_given(problem_of(density).coordinates, *nodes_of(density), edges_of(density), P, feature)


def group_distribution(laws: Laws, feature: int, group: Group) -> tuple[FloatArray, FloatArray]:
    """Distribution function at the cell edges that the density predicts for a group.

    Parameters
    ----------
    laws : Laws
        Of w given that feature, from `laws_given_u`, which all groups share.
    feature : int
    group : Group

    Returns
    -------
    F : ndarray, shape (cells + 1,)
        Average of F(w|u) over u, weighted by membership.
    variance : ndarray, shape (cells + 1,)
        n Var[F_n] of the weighted empirical distribution function of n independent pairs (w, u) for large n. For
        equal memberships it is F (1 - F).
    """
    membership = group.membership(laws.u[:, feature])
    share = laws.weight @ membership
    F = (laws.weight * membership) @ laws.F / share
    # E[(psi (1{w <= x} - F))^2] / E[psi]^2, the variance of a ratio of two means
    squared = laws.weight * membership**2
    variance = (1 - 2 * F) * (squared @ laws.F) + squared.sum() * F**2
    return F, np.clip(variance, 0.0, None) / share**2


def group_sample(
    particles: xr.Dataset, time: float, feature: int, group: Group
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights w of all replicas at a snapshot, their u_k and their memberships."""
    w = particles["weights"].sel(snapshot_time=time, method="nearest").values.ravel()
    u = particles["U"].values[:, :, feature].ravel()
    return w, u, group.membership(u)
