"""Laws of the hidden variables c and of the feature coordinates u.

A hidden law is either Gaussian (then the closures integrate it out exactly) or it has atoms.
Adding a law means adding one class here and naming it in `HiddenLaw` or `CoordinateLaw`.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field, model_validator

from meanfield.base import Part
from meanfield.quadrature import gaussian_trapezoid
from meanfield.typing import FloatArray

SecondMoment = Annotated[float, Field(gt=0, description="E[c^2] of the hidden variable, for instance 1.1")]
Numbers = Annotated[tuple[float, ...], Field(strict=False, min_length=1)]


class GaussianHidden(Part):
    """c ~ N(0, second_moment)."""

    law: Literal["gaussian"] = "gaussian"
    second_moment: SecondMoment = 1.0

    @property
    def gaussian_variance(self) -> float:
        """Variance of the Gaussian part, which the closures integrate out."""
        return self.second_moment

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """Values and probabilities of the part that is not Gaussian: a single atom at 0."""
        return np.zeros(1), np.ones(1)

    def moment(self, order: int) -> float:
        """E[c^order]."""
        if order % 2:
            return 0.0
        return float(self.second_moment ** (order // 2) * np.prod(np.arange(1, order, 2)))

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """Independent draws of c."""
        return rng.normal(0.0, math.sqrt(self.second_moment), size)


class _Atomic(Part):
    """What all laws with finitely many values have in common."""

    @property
    def gaussian_variance(self) -> float:
        """Variance of the Gaussian part: none."""
        return 0.0

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """Values and their probabilities."""
        raise NotImplementedError

    def moment(self, order: int) -> float:
        """E[c^order]."""
        values, probabilities = self.atoms
        return float(probabilities @ values**order)

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """Independent draws of c."""
        values, probabilities = self.atoms
        index = np.searchsorted(np.cumsum(probabilities)[:-1], rng.random(size), side="right")
        return np.asarray(values[index])


class ThreePoint(_Atomic):
    """c = +-sqrt(m4/m2) with probability m2^2/(2 m4) each, else 0 (the paper's section IV)."""

    law: Literal["three_point"] = "three_point"
    second_moment: SecondMoment
    fourth_moment: float = Field(gt=0, description="E[c^4] of the hidden variable, at least second_moment squared")

    @model_validator(mode="after")
    def _moments_exist(self) -> ThreePoint:
        least = self.second_moment * self.second_moment  # inf where ** would raise OverflowError
        if self.fourth_moment < least * (1 - 1e-12):  # 1.1**2 is not 1.21 in floating point
            raise ValueError(
                f"fourth_moment = {self.fourth_moment} is below second_moment^2 = {least:.6g}, and no law has such "
                "moments (Jensen); raise fourth_moment or lower second_moment"
            )
        return self

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """Values and their probabilities."""
        value = np.sqrt(self.fourth_moment / self.second_moment)
        outer = min(self.second_moment / self.fourth_moment * self.second_moment, 1.0)
        return np.array([-value, 0.0, value]), np.array([outer / 2, 1 - outer, outer / 2])


class Discrete(_Atomic):
    """c takes `values` with `probabilities`."""

    law: Literal["discrete"] = "discrete"
    values: Annotated[Numbers, Field(description="the values that c takes, for instance [-1.0, 0.5, 2.0]")]
    probabilities: Annotated[Numbers, Field(description="their probabilities in [0, 1], adding up to 1")]

    @model_validator(mode="after")
    def _is_a_law(self) -> Discrete:
        if len(self.values) != len(self.probabilities):
            raise ValueError(
                f"{len(self.values)} values but {len(self.probabilities)} probabilities; give one probability per value"
            )
        outside = [p for p in self.probabilities if not 0 <= p <= 1]
        if outside:
            raise ValueError(f"probability {outside[0]} is outside [0, 1]; correct it")
        total = sum(self.probabilities)
        if abs(total - 1) > 1e-9:
            raise ValueError(f"probabilities add up to {total:.9g}, not to 1; correct or normalise them")
        if not any(v != 0 and p > 0 for v, p in zip(self.values, self.probabilities, strict=True)):
            raise ValueError("the law is concentrated at 0, so there is no feature; give a value other than 0")
        return self

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """Values and their probabilities."""
        probabilities = np.array(self.probabilities)
        return np.array(self.values), probabilities / probabilities.sum()


class GaussianCoordinate(Part):
    """u ~ N(0, 1)."""

    law: Literal["gaussian"] = "gaussian"

    def quadrature(self, nodes: int) -> tuple[FloatArray, FloatArray]:
        """Nodes and weights for expectations over u.

        Under a prior the conditional mean of w bends with u; the trapezoidal rule resolves that with fewer nodes
        than the Gauss rule (31 nodes, l1 prior of the demo: error of q 6e-6 against 5e-5), over a narrower range.
        """
        return gaussian_trapezoid(nodes, cutoff=7.0)

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """Independent draws of u."""
        return rng.standard_normal(size)


class RademacherCoordinate(Part):
    """u = +-1 with equal probabilities."""

    law: Literal["rademacher"] = "rademacher"

    def quadrature(self, nodes: int) -> tuple[FloatArray, FloatArray]:
        """The two values and their probabilities, whatever number of nodes is asked for."""
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])

    def sample(self, rng: Generator, size: tuple[int, ...]) -> FloatArray:
        """Independent draws of u."""
        return rng.choice(np.array([-1.0, 1.0]), size)


HiddenLaw = Annotated[GaussianHidden | ThreePoint | Discrete, Field(discriminator="law")]
CoordinateLaw = Annotated[GaussianCoordinate | RademacherCoordinate, Field(discriminator="law")]
