"""Laws of one feature coordinate u, with mean 0 and variance 1.

Adding a law means adding one class here and naming it in `CoordinateLaw`. `default_nodes` are the quadrature nodes that
the density takes with one, two and three features. Continuous laws have a `density`, which is smooth between the points
of their `support`; the quadrature of a discrete law is its values.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field

from meanfield.ingredients.laws.scale_mixture import gauss_rule
from meanfield.ingredients.part import Part
from meanfield.numerics.quadrature import gaussian_trapezoid
from meanfield.typing import FloatArray


class GaussianCoordinate(Part):
    """u ~ N(0, 1)."""

    law: Literal["gaussian"] = "gaussian"
    default_nodes: ClassVar = (47, 25, 13)
    support: ClassVar[tuple[float, ...]] = (-7.5, 7.5)  # 6e-14 of the probability lie beyond

    def density(self, u: FloatArray) -> FloatArray:
        """Probability density at u."""
        return np.asarray(np.exp(-0.5 * u * u) / math.sqrt(2 * math.pi))

    def quadrature(self, nodes: int) -> tuple[FloatArray, FloatArray]:
        """Nodes and weights for expectations over u.

        Under a prior the conditional mean of w bends with u; the trapezoidal rule resolves that with fewer nodes
        than the Gauss rule, over a narrower range. The range is such that cutting costs about as much as the spacing
        (l1 prior of the demo, 32 nodes: error of q 3e-8, of r 5e-7; Gauss-Hermite 5e-5 with 31).
        """
        return gaussian_trapezoid(nodes, cutoff=min(7.0, math.sqrt(8.0 + 0.8 * nodes)))

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """Independent draws of u."""
        return rng.standard_normal(size)


class RademacherCoordinate(Part):
    """u = +-1 with equal probabilities."""

    law: Literal["rademacher"] = "rademacher"
    default_nodes: ClassVar = (2, 2, 2)

    def quadrature(self, nodes: int) -> tuple[FloatArray, FloatArray]:
        """The two values and their probabilities, whatever number of nodes is asked for."""
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """Independent draws of u."""
        return rng.choice(np.array([-1.0, 1.0]), size)


class UniformCoordinate(Part):
    """u is uniform on [-sqrt(3), sqrt(3)]."""

    law: Literal["uniform"] = "uniform"
    default_nodes: ClassVar = (24, 16, 10)
    support: ClassVar[tuple[float, ...]] = (-math.sqrt(3), math.sqrt(3))

    def density(self, u: FloatArray) -> FloatArray:
        """Probability density at u."""
        return np.full_like(u, 0.5 / math.sqrt(3))

    def quadrature(self, nodes: int) -> tuple[FloatArray, FloatArray]:
        """Gauss-Legendre rule for the uniform law."""
        x, weight = np.polynomial.legendre.leggauss(nodes)
        return math.sqrt(3) * x, weight / weight.sum()

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """Independent draws of u."""
        return rng.uniform(-math.sqrt(3), math.sqrt(3), size)


@lru_cache(maxsize=16)
def _half_laplace(nodes: int) -> tuple[FloatArray, FloatArray]:
    """Gauss rule for the density exp(-sqrt(2) u) on [0, LAPLACE_CUTOFF]."""
    x, weight = np.polynomial.legendre.leggauss(300)
    x = 0.5 * LAPLACE_CUTOFF * (x + 1)
    return gauss_rule(x, weight * np.exp(-math.sqrt(2) * x), nodes)


LAPLACE_CUTOFF = 20.0
"""Point at which the quadrature of a Laplace law is cut: 5e-13 of the probability and 2e-10 of the variance lie beyond.
More nodes do not show this error, so that it must be below the tightest tolerance of the density, 1e-10 in q."""


class LaplaceCoordinate(Part):
    """u has the density exp(-sqrt(2) |u|)/sqrt(2)."""

    law: Literal["laplace"] = "laplace"
    default_nodes: ClassVar = (40, 24, 14)
    support: ClassVar[tuple[float, ...]] = (-LAPLACE_CUTOFF, 0.0, LAPLACE_CUTOFF)

    def density(self, u: FloatArray) -> FloatArray:
        """Probability density at u."""
        return np.asarray(np.exp(-math.sqrt(2) * np.abs(u)) / math.sqrt(2))

    def quadrature(self, nodes: int) -> tuple[FloatArray, FloatArray]:
        """A Gauss rule for each half of the law, cut at `LAPLACE_CUTOFF` and scaled to unit variance."""
        half, half_weight = _half_laplace(max(nodes // 2, 1))
        u = np.concatenate([-half[::-1], half])
        probability = np.concatenate([half_weight[::-1], half_weight]) / (2 * half_weight.sum())
        return u / np.sqrt(probability @ (u * u)), probability

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """Independent draws of u."""
        return rng.laplace(0.0, math.sqrt(0.5), size)


class ThreePointCoordinate(Part):
    """u = +-sqrt(fourth_moment) with probability 1/(2 fourth_moment) each, else 0: a sparse feature."""

    law: Literal["three_point"] = "three_point"
    default_nodes: ClassVar = (3, 3, 3)
    fourth_moment: float = Field(ge=1, le=1e6, description="E[u^4] >= 1; u is not 0 with probability 1/fourth_moment")

    def quadrature(self, nodes: int) -> tuple[FloatArray, FloatArray]:
        """The three values and their probabilities, whatever number of nodes is asked for."""
        value, outer = math.sqrt(self.fourth_moment), 0.5 / self.fourth_moment
        return np.array([-value, 0.0, value]), np.array([outer, 1 - 2 * outer, outer])

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """Independent draws of u."""
        u, probability = self.quadrature(3)
        return rng.choice(u, size, p=probability)


CoordinateLaw = Annotated[
    GaussianCoordinate | RademacherCoordinate | UniformCoordinate | LaplaceCoordinate | ThreePointCoordinate,
    Field(discriminator="law"),
]
