"""Laws of the hidden variables once more, and the density of B = c.q + s e.

A law is read from its table: it is a mixture of points and Gaussians, or it has a density. With a density the sum with
s e is a convolution, done numerically; nothing is known here about uniform laws, Laplace's or Student's but p(c).
"""

from __future__ import annotations

from itertools import product
from math import gamma, inf, pi, prod, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import roots_legendre

TAIL = 10.0
"""Standard deviations at which the tails of Gaussians are cut: E[x^10] beyond is 3e-16 of all."""

PANEL = 3.0
"""Width of a panel in standard deviations."""

NODES, WEIGHTS = roots_legendre(16)


def gauss_legendre(edges):
    """Nodes and weights between edges (..., n + 1), shape (..., 16 n)."""
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[..., 1:] + edges[..., :-1])
    shape = (*edges.shape[:-1], -1)
    return (middle[..., None] + half[..., None] * NODES).reshape(shape), (half[..., None] * WEIGHTS).reshape(shape)


def march(low, high, breaks, width):
    """Edges from low to high, all breaks in between among them, at most width(x) apart."""
    edges = [low]
    for stop in sorted({b for b in breaks if low < b < high} | {high}):
        while edges[-1] < stop:
            step = width(edges[-1])
            edges.append(edges[-1] + step if edges[-1] + step * (1 + 1e-9) < stop else stop)
    return np.array(edges)


def normal_density(x):
    return np.exp(-0.5 * x * x) / sqrt(2 * pi)


class Density(NamedTuple):
    """A law with the density p(c), smooth on panels of `width`(c) between `breaks`, negligible beyond `reach`."""

    p: callable
    breaks: tuple[float, ...]
    width: callable
    reach: float

    @property
    def edges(self):
        return march(-self.reach, self.reach, self.breaks, self.width)


def density_law(table: dict, growth: int) -> Density | None:
    """The law of the table if it has a density that is not Gaussian."""
    m2 = table.get("second_moment", 1.0)
    if table["law"] == "uniform":
        half = sqrt(3 * m2)
        return Density(lambda c: np.where(np.abs(c) <= half, 0.5 / half, 0.0), (-half, half), lambda c: inf, half)
    if table["law"] == "laplace":
        b = sqrt(m2 / 2)
        return Density(lambda c: np.exp(-np.abs(c) / b) / (2 * b), (0.0,), lambda c: 4 * b, 75 * b)
    if table["law"] == "student_t":
        nu = table["degrees_of_freedom"]
        scale = sqrt(m2 * (nu - 2) / nu)
        factor = gamma((nu + 1) / 2) / (gamma(nu / 2) * sqrt(nu * pi) * scale)
        power = max(4 * growth - 2, 1)
        # where the tail of E|c|^power, a constant times c^(power - nu), falls below 1e-15
        reach = 10 * sqrt(nu) * 1e15 ** (1 / (nu - power))
        return Density(
            lambda c: factor * (1 + (c / scale) ** 2 / nu) ** (-(nu + 1) / 2),
            (0.0,),
            lambda c: scale * (1.2 + abs(c / scale) / 3),
            scale * reach,
        )
    return None


def components(table: dict):
    """Probabilities, means and variances of a mixture of points and Gaussians."""
    law = table["law"]
    if law == "gaussian":
        return np.ones(1), np.zeros(1), np.array([table["second_moment"]])
    if law == "gaussian_mixture":
        return tuple(np.array(table[key], dtype=float) for key in ("probabilities", "means", "variances"))
    if law == "three_point":
        m2, m4 = table["second_moment"], table["fourth_moment"]
        outer = m2**2 / m4
        p, values = [outer / 2, 1 - outer, outer / 2], sqrt(m4 / m2) * np.array([1, 0, -1])
    elif law == "two_point":
        p, values = [table.get("probability", 0.5), 1 - table.get("probability", 0.5)], table["values"]
    elif law == "rademacher":
        p, values = [0.5, 0.5], sqrt(table.get("second_moment", 1.0)) * np.array([1, -1])
    else:
        assert law == "discrete", law
        p, values = table["probabilities"], table["values"]
    return np.array(p), np.array(values, dtype=float), np.zeros(len(p))


class Hidden:
    """The joint law of all c: a mixture with diagonal covariances, times one density at most.

    Parameters
    ----------
    tables : list of dict, or dict
        A law per feature, or one table for all of them.
    growth : int
        Of the activation.
    fine : float
        Densities of further features become points, 16 per panel of at most this width.

    Attributes
    ----------
    probability, mean, variance : ndarray, shape (A,), (A, d1), (A, d1)
    density : Density or None
        Of feature `special`, whose mean and variance are 0 in the mixture.
    """

    def __init__(self, tables, growth=1, fine=0.5):
        self.density, self.special = None, -1
        if isinstance(tables, dict):
            self.probability = np.array(tables["probabilities"])
            self.mean = np.array(tables["values"], dtype=float)
            self.variance = np.zeros_like(self.mean)
            return
        parts = []
        densities = [density_law(table, growth) for table in tables]
        widest = max((density.reach for density in densities if density), default=0.0)
        for k, (table, density) in enumerate(zip(tables, densities, strict=True)):
            if density is None:
                parts.append(components(table))
            elif self.density is None and density.reach == widest:
                self.density, self.special = density, k
                parts.append((np.ones(1), np.zeros(1), np.zeros(1)))
            else:
                width = lambda c, d=density: min(d.width(c), fine)  # noqa: E731
                c, w = gauss_legendre(march(-density.reach, density.reach, density.breaks, width))
                w = w * density.p(c)
                parts.append((w[w > 1e-20], c[w > 1e-20], np.zeros(np.sum(w > 1e-20))))
        self.probability = np.array([prod(p) for p in product(*(part[0] for part in parts))])
        self.mean = np.array(list(product(*(part[1] for part in parts))))
        self.variance = np.array(list(product(*(part[2] for part in parts))))

    def deviations(self, q, s):
        """Standard deviation of the Gaussian part of B in each component, at least 0."""
        return np.sqrt(np.maximum(s * s + self.variance @ (q * q), 0.0))

    def densities(self, x, q, s):
        """f(x) of B = c.q + s e, -f'(x), and f_k(x) = E[c_k; B = x], shape (2 + d1, x.size)."""
        result = np.zeros((2 + q.size, x.size))
        for p, mean, variance, deviation in zip(
            self.probability, self.mean, self.variance, self.deviations(q, s), strict=True
        ):
            z = x - mean @ q
            overlap = q[self.special] if self.density is not None else 0.0
            if overlap == 0.0:
                f = normal_density(z / deviation) / deviation
                score, special = z / deviation**2 * f, 0.0 * f  # all our densities have mean 0
            else:
                f, score, special = _convolution(self.density, z, overlap, deviation)
            result[0] += p * f
            result[1] += p * score
            result[2:] += p * (mean[:, None] * f + (variance * q)[:, None] * score)
            if self.density is not None:
                result[2 + self.special] += p * special
        return result


def _convolution(law, z, q, s):
    """f(z) = E_e[p((z - s e)/q)]/|q|, -f'(z) and E[c; z] for B = q c + s e, one quadrature over e for each z."""
    breaks = np.arange(-TAIL, TAIL + PANEL, PANEL)
    edges = np.concatenate(
        [np.broadcast_to(breaks, (z.size, breaks.size)), (z[:, None] - q * law.edges) / s], axis=1
    ).clip(-TAIL, TAIL)
    e, w = gauss_legendre(np.sort(edges, axis=1))
    c = (z[:, None] - s * e) / q
    # within rounding of an edge the panel says on which side we are
    w = (
        w
        * normal_density(e)
        * law.p(np.clip(c, -law.reach, law.reach))
        * (np.abs(c) <= law.reach * (1 + 1e-13))
        / abs(q)
    )
    return w.sum(axis=1), (e * w).sum(axis=1) / s, (c * w).sum(axis=1)
