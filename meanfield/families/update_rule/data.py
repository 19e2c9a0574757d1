"""Inputs of a sample: signal, noise, classes, random scales, and random numbers that rules read."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field

from meanfield.ingredients.laws.base import AtomicPart
from meanfield.ingredients.laws.scales import ScaleLaw
from meanfield.ingredients.part import NamedValues, Part
from meanfield.ingredients.schedules.key import OrSchedule
from meanfield.ingredients.spectra import Spectrum
from meanfield.typing import FloatArray

Chance = Annotated[float, Field(ge=0, le=1)]
Number = Annotated[float, Field(ge=-1e6, le=1e6)]


class Class(Part):
    """One of the classes of a mixture."""

    probability: Chance = Field(description="share of its samples; those of all classes add up to 1")
    mean: Annotated[tuple[Number, ...], Field(strict=False)] = Field(
        description="mean of its samples, as coefficients of the features; it is their hidden variables"
    )
    noise: float = Field(default=1.0, gt=0, le=1e6, description="variance of its noise, in units of data.noise")
    label: Number | None = Field(
        default=None, description="what rules read as `label`; its number, counted from 0, if nothing is said"
    )


class Classes(AtomicPart):
    """Means, label and standard deviation of the noise of a sample, which its class tells."""

    members: tuple[Class, ...]

    @property
    def dimension(self) -> int:
        """See `HiddenPart.dimension`."""
        return len(self.members[0].mean) + 2

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """See `AtomicPart.atoms`."""
        values = [
            [*each.mean, float(number) if each.label is None else each.label, each.noise**0.5]
            for number, each in enumerate(self.members)
        ]
        probability = np.array([each.probability for each in self.members])
        return np.array(values), probability / probability.sum()


class Data(Part):
    """Inputs of a sample."""

    signal: Literal["none", "spiked", "orthogonal"] = Field(
        default="none",
        description="'none' is white noise, 'spiked' adds features times hidden variables, 'orthogonal' does so where "
        "the noise has no part along them",
    )
    noise: Annotated[float, Field(gt=0, le=1e6), OrSchedule(may_vanish=False)] = Field(
        default=1.0, description="variance of the noise of a coordinate, or a schedule, in steps"
    )
    spectrum: Spectrum | None = Field(
        default=None,
        description="law of the eigenvalues rho of the covariance of the noise, by which the variance of a coordinate "
        "is multiplied, a table with law = ...; left out: all are 1",
    )
    observed: float = Field(
        default=1.0, gt=0, le=1, description="share of the coordinates that is kept in each sample, others are 0"
    )
    coins: Annotated[dict[str, Chance], AfterValidator(NamedValues)] = Field(
        default=NamedValues(),
        description="arguments that are 1 with a probability and else 0, such as { flip = 0.1 }",
    )
    normals: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        default=(), description='arguments that are standard normal numbers of the sample, such as ["eps"]'
    )
    classes: Annotated[tuple[Class, ...], Field(strict=False, min_length=1)] | None = Field(
        default=None,
        description="classes of a mixture, in place of laws of hidden variables: a list of tables with probability, "
        "mean, noise and label; rules read `label`",
    )
    scale: ScaleLaw | None = Field(
        default=None,
        description="law of a factor of the noise of each sample, a table with law = 'discrete', 'lognormal' or "
        "'student_t'",
    )
