"""Laws of weights w averaged over feature coordinates u, from conditional laws at the quadrature nodes in u.

Coordinates are averaged out one after the other, the sharpest first: after that the others are smooth, because their
laws are mixtures. A discrete coordinate has a node for each of its values, and needs nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanfield.ingredients.laws import CoordinateLaw
from meanfield.numerics.fine_rules import ContinuousLaw
from meanfield.numerics.mixed_laws import Mixture
from meanfield.numerics.mixtures import GOOD_ENOUGH, largest_step, resolved, resolving_spacing
from meanfield.numerics.normal_scores import normal_scores
from meanfield.typing import FloatArray, IntArray


@dataclass(frozen=True)
class Laws:
    """Laws of w given u at nodes in u.

    Parameters
    ----------
    edges : ndarray, shape (cells + 1,)
    u : ndarray, shape (nodes, d1)
        NaN for the coordinates that have been averaged out.
    weight : ndarray, shape (nodes,)
        Adding up to one.
    F : ndarray, shape (nodes, cells + 1)
        Distribution functions at the cell edges.
    error : float
        Estimated L1 error of the densities by interpolation in u, averaged over u.
    mirrored : bool
        Whether (w, u) -> (-w, -u) takes the laws, in reverse order, to themselves.
    """

    edges: FloatArray
    u: FloatArray
    weight: FloatArray
    F: FloatArray
    error: float = 0.0
    mirrored: bool = False

    @cached_property
    def z(self) -> FloatArray:
        """Normal scores of F."""
        z = normal_scores(self.edges, np.diff(self.F[: self._own(len(self.F))]))
        return np.concatenate([z, -z[: len(self.F) - len(z)][::-1, ::-1]])

    def _own(self, count: int) -> int:
        """Number of laws, or of lines of them, that are no mirror images of those before."""
        return (count + 1) // 2 if self.mirrored else count

    @property
    def average(self) -> FloatArray:
        """Distribution function of w at the cell edges, averaged over u."""
        return np.asarray(self.weight @ self.F)

    def lines(self, axis: int) -> list[IntArray]:
        """Nodes that differ in one coordinate only, in its order."""
        others = np.delete(self.u, axis, axis=1)
        others = others[:, ~np.isnan(others).any(axis=0)]
        order = np.lexsort((self.u[:, axis], *others.T))
        return np.split(order, np.flatnonzero(np.any(np.diff(others[order], axis=0) != 0, axis=1)) + 1)

    def sharpness(self, axis: int) -> float:
        """Largest step of normal scores from node to node along a coordinate."""
        return max(largest_step(self.weight[line], self.z[line]) for line in self.lines(axis))

    def averaged(self, axis: int, law: ContinuousLaw, good_enough: float, summed: bool) -> Laws:
        """Laws with one coordinate averaged out, which will be `summed` or shown one by one.

        In a sum rare ones may have larger errors: at the ends of a law of u they are the narrowest.
        """
        lines = self.lines(axis)
        weight = np.array([self.weight[line].sum() for line in lines])
        allowed = good_enough / np.minimum(1.0, len(lines) * weight if summed else 1.0) * np.ones(len(lines))
        mixtures = [
            self._mixture(lines[k], float(allowed[k]), axis, law, mirrored=self.mirrored and 2 * k + 1 == len(lines))
            for k in range(self._own(len(lines)))
        ]
        u = self.u[[line[0] for line in lines]]
        u[:, axis] = np.nan
        F, errors = (np.array([getattr(each, name) for each in mixtures]) for name in ("average", "error"))
        images = len(lines) - len(mixtures)
        F, errors = np.concatenate([F, 1.0 - F[:images][::-1, ::-1]]), np.concatenate([errors, errors[:images][::-1]])
        return Laws(self.edges, u, weight, F, self.error + float(weight @ errors), self.mirrored)

    def refined(self, axis: int, law: ContinuousLaw, spacing: float) -> Laws:
        """Laws at values of one coordinate that are as close as asked for, and as it takes to add them up."""
        lines = self.lines(axis)
        needed = [resolving_spacing(self.u[line, axis], self.weight[line], self.z[line]) for line in lines]
        mixtures = [self._mixture(line, GOOD_ENOUGH, axis, law, min(spacing, *needed)) for line in lines]
        counts = [len(mixture.u) for mixture in mixtures]
        u = np.repeat(self.u[[line[0] for line in lines]], counts, axis=0)
        u[:, axis] = np.concatenate([mixture.u for mixture in mixtures])
        shares = np.array([self.weight[line].sum() for line in lines])
        weight = np.repeat(shares, counts) * np.concatenate([mixture.weight for mixture in mixtures])
        error = self.error + float(shares @ [mixture.error for mixture in mixtures])
        return Laws(self.edges, u, weight, np.concatenate([mixture.F for mixture in mixtures]), error)

    def _mixture(
        self,
        line: IntArray,
        good_enough: float,
        axis: int,
        law: ContinuousLaw,
        spacing: float | None = None,
        mirrored: bool = False,
    ) -> Mixture:
        """Mixture over one coordinate for given values of the others."""
        u, weight, share = self.u[line, axis], self.weight[line], float(self.weight[line].sum())
        if share < 1e-6:  # laws of so unlikely values are added up as they are
            return Mixture.of(u, weight / share, self.F[line], 2.0)  # an error as large as L1 distances can be
        return resolved(law, u, weight / share, self.edges, self.F[line], self.z[line], spacing, good_enough, mirrored)


def laws_given(
    coordinates: Sequence[CoordinateLaw],
    u: FloatArray,
    u_weight: FloatArray,
    edges: FloatArray,
    P: FloatArray,
    feature: int | None = None,
    good_enough: float = GOOD_ENOUGH,
) -> Laws:
    """Laws of w given one feature coordinate, or given none of the continuous ones.

    Parameters
    ----------
    coordinates : sequence of CoordinateLaw
        Laws of the coordinates, whose number is d1.
    u, u_weight : ndarray, shape (nodes, d1) and (nodes,)
        Quadrature rule for them.
    edges : ndarray, shape (cells + 1,)
    P : ndarray, shape (nodes, cells)
        P(w|u) averaged over cells.
    feature : int, optional
        Number of the coordinate that is not averaged out. If it is continuous, nodes in it are at most 0.25 apart.
    good_enough : float
        Error by interpolation in u with which no better way is looked for.
    """
    masses = P * np.diff(edges)
    F = np.zeros((len(u), len(edges)))
    # Without the least numbers that there are, for which processors take long.
    np.cumsum(np.where(masses > 1e-100, masses, 0.0), axis=1, out=F[:, 1:])
    laws = Laws(edges, u, u_weight, F, mirrored=_are_images(u, u_weight, edges, P))
    continuous = {k: law for k, law in enumerate(coordinates) if isinstance(law, ContinuousLaw)}
    others = [k for k in continuous if k != feature]
    for k in sorted(others, key=laws.sharpness, reverse=True) if len(others) > 1 else others:
        laws = laws.averaged(k, continuous[k], good_enough, summed=feature is None)
    if feature is not None and feature in continuous:
        # Laws are shown given nodes at most 0.25 apart.
        return laws.refined(feature, continuous[feature], 0.25)
    return laws


def _are_images(u: FloatArray, u_weight: FloatArray, edges: FloatArray, P: FloatArray) -> bool:
    """Whether (w, u) -> (-w, -u) takes laws to themselves; solutions copy them, so that densities are the same."""
    if not np.array_equal(P, P[::-1, ::-1]):
        return False
    pairs = (u, -u[::-1]), (u_weight, u_weight[::-1]), (edges, -edges[::-1])
    return all(np.allclose(a, b, rtol=0, atol=1e-13 * np.abs(a).max()) for a, b in pairs)  # equal to rounding


def marginal_density(
    coordinates: Sequence[CoordinateLaw],
    u: FloatArray,
    u_weight: FloatArray,
    edges: FloatArray,
    P: FloatArray,
    good_enough: float = GOOD_ENOUGH,
) -> tuple[FloatArray, FloatArray]:
    """Density of w alone at several times, averaged over cells, and its error by interpolation in u.

    Parameters
    ----------
    coordinates, u, u_weight, edges
        As for `laws_given`.
    P : ndarray, shape (times, nodes, cells)
        P(w|u) averaged over cells; NaN at times that were not reached.
    good_enough : float
        As for `laws_given`; infinite for the cheapest way, whatever its error.

    Returns
    -------
    P_w : ndarray, shape (times, cells)
        Of the same mass as P.
    error : ndarray, shape (times,)
        Estimated L1 distance from the density for infinitely many nodes.
    """
    P_w, error = np.full((len(P), P.shape[2]), np.nan), np.full(len(P), np.nan)
    for index, each in enumerate(P):
        if np.isfinite(each).all():
            laws = laws_given(coordinates, u, u_weight, edges, each, good_enough=good_enough)
            P_w[index], error[index] = np.maximum(np.diff(laws.average), 0.0) / np.diff(edges), laws.error
    return P_w, error
