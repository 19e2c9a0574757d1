"""Distributions of weights, of SGD and of densities alike: of each vector, and given the feature coordinate u.

A density of one weight is compared with weights of SGD as it is. Of several vectors, such as channels, each weight is
taken by itself, and of two (w_1 + w_2)/sqrt(2) and (w_1 - w_2)/sqrt(2), whose laws tell how they share their weights.

SGD has other u than the nodes of a density, and few near each. So given u, averages are compared over groups of u with
a smooth membership: of SGD, each coordinate weighed by its membership, and of the laws that the density predicts
between its nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield.mckean_vlasov.cells import edges_of, nodes_of
from meanfield.mckean_vlasov.marginal import Laws, laws_given, marginal_density
from meanfield.numerics.distances import distribution_function
from meanfield.results.result import Result
from meanfield.typing import FloatArray

CENTRES = (-1.5, -0.75, 0.0, 0.75, 1.5)
"""Centres of the groups of a feature coordinate with many values."""


class Pair(NamedTuple):
    """Density and SGD of a single number.

    Parameters
    ----------
    place : tuple of int
        Its vector in variables of several; empty where there is one.
    density : Result
    particles : xarray.Dataset
        As of one vector.
    vector : str
        What a vector is called, where there are several.
    """

    place: tuple[int, ...]
    density: Result
    particles: xr.Dataset
    vector: str = ""


def vector_of(density: Result) -> str:
    """Dim of the vectors whose weights a density describes, such as `channel`; empty where there is one."""
    return next(iter(density.family.variables["P"].behind(density.dataset["P"].sizes)), "")


def weights_alone(density: Result, particles: xr.Dataset) -> Iterator[Pair]:
    """The weights of each vector; what SGD counts and the density has one of, such as a student, is that one."""
    weights = particles["weights"]
    counted = set(weights.dims) - {"replica", "snapshot_time", "coordinate", *density.dataset["P"].dims}
    particles = particles.assign(weights=weights.squeeze(counted, drop=True))
    vector = vector_of(density)
    if not vector:
        yield Pair((), density, particles)
        return
    for k in range(particles.sizes[vector]):
        yield Pair((k,), density.part(density.dataset.isel({vector: k})), particles.isel({vector: k}), vector)


def diagonals(density: Result, particles: xr.Dataset) -> Iterator[Pair]:
    """Sum and difference of the weights of two vectors, over sqrt(2)."""
    joint = density.dataset
    if "P_sum" not in joint:
        return
    vector = vector_of(density)
    first, second = (particles["weights"].isel({vector: k}, drop=True) for k in (0, 1))
    for s, (name, sign) in enumerate((("P_sum", 1.0), ("P_difference", -1.0))):
        law = density.part(joint.isel({vector: 0}).assign(P_w=joint[name]))
        yield Pair((s,), law, particles.assign(weights=(first + sign * second) / math.sqrt(2.0)))


class Condition(NamedTuple):
    """Coordinate of weights, given which they are compared.

    Parameters
    ----------
    axis : int
        Its number among coordinates of nodes.
    name : str
        "u" of a feature, or "rho" of the variance of the noise.
    place : tuple of int
        Its place in variables that have several.
    """

    axis: int
    name: str
    place: tuple[int, ...]


def conditions_of(density: xr.Dataset) -> list[Condition]:
    """Feature coordinates, and the variance of the noise where these differ."""
    features = density.sizes["feature"]
    of_noise = [Condition(features, "rho", ())] if "rho_of_node" in density else []
    return [*(Condition(k, "u", (k,)) for k in range(features)), *of_noise]


def coordinates_of(particles: xr.Dataset, axis: int) -> FloatArray:
    """Coordinate of each weight of each replica, as nodes of a density have it."""
    U = particles["U"].values
    return U[:, :, axis] if axis < U.shape[2] else np.asarray(particles["rho_of_coordinate"].values)


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
    width: float = 0.35  # neighbouring groups at `CENTRES` overlap
    neighbours: FloatArray | None = None

    def membership(self, u: FloatArray) -> FloatArray:
        """Membership of each of `u` in the group, a degree in [0, 1]."""
        if self.neighbours is None:
            return np.exp(-0.5 * ((u - self.centre) / self.width) ** 2)
        nearest = self.neighbours[np.argmin(np.abs(u[..., None] - self.neighbours), axis=-1)]
        return np.asarray(nearest == self.centre, dtype=float)


def groups_of(density: xr.Dataset, feature: int) -> list[Group]:
    """Groups of the coordinates of feature k, or of variances of the noise, in increasing order."""
    nodes, weight = nodes_of(density)
    values, is_variance = np.unique(nodes[:, feature]), feature == density.sizes["feature"]
    if is_variance and len(values) > len(CENTRES):
        return [VarianceGroup.of(larger, nodes[:, feature], weight) for larger in (False, True)]
    return groups_among(values, len(CENTRES) if is_variance else 3)


def groups_among(values: FloatArray, few: int = 3) -> list[Group]:
    """Groups of coordinates with these values in increasing order: a few are groups of their own."""
    if len(values) <= few:
        return [Group(float(value), neighbours=values) for value in values]
    return [Group(centre) for centre in CENTRES]


@dataclass(frozen=True)
class VarianceGroup(Group):
    """Group of smaller or larger variances, with a membership that few nodes of the spectrum resolve."""

    larger: bool = False

    @classmethod
    def of(cls, larger: bool, rho: FloatArray, weight: FloatArray) -> VarianceGroup:
        """Group with its mean variance as the centre."""
        membership = cls(0.0, larger=larger).membership(rho)
        return cls(float(weight @ (membership * rho) / (weight @ membership)), larger=larger)

    def membership(self, u: FloatArray) -> FloatArray:
        """See `Group.membership`."""
        return np.asarray((u if self.larger else 1.0) / (1.0 + u))


def marginal_distribution(density: Result, time: float) -> tuple[FloatArray, FloatArray]:
    """Distribution function of w alone at the cell edges, and n Var[F_n]; see `group_distribution`."""
    at = density.part(density.dataset.sel(time=time, method="nearest"))
    F = distribution_function(edges_of(density.dataset), marginal_of(at).values)
    return F, np.clip(F * (1 - F), 0.0, None)


def marginal_of(density: Result) -> xr.DataArray:
    """Density of w alone, averaged over cells, of a result or of a part of one; older files lack it, and w|u tells."""
    held = density.dataset
    if "P_w" in held:
        return held["P_w"]
    P, (u, u_weight) = held["P"], nodes_of(held)
    flat = P.values.reshape(-1, *P.shape[-2:])
    P_w, _ = marginal_density(density.problem.coordinates, u, u_weight, edges_of(held), flat)
    return P.isel({P.dims[-2]: 0}, drop=True).copy(data=P_w.reshape(*P.shape[:-2], P.shape[-1]))


def laws_given_u(density: Result, time: float, feature: int) -> Laws:
    """Laws of w given one feature coordinate, at nodes close enough to add them up; see `laws_given`."""
    held = density.dataset
    P = held["P"].sel(time=time, method="nearest").values
    return laws_given(density.problem.coordinates, *nodes_of(held), edges_of(held), P, feature)


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
    u = coordinates_of(particles, feature).ravel()
    return w, u, group.membership(u)
