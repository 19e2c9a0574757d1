"""Laws of one hidden variable with tails: Gaussians of a random variance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field

from meanfield.errors import InputError
from meanfield.ingredients.laws.base import Components, HiddenPart, Recipe, SecondMoment
from meanfield.ingredients.laws.scale_mixture import gamma_nodes, gamma_trapezoid
from meanfield.typing import FloatArray

HIGHEST_POWER = 24.0
"""Power of a variable with tails, up to which nodes are laid out: that of the square of a polynomial of degree 12."""


class _ScaleMixture(HiddenPart):
    """c = sqrt(v) n with Gaussian n and a random variance v."""

    @property
    def exact(self) -> bool:
        """See `HiddenPart.exact`."""
        return False

    def variances(self, power: float) -> tuple[FloatArray, FloatArray]:
        """Values of v and their probabilities, to double precision for averages of |c|^power."""
        raise NotImplementedError

    def components(self, power: float) -> Components:
        """See `HiddenPart.components`."""
        variance, probability = self.variances(power)
        return probability, np.zeros((len(variance), 1)), variance[:, None]

    def some_variances(self, count: int) -> tuple[FloatArray, FloatArray]:
        """That many values of v and their probabilities."""
        raise NotImplementedError

    def nodes(self, count: int, breaks: Sequence[float] = ()) -> Components:
        """See `HiddenPart.nodes`: averages over n are smooth in v wherever functions of c jump."""
        variance, probability = self.some_variances(count)
        return probability, np.zeros((len(variance), 1)), variance[:, None]


def _check_power(law: str, power: float) -> None:
    if not math.isfinite(power):
        raise InputError(
            f"features.hidden.law = '{law}': the activation grows faster than any power, so that averages over c may "
            "not exist; use a hidden law with lighter tails, or an activation that grows like a power"
        )


class Laplace(_ScaleMixture):
    """c has the density exp(-|c|/b)/(2 b) with 2 b^2 = second_moment."""

    law: Literal["laplace"] = "laplace"
    second_moment: SecondMoment = 1.0

    def variances(self, power: float) -> tuple[FloatArray, FloatArray]:
        """See `_ScaleMixture.variances`: v/m2 is exponential."""
        _check_power("laplace", power)
        x, probability = gamma_trapezoid(1.0, 0.0, power / 2)
        return self.second_moment * x, probability

    @property
    def largest_power(self) -> float:
        """See `HiddenPart.largest_power`."""
        return HIGHEST_POWER

    def some_variances(self, count: int) -> tuple[FloatArray, FloatArray]:
        """See `_ScaleMixture.some_variances`."""
        x, probability = gamma_nodes(1.0, 0.0, self.largest_power / 2, count)
        return self.second_moment * x, probability

    def recipe(self) -> Recipe:
        """See `HiddenPart.recipe`: the variance is exponential."""
        return Recipe(np.ones(1), np.zeros((1, 1)), np.sqrt(self.second_moment) * np.ones((1, 1)), gamma_power=0.5)

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """See `HiddenPart.sample`."""
        return rng.laplace(0.0, np.sqrt(self.second_moment / 2), (*size, 1))


class StudentT(_ScaleMixture):
    """c is Student's t, scaled to `second_moment`; moments of order `degrees_of_freedom` and above do not exist."""

    law: Literal["student_t"] = "student_t"
    degrees_of_freedom: float = Field(gt=2, le=1e4, description="a number above 2; moments of lower order exist")
    second_moment: SecondMoment = 1.0

    def variances(self, power: float) -> tuple[FloatArray, FloatArray]:
        """See `_ScaleMixture.variances`: (nu - 2) m2 / v is chi-squared."""
        nu = self.degrees_of_freedom
        _check_power("student_t", power)
        if nu <= power + 1:
            raise InputError(
                f"features.hidden.degrees_of_freedom = {nu}: the closures average c to the power {power:.3g} with this "
                f"activation, which takes more than {power + 1:.3g} degrees of freedom; raise them, or use an "
                "activation that grows more slowly"
            )
        x, probability = gamma_trapezoid(nu / 2, power / 2, 0.0)
        return self.second_moment * (nu - 2) / (2 * x), probability

    @property
    def largest_power(self) -> float:
        """See `HiddenPart.largest_power`: tails of the average of a higher one end too late."""
        return min(self.degrees_of_freedom - 1.0, HIGHEST_POWER)

    def some_variances(self, count: int) -> tuple[FloatArray, FloatArray]:
        """See `_ScaleMixture.some_variances`."""
        nu = self.degrees_of_freedom
        x, probability = gamma_nodes(nu / 2, self.largest_power / 2, 0.0, count)
        return self.second_moment * (nu - 2) / (2 * x), probability

    def recipe(self) -> Recipe:
        """See `HiddenPart.recipe`: the inverse of the variance is a gamma variable."""
        nu = self.degrees_of_freedom
        deviation = np.sqrt(self.second_moment * (nu - 2) / 2) * np.ones((1, 1))
        return Recipe(np.ones(1), np.zeros((1, 1)), deviation, gamma_shape=nu / 2, gamma_power=-0.5)

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """See `HiddenPart.sample`."""
        nu = self.degrees_of_freedom
        return np.asarray(np.sqrt(self.second_moment * (nu - 2) / nu) * rng.standard_t(nu, (*size, 1)))
