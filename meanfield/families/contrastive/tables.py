"""Tables of contrastive problems that say what is learnt: network and training, features, and noise of two views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from meanfield.ensembles.momentum import HasMomentum, MomentumRate
from meanfield.ensembles.settings import AverageRate
from meanfield.ingredients.activations import NamesActivation
from meanfield.ingredients.laws import CoordinateLaw, GaussianCoordinate, HiddenLaw
from meanfield.ingredients.laws.base import LARGEST
from meanfield.ingredients.part import Part, after_fields
from meanfield.ingredients.schedules.key import OrSchedule
from meanfield.ingredients.schedules.shapes import Schedule, values_of
from meanfield.typing import FloatArray

Numbers = float | FloatArray

ChannelMatrix = Annotated[tuple[Annotated[tuple[float, ...], Field(strict=False)], ...], Field(strict=False)]


class Model(NamesActivation, HasMomentum):
    """Network and its training."""

    omitted: ClassVar[Mapping[str, Any]] = {"channels": 1, "momentum": 0.0, "momentum_rate": None, "average_rate": None}

    centering: Literal["none", "population", "batch"] = Field(
        default="none", description="what is subtracted from the outputs: nothing, their mean, or the mean of the batch"
    )
    learning_rate: Annotated[float, Field(gt=0, le=1e6), OrSchedule()] = Field(
        description="tau, the step size of SGD, for instance 0.02, or a schedule"
    )
    momentum: float = Field(
        default=0.0, ge=0, lt=1, description="mu, the share of a step that the next one repeats, for instance 0.9"
    )
    momentum_rate: MomentumRate = None
    average_rate: AverageRate = None
    batch_size: Annotated[int, Field(ge=1, le=10**9), OrSchedule()] = Field(
        description="m, the number of samples per step, for instance 10"
    )
    channels: int = Field(default=1, ge=1, le=64, description="d2, the number of neurons, each with one output")
    initial_channel_overlap: float | ChannelMatrix | None = Field(
        default=None,
        description="M(0), the overlaps of several channels: a number for all pairs, or a symmetric matrix with ones "
        "on the diagonal; without it they share no more than their overlaps with the features",
    )

    @after_fields
    def _batch_mean_needs_two(self) -> None:
        if self.centering != "batch":
            return
        if isinstance(self.batch_size, Schedule):
            self.batch_size.narrow(ge=2)
        elif self.batch_size < 2:
            raise ValueError(
                "batch_size = 1 with centering = 'batch': the centred output of a single sample is zero; "
                "set batch_size to 2 or more, or centering to 'none' or 'population'"
            )

    @property
    def rate(self) -> float:
        """Learning rate of the limit, tau/(1 - mu): all that a sample moves, with the steps that remember it."""
        return self.learning_rate / (1.0 - self.momentum)


class Feature(Part):
    """Feature: a column of U and its hidden variable."""

    hidden: HiddenLaw | None = Field(
        default=None, description="a table with law = 'gaussian', 'three_point', ... and the numbers that it needs"
    )
    coordinate: CoordinateLaw = Field(
        default=GaussianCoordinate(), description="a table with law = 'gaussian', 'rademacher', ..."
    )
    initial_overlap: float | Literal["random"] | Annotated[tuple[float, ...], Field(strict=False)] | None = Field(
        default=None,
        description="q_k(0), a number with the squares of all features adding up to less than 1, or 'random'; with "
        "several channels a list of such numbers, one per channel; left out where `initial` says it",
    )


Variance = Annotated[float, OrSchedule()]


class Augmentation(Part):
    """Noise that is added to the two views, by its covariance per coordinate."""

    variance: Annotated[tuple[Variance, Variance], Field(strict=False)] = Field(
        description="[v11, v22], the noise variances of the two views, each >= 0, for instance [0.3, 0.3]"
    )
    correlation: Annotated[float, Field(ge=-1, le=1), OrSchedule()] = Field(
        default=0.0, description="correlation of the two noises in [-1, 1]; -1 gives opposite views"
    )

    @after_fields
    def _variances_are_not_negative(self) -> None:
        for v in self.variance:
            if isinstance(v, Schedule):
                v.narrow(ge=0.0, le=LARGEST)
                continue
            if v < 0:
                raise ValueError(f"variance {v} is negative, and no noise has it; give two numbers >= 0")
            if v > LARGEST:
                raise ValueError(f"variance {v:g} is above {LARGEST:g}, where views have nothing in common; lower it")

    @property
    def covariance(self) -> FloatArray:
        """Covariance V of the noises, shape (2, 2)."""
        return _covariance(*self.variance, self.correlation)

    def covariance_at(self, times: FloatArray) -> FloatArray:
        """Covariances V at some times, shape (times, 2, 2)."""
        return _covariance(*(values_of(each, times) for each in (*self.variance, self.correlation)))


def _covariance(v11: Numbers, v22: Numbers, correlation: Numbers) -> FloatArray:
    v12 = correlation * np.sqrt(v11 * v22)
    return np.stack([v11, v12, v12, v22], axis=-1).reshape(*np.shape(v11), 2, 2)
