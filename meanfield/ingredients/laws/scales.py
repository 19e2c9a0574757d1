"""Laws of a random factor r of samples, by which their noise is multiplied: elliptical data, random noise levels.

Adding a law means adding one class here and naming it in `ScaleLaw`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field

from meanfield.ingredients.laws.base import (
    LARGEST,
    Components,
    HiddenPart,
    Recipe,
)
from meanfield.ingredients.laws.hidden import Discrete
from meanfield.ingredients.laws.scale_mixture import gamma_nodes
from meanfield.ingredients.laws.tails import HIGHEST_POWER
from meanfield.typing import FloatArray

REACH = 8.4
"""Standard deviations of a normal variable at which its nodes end: 5e-17 of the probability lies beyond."""


class ScalePart(HiddenPart):
    """Factor of the noise of a sample, and of all of it if wanted."""

    of: Literal["noise", "sample"] = Field(
        default="noise", description="what it multiplies: 'noise', or 'sample' for the signal, too"
    )
    name: str | None = Field(default=None, description="name by which rules read it, if they do")


class DiscreteScale(ScalePart, Discrete):
    """r takes `values` with `probabilities`."""

    values: Annotated[tuple[Annotated[float, Field(ge=0, le=LARGEST)], ...], Field(strict=False, min_length=1)] = Field(
        description="the factors, each >= 0, for instance [0.5, 2.0]"
    )


class _Continuous(ScalePart):
    """Law with a density."""

    @property
    def exact(self) -> bool:
        """See `HiddenPart.exact`."""
        return False


class LogNormal(_Continuous):
    """log r is normal, and E[r^2] = 1."""

    law: Literal["lognormal"] = "lognormal"
    deviation: float = Field(gt=0, le=2, description="standard deviation of log r, for instance 0.5")

    @property
    def largest_power(self) -> float:
        """See `HiddenPart.largest_power`."""
        return HIGHEST_POWER

    def nodes(self, count: int, breaks: Sequence[float] = ()) -> Components:
        """See `HiddenPart.nodes`: a trapezoidal rule for log r, as far as powers of r have their weight."""
        z = np.linspace(-REACH, REACH + self.largest_power * self.deviation, count)
        weight = np.exp(-0.5 * z * z)
        r = np.exp(self.deviation * z - self.deviation**2)
        return weight / weight.sum(), r[:, None], np.zeros((count, 1))

    def recipe(self) -> Recipe:
        """See `HiddenPart.recipe`."""
        return Recipe(
            np.ones(1), np.full((1, 1), -(self.deviation**2)), np.full((1, 1), self.deviation), exponential=True
        )

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """See `HiddenPart.sample`."""
        return rng.lognormal(-(self.deviation**2), self.deviation, (*size, 1))


class StudentScale(_Continuous):
    """Noise that is multiplied by r is Student's t in all coordinates together; E[r^2] = 1."""

    law: Literal["student_t"] = "student_t"
    degrees_of_freedom: float = Field(gt=2, le=1e4, description="a number above 2; moments of lower order exist")

    @property
    def largest_power(self) -> float:
        """See `HiddenPart.largest_power`."""
        return min(self.degrees_of_freedom - 1.0, HIGHEST_POWER)

    def nodes(self, count: int, breaks: Sequence[float] = ()) -> Components:
        """See `HiddenPart.nodes`: (nu - 2)/r^2 is chi-squared."""
        nu = self.degrees_of_freedom
        x, probability = gamma_nodes(nu / 2, self.largest_power / 2, 0.0, count)
        return probability, np.sqrt((nu - 2) / (2 * x))[:, None], np.zeros((count, 1))

    def recipe(self) -> Recipe:
        """See `HiddenPart.recipe`."""
        nu = self.degrees_of_freedom
        mean = np.full((1, 1), 0.5 * math.log((nu - 2) / 2))
        return Recipe(np.ones(1), mean, np.zeros((1, 1)), gamma_shape=nu / 2, gamma_power=-0.5, exponential=True)

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """See `HiddenPart.sample`."""
        nu = self.degrees_of_freedom
        return np.asarray(np.sqrt((nu - 2) / rng.chisquare(nu, (*size, 1))))


ScaleLaw = Annotated[DiscreteScale | LogNormal | StudentScale, Field(discriminator="law")]
