"""Laws of the residual xi of the initial weights w = U q(0) + sqrt(1 - |q(0)|^2) xi, with mean 0 and variance 1.

A law that is not smooth is smoothed, for the density and for SGD alike: xi = sqrt(1 - eps^2) a + eps n with a from the
law, n ~ N(0, 1) and eps = `smoothing`. Adding a law means adding one class here and naming it in `ResidualLaw`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri_exp

from meanfield.ingredients.part import Part
from meanfield.typing import FloatArray

SCORE_POINTS, SCORE_REACH = 40, 10.0
"""Gauss-Legendre points of normal scores of the uniform law, and the standard deviations that they cover."""


class GaussianResidual(Part):
    """xi ~ N(0, 1)."""

    law: Literal["gaussian"] = "gaussian"

    def cell_average(self, edges: FloatArray, mean: FloatArray, deviation: float) -> FloatArray:
        """Averages over cells of the densities of mean_j + deviation xi.

        Returns
        -------
        ndarray, shape (len(mean), len(edges) - 1)
        """
        z = (edges[None, :] - mean[:, None]) / deviation
        # Differences of the smaller tail keep relative accuracy far from the mean.
        upper = z[:, :-1] > 0
        mass = np.where(upper, ndtr(-z[:, :-1]) - ndtr(-z[:, 1:]), ndtr(z[:, 1:]) - ndtr(z[:, :-1]))
        return np.asarray(mass / np.diff(edges))

    def score(self, x: FloatArray) -> FloatArray:
        """Normal score of x: the number below which N(0, 1) lies as often as xi lies below x."""
        return x

    def sample(self, rng: Generator, size: int) -> FloatArray:
        """Independent draws of xi."""
        return rng.standard_normal(size)


def _score_of_symmetric(x: FloatArray, log_below: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Normal score, from the logarithm of the distribution function at negative numbers."""
    return np.asarray(np.where(x > 0, -1.0, 1.0) * ndtri_exp(log_below(-np.abs(x))))


class _Smoothed(Part):
    """Law of a residual that can be smoothed by a Gaussian."""

    smoothing: float = Field(
        default=0.2, ge=0.02, lt=1, description="share of Gaussian noise eps in xi = sqrt(1 - eps^2) a + eps n"
    )

    @property
    def sharp(self) -> float:
        """Factor of the variable a."""
        return math.sqrt(1 - self.smoothing**2)

    def _draw(self, rng: Generator, size: int) -> FloatArray:
        """Independent draws of a."""
        raise NotImplementedError

    def sample(self, rng: Generator, size: int) -> FloatArray:
        """Independent draws of xi."""
        a = self._draw(rng, size)
        return self.sharp * a + self.smoothing * rng.standard_normal(size)


class UniformResidual(_Smoothed):
    """a is uniform on [-sqrt(3), sqrt(3)]."""

    law: Literal["uniform"] = "uniform"

    def cell_average(self, edges: FloatArray, mean: FloatArray, deviation: float) -> FloatArray:
        """See `GaussianResidual.cell_average`; by the integral z Phi(z) + Phi'(z) of the distribution function Phi."""
        half_width = math.sqrt(3) * self.sharp
        z = (edges[None, :] - mean[:, None]) / deviation

        def integral(x: FloatArray) -> FloatArray:
            x = x / self.smoothing
            return np.asarray(x * ndtr(x) + np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi))

        # The law is symmetric: from the lower side the distribution function is small where it should be.
        below = -np.abs(z)
        tail = 0.5 * self.smoothing / half_width * (integral(below + half_width) - integral(below - half_width))
        left, right, same_side = tail[:, :-1], tail[:, 1:], z[:, :-1] * z[:, 1:] >= 0
        mass = np.where(same_side, np.abs(right - left), 1 - left - right)
        return np.asarray(mass / np.diff(edges))

    def score(self, x: FloatArray) -> FloatArray:
        """See `GaussianResidual.score`."""
        points, weights = np.polynomial.legendre.leggauss(SCORE_POINTS)
        width = math.sqrt(3) * self.sharp

        def log_below(y: FloatArray) -> FloatArray:
            # The part of [-width, width] whose Gaussians reach y, which is what Gauss-Legendre points must resolve.
            low = np.clip(y - SCORE_REACH * self.smoothing, -width, width)
            high = np.clip(y + SCORE_REACH * self.smoothing, -width, width)
            centre, half = 0.5 * (low + high), 0.5 * (high - low)
            terms = log_ndtr((y[..., None] - centre[..., None] - half[..., None] * points) / self.smoothing)
            certain = (low + width) / (2 * width)
            near = logsumexp(terms, axis=-1, b=weights * half[..., None] / (2 * width))
            far = logsumexp(log_ndtr((y[..., None] - width * points) / self.smoothing), axis=-1, b=0.5 * weights)
            with np.errstate(divide="ignore"):
                inside = np.logaddexp(near, np.log(certain))
            return np.asarray(np.where(half > 0, inside, far))

        return _score_of_symmetric(x, log_below)

    def _draw(self, rng: Generator, size: int) -> FloatArray:
        return rng.uniform(-math.sqrt(3), math.sqrt(3), size)


class _Atoms(_Smoothed):
    """Law of a variable a with finitely many values."""

    @property
    def _atoms(self) -> tuple[FloatArray, FloatArray]:
        """Values and their probabilities."""
        raise NotImplementedError

    def cell_average(self, edges: FloatArray, mean: FloatArray, deviation: float) -> FloatArray:
        """See `GaussianResidual.cell_average`: one Gaussian per value."""
        gaussian, width = GaussianResidual(), deviation * self.smoothing
        values, probability = self._atoms
        averages = [gaussian.cell_average(edges, mean + deviation * self.sharp * a, width) for a in values]
        return np.asarray(np.tensordot(probability, averages, axes=1))

    def score(self, x: FloatArray) -> FloatArray:
        """See `GaussianResidual.score`."""
        values, probability = self._atoms

        def log_below(y: FloatArray) -> FloatArray:
            terms = log_ndtr((y[..., None] - self.sharp * values) / self.smoothing)
            return np.asarray(logsumexp(terms, axis=-1, b=probability))

        return _score_of_symmetric(x, log_below)

    def _draw(self, rng: Generator, size: int) -> FloatArray:
        values, probability = self._atoms
        return rng.choice(values, size, p=probability)


class RademacherResidual(_Atoms):
    """a = +-1 with equal probabilities."""

    law: Literal["rademacher"] = "rademacher"

    @property
    def _atoms(self) -> tuple[FloatArray, FloatArray]:
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])


class ThreePointResidual(_Atoms):
    """a = +-sqrt(fourth_moment) with probability 1/(2 fourth_moment) each, else 0: sparse initial weights."""

    law: Literal["three_point"] = "three_point"
    fourth_moment: float = Field(ge=1, le=100, description="E[a^4] >= 1; a is not 0 with probability 1/fourth_moment")

    @property
    def _atoms(self) -> tuple[FloatArray, FloatArray]:
        value, outer = math.sqrt(self.fourth_moment), 0.5 / self.fourth_moment
        return np.array([-value, 0.0, value]), np.array([outer, 1 - 2 * outer, outer])


ResidualLaw = Annotated[
    GaussianResidual | UniformResidual | RademacherResidual | ThreePointResidual, Field(discriminator="law")
]
