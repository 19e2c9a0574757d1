"""Density and averages at t = 0, kinks of the prior, and the mirror symmetry that halves the nodes to solve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.special import ndtr

from meanfield.ingredients.laws import CoordinateLaw
from meanfield.ingredients.laws.residual import GaussianResidual
from meanfield.ingredients.priors import PriorSettings
from meanfield.mckean_vlasov.cells import feature_quadrature
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.fine_rules import ContinuousLaw
from meanfield.numerics.finite_volumes.grid import Grid
from meanfield.numerics.quadrature import gaussian_trapezoid, panel_rule, tensor_rule
from meanfield.typing import FloatArray

PER_DEVIATION, DEGREE = 12.0, 7
"""Values of an average over Gaussian weights by their deviation, and degree of the spline between them."""


def initial_density(limit: Limit, grid: Grid) -> FloatArray:
    """Density at t = 0 as cell averages of unit mass, shape (nodes, cells).

    It is that of W = u.q(0) + sqrt(E[w^2] - |q(0)|^2) xi, or the law that the limit starts from.
    """
    if limit.initial_law is not None:
        P = limit.initial_law.cell_average(grid.edges, grid.u)
    else:
        P = limit.initial_residual.cell_average(grid.edges, limit.initial_means(grid.u), limit.initial_deviation)
    return np.asarray(P / (P.sum(axis=1, keepdims=True) * grid.h))


class Symmetric(Protocol):
    """Parts of a limit that decide whether (w, u) -> (-w, -u) leaves densities as they are; starts are symmetric."""

    @property
    def coordinates(self) -> tuple[CoordinateLaw, ...]:
        """Laws of the features."""

    @property
    def priors(self) -> tuple[PriorSettings, ...]:
        """Priors of the weights, one for each phase."""


@dataclass(frozen=True)
class Nodes:
    """Quadrature nodes of u, and those of them that need no solution because they are mirror images.

    Parameters
    ----------
    u : ndarray, shape (nodes, d1)
        With the variance of the noise as a last column where variances differ, and no mirror images then.
    u_weight : ndarray, shape (nodes,)
    mirrored : bool
        Whether (w, u) -> (-w, -u) leaves the density as it is.
    """

    u: FloatArray
    u_weight: FloatArray
    mirrored: bool

    @classmethod
    def of(cls, limit: Symmetric, nodes: int | None, scale: float = 1.0) -> Nodes:
        """Nodes for the coordinates of a limit; see `feature_quadrature`."""
        return cls.with_symmetry(limit, *feature_quadrature(limit.coordinates, nodes, scale))

    @classmethod
    def of_limit(cls, limit: Limit, nodes: int | None, scale: float = 1.0) -> Nodes:
        """Nodes of the law that a limit starts from, which is known at these alone; without one those of `of`."""
        law = limit.initial_law
        if law is None:
            return cls.with_symmetry(limit, *feature_quadrature(limit.coordinates, nodes, scale, limit.spectrum))
        own = cls.with_symmetry(limit, law.u, law.u_weight)
        return replace(own, mirrored=own.mirrored and law.is_symmetric)

    @classmethod
    def with_symmetry(cls, limit: Symmetric, u: FloatArray, weight: FloatArray) -> Nodes:
        """Nodes of a rule, mirrored if it and the priors of the limit are."""
        pairs = (u, -u[::-1], np.abs(u).max()), (weight, weight[::-1], weight.max())
        return cls(u, weight, all(_alike(*pair) for pair in pairs) and all(map(_is_odd, limit.priors)))

    @property
    def solved(self) -> tuple[FloatArray, FloatArray]:
        """The nodes to solve, with the weights of their images."""
        if not self.mirrored:
            return self.u, self.u_weight
        nodes = len(self.u_weight)
        weight = self.u_weight[: (nodes + 1) // 2].copy()
        weight[: nodes // 2] *= 2.0
        return self.u[: len(weight)], weight

    def unfolded(self, P: FloatArray, axis: int, *cells: int) -> FloatArray:
        """Densities of all nodes from those that were solved, along an axis; mirror images reverse those of cells."""
        if not self.mirrored:
            return P
        images = np.take(P, np.arange(len(self.u_weight) // 2), axis)
        return np.concatenate([P, np.flip(images, (axis, *cells))], axis)


def node_scale(tolerance: float, given: int | None) -> float:
    """Factor on the number of nodes to begin with; errors fall exponentially with the nodes."""
    return 1.0 if given else math.log(tolerance) / math.log(1e-8)  # for which the default numbers are a good start


def _is_odd(prior: PriorSettings) -> bool:
    """Whether weights of both signs are pulled alike."""
    w = np.concatenate([np.linspace(0.05, 8.0, 33), np.geomspace(10.0, 1e4, 8)])
    up, down = prior.force(w), -prior.force(-w)
    # Far out a force may be so large, or infinite, that beside it all others would be alike.
    return _alike(up, down, np.maximum.accumulate(np.abs(up)))


def _alike(a: FloatArray, b: FloatArray, scale: FloatArray | float) -> bool:
    """Whether two arrays are equal up to rounding of numbers of a size; infinite ones exactly."""
    finite = np.isfinite(a) & np.isfinite(b)
    gap = np.abs(np.subtract(a, b, out=np.zeros_like(a), where=finite))
    # Largest difference of two mirror images by rounding, relative to the largest value.
    return bool(np.all(np.where(finite, gap <= 1e-13 * scale, a == b)))


@lru_cache(maxsize=4)
def initial_work(limit: Limit) -> float:
    """E[w phi(w)] at t = 0; NaN where it is not found, or the residual is not Gaussian."""
    if limit.initial_law is not None or not isinstance(limit.initial_residual, GaussianResidual):
        return math.nan
    return gaussian_work(limit.prior, limit.coordinates, limit.initial_overlap, limit.initial_norm)


def gaussian_work(
    prior: PriorSettings, coordinates: Sequence[CoordinateLaw], q: FloatArray, norm: float = 1.0
) -> float:
    """E[w phi(w)] of Gaussian weights w = u.q + sqrt(E[w^2] - |q|^2) xi, by rules in u for them.

    Rules that follow a solution need not resolve the kinks of a prior at its start: weights begin around u.q(0), and
    lean on u.g later on.

    Returns
    -------
    float
        NaN where it is not found: weights given u are too narrow for rules of a moderate size.
    """
    deviation = math.sqrt(max(norm - float(q @ q), 0.0))
    if deviation < 1e-4:  # no such rules
        return math.nan
    rules = [_rule(law, deviation / max(abs(q_k), deviation)) for law, q_k in zip(coordinates, q, strict=True)]
    if math.prod(len(weight) for _, weight in rules) > 200_000:  # too many for these averages
        return math.nan
    u, weight = tensor_rule(rules, 1e-17)  # weights of nodes that move no average
    means = u @ q
    reach = float(np.abs(means).max()) + deviation
    grid = np.linspace(-reach, reach, math.ceil(2.0 * reach * PER_DEVIATION / deviation) + DEGREE)
    blocks = np.array_split(grid, math.ceil(len(grid) / 4096))  # each takes some megabytes
    work = np.concatenate([_work_given_means(prior, block, deviation) for block in blocks])
    return float(weight @ make_interp_spline(grid, work, k=DEGREE)(means))


def _rule(law: CoordinateLaw, scale: float) -> tuple[FloatArray, FloatArray]:
    """Rule for functions of a coordinate that vary on a scale of at most 1."""
    if not isinstance(law, ContinuousLaw):
        return law.quadrature(law.default_nodes[0])
    # Narrow enough for weights given u, and the law of u.
    pieces = [np.linspace(a, b, math.ceil((b - a) / (1.5 * scale)) + 1) for a, b in pairwise(law.support)]
    return panel_rule(np.unique(np.concatenate(pieces)), law.density)


def _work_given_means(prior: PriorSettings, means: FloatArray, deviation: float) -> FloatArray:
    """E[w phi(w)] for Gaussian weights w of some means; kinks of phi are integrated exactly, the rest by sums."""
    kinks, jumps, bends = kinks_of(prior)
    z, weight = gaussian_trapezoid(65)  # what is left of a force without its kinks is smooth
    w = means[:, None] + deviation * z
    force = prior.force(w)
    exact = np.zeros_like(means)
    for kink, jump, bend in zip(kinks, jumps, bends, strict=True):
        beyond, far = w > kink, (means - kink) / deviation
        force -= np.where(beyond, jump + bend * (w - kink), 0.0)
        above, density = ndtr(far), np.exp(-0.5 * far * far) / math.sqrt(2.0 * math.pi)
        first = (means - kink) * above + deviation * density
        second = ((means - kink) ** 2 + deviation**2) * above + (means - kink) * deviation * density
        exact += jump * (first + kink * above) + bend * (second + kink * first)
    return (w * force) @ weight + exact


def kinks_of(prior: PriorSettings) -> FloatArray:
    """Kinks of the prior and the jumps there of phi and of its slope, shape (3, kinks)."""
    rows = []
    for kink in prior.functions.kinks:
        near, step = 1e-7 * (1 + abs(kink)), 1e-5 * (1 + abs(kink))
        points = kink + np.array([-2 * near, -near, near, 2 * near, -2 * step, -step, step, 2 * step])
        f = prior.force(points)
        jump = (2 * f[2] - f[3]) - (2 * f[1] - f[0])
        bend = (f[7] - f[6]) / step - (f[5] - f[4]) / step
        size = 1e-6 * max(prior.strength, float(np.abs(f).max()))
        rows.append((kink, jump if abs(jump) > size else 0.0, bend if abs(bend) > 1e2 * size else 0.0))
    return np.array(rows, dtype=float).reshape(-1, 3).T.copy()
