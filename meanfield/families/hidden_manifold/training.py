"""Training of the student: numbers of one-pass SGD, each of which may change in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from meanfield.ensembles.momentum import HasMomentum, MomentumRate
from meanfield.ensembles.settings import AverageRate
from meanfield.ingredients.schedules.key import OrSchedule
from meanfield.ingredients.schedules.shapes import CHECKED_TIMES, values_of
from meanfield.typing import FloatArray

NonNegative = Annotated[float, Field(ge=0, le=1e6), OrSchedule()]
"""Number that may change in time."""


class Training(HasMomentum):
    """One-pass SGD of the student, on fresh samples in each step."""

    omitted: ClassVar[Mapping[str, Any]] = {"momentum": 0.0, "momentum_rate": None, "average_rate": None}

    learning_rate: Annotated[float, Field(gt=0, le=1e6), OrSchedule()] = Field(
        description="eta, the step size of the first layer, for instance 0.2, or a schedule"
    )
    output_learning_rate: NonNegative | None = Field(
        default=None,
        description="eta_v, that of the second layer, or a schedule; left out: the same; 0 keeps it fixed",
    )
    momentum: float = Field(
        default=0.0, ge=0, lt=1, description="mu, the share of a step that the next one repeats, for instance 0.9"
    )
    momentum_rate: MomentumRate = None
    average_rate: AverageRate = None
    batch_size: Annotated[int, Field(ge=1, le=10**6), OrSchedule()] = Field(
        default=1,
        description="tau, the number of samples per step, over which the gradient is averaged, or a schedule of whole "
        "numbers, in steps",
    )
    label_noise: NonNegative = Field(
        default=0.0,
        description="sigma_y^2, variance of Gaussian noise on the teacher's output in training, or a schedule; errors "
        "are without it",
    )
    weight_decay: NonNegative = Field(
        default=0.0,
        description="kappa: a step takes the share eta kappa/N of the weights away, and eta_v kappa/N of those of "
        "the second layer; a number, or a schedule",
    )

    @property
    def second_layer(self) -> float:
        """eta_v."""
        return self.learning_rate if self.output_learning_rate is None else self.output_learning_rate

    @property
    def numbers(self) -> tuple[float, ...]:
        """eta, eta_v, tau, sigma_y^2 and kappa."""
        return self.learning_rate, self.second_layer, self.batch_size, self.label_noise, self.weight_decay

    def numbers_at(self, times: FloatArray) -> FloatArray:
        """Values of `numbers` at some times, shape (5, times)."""
        return np.array([values_of(number, times) for number in self.numbers])

    def limits_at(self, times: FloatArray) -> FloatArray:
        """The same of the limit: what a step moves adds up to 1/(1 - mu) as much, with the steps that remember it."""
        numbers = self.numbers_at(times)
        numbers[:2] /= 1.0 - self.momentum
        return numbers

    def average_numbers(self, stop: float) -> FloatArray:
        """Averages over a run of the numbers of the limit, shape (5,)."""
        return np.asarray(self.limits_at(np.linspace(0.0, stop, CHECKED_TIMES)).mean(axis=1))
