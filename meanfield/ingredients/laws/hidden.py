"""Laws of one hidden variable c, and of all together for features that depend on each other.

Adding a law means adding one class here and naming it in `HiddenLaw`, or in `JointLaw`. The theory asks only that the
hidden variables of a sample are drawn together, so that mixed moments enter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.random import Generator
from pydantic import BeforeValidator, Field
from scipy.special import ndtri

from meanfield.ingredients.laws.base import (
    AtomicPart,
    Components,
    HiddenPart,
    Probabilities,
    Recipe,
    SecondMoment,
    Values,
    check_not_zero,
    check_probabilities,
    column,
)
from meanfield.ingredients.laws.empirical import Empirical, JointEmpirical
from meanfield.ingredients.laws.tails import Laplace, StudentT
from meanfield.ingredients.objects import is_of_object
from meanfield.ingredients.part import after_fields
from meanfield.ingredients.schedules.key import OrSchedule
from meanfield.ingredients.schedules.shapes import Schedule, values_of
from meanfield.typing import FloatArray


class Gaussian(HiddenPart):
    """c ~ N(0, second_moment)."""

    law: Literal["gaussian"] = "gaussian"
    second_moment: SecondMoment = 1.0

    def components(self, power: float) -> Components:
        """See `HiddenPart.components`: a single one."""
        return np.ones(1), np.zeros((1, 1)), self.second_moment * np.ones((1, 1))

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """See `HiddenPart.sample`."""
        return rng.normal(0.0, np.sqrt(self.second_moment), (*size, 1))


class GaussianMixture(HiddenPart):
    """c ~ N(means[i], variances[i]) with probability probabilities[i]."""

    law: Literal["gaussian_mixture"] = "gaussian_mixture"
    means: Annotated[Values, Field(description="means of the components, for instance [-1.0, 1.0]")]
    variances: Annotated[Values, Field(description="variances of the components, each >= 0, for instance [0.1, 0.1]")]
    probabilities: Probabilities

    @after_fields
    def _is_a_law(self) -> None:
        check_probabilities(len(self.means), self.probabilities, "mean")
        if len(self.variances) != len(self.means):
            raise ValueError(f"{len(self.means)} means but {len(self.variances)} variances; give one variance for each")
        negative = [v for v in self.variances if v < 0]
        if negative:
            raise ValueError(f"variance {negative[0]} is negative, and no law has it; give numbers >= 0")
        check_not_zero(column(self.means) ** 2 + column(self.variances), self.probabilities)

    def components(self, power: float) -> Components:
        """See `HiddenPart.components`."""
        probability = np.array(self.probabilities)
        return probability / probability.sum(), column(self.means), column(self.variances)

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """See `HiddenPart.sample`."""
        probability, mean, variance = self.components(0.0)
        u = rng.random((*size, 2))
        index = np.searchsorted(np.cumsum(probability)[:-1], u[..., 0], side="right")
        return np.asarray(mean[index] + np.sqrt(variance[index]) * ndtri(u[..., 1:]))


class Discrete(AtomicPart):
    """c takes `values` with `probabilities`."""

    law: Literal["discrete"] = "discrete"
    values: Annotated[Values, Field(description="the values that c takes, for instance [-1.0, 0.5, 2.0]")]
    probabilities: Probabilities

    @after_fields
    def _is_a_law(self) -> None:
        check_probabilities(len(self.values), self.probabilities)
        check_not_zero(column(self.values), self.probabilities)

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """See `AtomicPart.atoms`."""
        probabilities = np.array(self.probabilities)
        return column(self.values), probabilities / probabilities.sum()


class ThreePoint(AtomicPart):
    """c = +-sqrt(m4/m2) with probability m2^2/(2 m4) each, else 0 (the paper's section IV)."""

    law: Literal["three_point"] = "three_point"
    second_moment: SecondMoment
    fourth_moment: Annotated[float, Field(gt=0), OrSchedule(may_vanish=False)] = Field(
        description="E[c^4] of the hidden variable, at least second_moment squared"
    )

    @after_fields
    def _moments_exist(self) -> None:
        if isinstance(self.second_moment, Schedule) or isinstance(self.fourth_moment, Schedule):
            return  # which those who know the times check
        least = self.second_moment * self.second_moment  # inf where ** would raise OverflowError
        if self.fourth_moment < least * (1 - 1e-12):  # 1.1**2 is not 1.21 in floating point
            raise ValueError(
                f"fourth_moment = {self.fourth_moment} is below second_moment^2 = {least:.6g}, and no law has such "
                "moments (Jensen); raise fourth_moment or lower second_moment"
            )

    def check_moments(self, key: str, stop: float) -> None:
        """Refuse schedules of moments that no law has at some time until the end of a run.

        Raises
        ------
        ValueError
            With the first such time.
        """
        moments = self.second_moment, self.fourth_moment
        schedules = [each for each in moments if isinstance(each, Schedule)]
        if not schedules:
            return
        times = np.unique(np.concatenate([each.looked_at(0.0, stop) for each in schedules]))
        second, fourth = (values_of(each, times) for each in moments)
        if np.any(wrong := fourth < second**2 * (1 - 1e-12)):
            first = int(np.argmax(wrong))
            raise ValueError(
                f"{key}: at t = {times[first]:.6g} fourth_moment = {fourth[first]:.6g} is below second_moment^2 = "
                f"{second[first] ** 2:.6g}, and no law has such moments (Jensen); raise fourth_moment or lower "
                "second_moment then"
            )

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """See `AtomicPart.atoms`."""
        value = np.sqrt(self.fourth_moment / self.second_moment)
        outer = np.minimum(self.second_moment / self.fourth_moment * self.second_moment, 1.0)
        return value * column([-1.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0]) + outer * np.array([0.5, -1.0, 0.5])


class TwoPoint(AtomicPart):
    """c takes the first of two values with `probability`, else the second."""

    law: Literal["two_point"] = "two_point"
    values: Annotated[tuple[float, float], Field(strict=False)] = Field(
        description="the two values that c takes, for instance [-0.5, 2.0]"
    )
    probability: float = Field(default=0.5, gt=0, lt=1, description="probability of the first value")

    @after_fields
    def _is_not_zero(self) -> None:
        check_not_zero(column(self.values), (self.probability, 1 - self.probability))

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """See `AtomicPart.atoms`."""
        return column(self.values), np.array([self.probability, 1 - self.probability])


class Rademacher(AtomicPart):
    """c = +-sqrt(second_moment) with equal probabilities."""

    law: Literal["rademacher"] = "rademacher"
    second_moment: SecondMoment = 1.0

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """See `AtomicPart.atoms`."""
        return np.sqrt(self.second_moment) * column([-1.0, 1.0]), np.full(2, 0.5)


class Uniform(HiddenPart):
    """c is uniform on [-sqrt(3 m2), sqrt(3 m2)] with m2 the second moment."""

    law: Literal["uniform"] = "uniform"
    second_moment: SecondMoment = 1.0

    @property
    def exact(self) -> bool:
        """See `HiddenPart.exact`."""
        return False

    @property
    def box(self) -> float:
        """See `HiddenPart.box`."""
        return np.sqrt(3 * self.second_moment)  # type: ignore[no-any-return]

    def components(self, power: float) -> Components:
        """See `HiddenPart.components`: a Gauss-Legendre rule."""
        x, weight = np.polynomial.legendre.leggauss(64)
        return weight / weight.sum(), self.box * x[:, None], np.zeros((len(x), 1))

    def nodes(self, count: int, breaks: Sequence[float] = ()) -> Components:
        """See `HiddenPart.nodes`: a Gauss-Legendre rule between any two breaks."""
        ends = np.unique([-self.box, *(each for each in breaks if abs(each) < self.box), self.box])
        x, weight = np.polynomial.legendre.leggauss(count)
        half, middle = 0.5 * np.diff(ends)[:, None], 0.5 * (ends[1:] + ends[:-1])[:, None]
        values, probability = (middle + half * x).ravel(), (half * weight).ravel()
        return probability / probability.sum(), values[:, None], np.zeros((len(values), 1))

    def recipe(self) -> Recipe:
        """See `HiddenPart.recipe`."""
        return Recipe(np.ones(1), np.zeros((1, 1)), np.zeros((1, 1)), box=self.box)

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """See `HiddenPart.sample`."""
        return rng.uniform(-self.box, self.box, (*size, 1))


def _as_files_say(given: Any) -> Any:
    """Table of a law that Python gives as an array of samples, or as a law of a user's own."""
    if isinstance(given, HiddenPart) and not type(given).__module__.startswith(f"{__name__.partition('.')[0]}."):
        if not given.exact:
            raise ValueError(f"{type(given).__name__} has no finite number of components; give an array of its samples")
        probability, means, variances = given.components(0.0)
        if variances.any():
            moments = {"means": means.ravel().tolist(), "variances": variances.ravel().tolist()}
            return {"law": "gaussian_mixture", **moments, "probabilities": probability.tolist()}
        values = means.ravel() if given.dimension == 1 else means
        return {"law": "discrete", "values": values.tolist(), "probabilities": probability.tolist()}
    if not isinstance(given, dict) or "samples" not in given or {"law", "file"} & given.keys():
        return given
    samples = given["samples"]
    if not hasattr(samples, "__array__") and not (isinstance(samples, str) and is_of_object(samples)):
        raise ValueError("samples: is no array; give a NumPy array of samples, or name a file by law = 'empirical'")
    return {"law": "empirical", "file": samples} | {k: v for k, v in given.items() if k != "samples"}


HiddenLaw = Annotated[
    Gaussian
    | ThreePoint
    | TwoPoint
    | Rademacher
    | Uniform
    | Laplace
    | StudentT
    | GaussianMixture
    | Discrete
    | Empirical,
    Field(discriminator="law"),
    BeforeValidator(_as_files_say),
]


class JointDiscrete(AtomicPart):
    """The vector c takes `values` with `probabilities`."""

    law: Literal["discrete"] = "discrete"
    values: Annotated[tuple[Values, ...], Field(strict=False, min_length=1)] = Field(
        description="the vectors that c takes, one number per feature in each, for instance [[1.0, 0.5], [-1.0, -0.5]]"
    )
    probabilities: Probabilities

    @after_fields
    def _is_a_law(self) -> None:
        check_probabilities(len(self.values), self.probabilities)
        lengths = {len(value) for value in self.values}
        if len(lengths) > 1:
            raise ValueError(
                f"values have {' and '.join(map(str, sorted(lengths)))} entries; give one for each feature"
            )
        check_not_zero(np.array(self.values), self.probabilities)

    @property
    def dimension(self) -> int:
        """See `HiddenPart.dimension`."""
        return len(self.values[0])

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """See `AtomicPart.atoms`."""
        probabilities = np.array(self.probabilities)
        return np.array(self.values, dtype=float), probabilities / probabilities.sum()


JointLaw = Annotated[JointDiscrete | JointEmpirical, Field(discriminator="law"), BeforeValidator(_as_files_say)]
