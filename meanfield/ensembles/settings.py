"""Settings of ensembles of SGD that any family has: the table `particles` of problem files."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from meanfield.ingredients.part import Part
from meanfield.problems.base import Time

MOST_STEPS = 1e18
"""Largest number of steps of SGD, which 64 bits still count."""


AverageRate = Annotated[
    float | None,
    Field(
        gt=0,
        le=1e6,
        description="a, the rate of a moving average w' of the weights, dw'/dt = a (w - w'), which SGD and equations "
        "of its limit then describe beside the weights; for instance 2.0",
    ),
]
"""Key of problems whose weights may be averaged."""


class ReplicaSettings(Part):
    """Replicas of SGD, whatever its size; a family adds keys of its own by a subclass."""

    replicas: int = Field(default=8, ge=1, le=2**32, description="number of independent runs")
    seed: int = Field(default=0, ge=0, description="root of all random streams, a whole number >= 0")
    snapshots: Annotated[tuple[float, ...], Field(strict=False)] | None = Field(
        default=None,
        description="output times at which weights are kept, for instance [0.0, 10.0, 20.0], or [] for none",
    )
    snapshot_precision: Literal["double", "single"] = Field(
        default="double", description="of the weights and features that are kept; 'single' halves the file"
    )
    record: Literal["replicas", "statistics"] = Field(
        default="replicas",
        description="'replicas' keeps the order parameters of each, 'statistics' their mean, covariance and quantiles",
    )
    longest_days: float = Field(
        default=1.0,
        gt=0,
        le=1e5,
        description="days that a run may take: it is refused if its first seconds show that it would take longer",
    )

    @property
    def kind(self) -> str:
        """Kind of Dataset: `particles` has every replica, `ensemble` statistics over them."""
        return "ensemble" if self.record == "statistics" else "particles"

    @property
    def snapshot_dtype(self) -> np.dtype[Any]:
        """Type of the numbers that are kept at snapshots."""
        return np.dtype(np.float32 if self.snapshot_precision == "single" else np.float64)

    def check_steps(self, time: Time, steps_per_time: float, cause: str, remedy: str) -> None:
        """Check that steps can be counted and that snapshots are output times; for a validator of the problem.

        Parameters
        ----------
        steps_per_time : float
            Steps per unit of time.
        cause, remedy : str
            Key and value that decide that number, and what to change, for the message.

        Raises
        ------
        ValueError
            With the keys, their values and the remedy.
        """
        steps = time.stop * steps_per_time
        if steps > MOST_STEPS:
            raise ValueError(
                f"time.stop = {time.stop:g} with {cause} takes "
                f"{steps:.3g} steps of SGD, and at most {MOST_STEPS:g} can be counted; {remedy}"
            )
        for t, number in zip(self.snapshots or (), time.output_of(np.array(self.snapshots or ())), strict=True):
            if number < 0:
                nearest = time.outputs_at[np.argmin(np.abs(time.outputs_at - t))]
                raise ValueError(
                    f"particles.snapshots: {t} is not an output time; the nearest one is {nearest:.6g} "
                    f"(time.spacing = '{time.spacing}': {time.in_words})"
                )

    def snapshot_index(self, time: Time) -> list[int]:
        """Indices of the output times of the snapshots: the chosen ones, or first, middle and last."""
        if self.snapshots is None:
            last = time.outputs - 1
            return sorted({0, last // 2, last})
        return sorted(set(time.output_of(np.array(self.snapshots)).tolist()))


class StartSettings(ReplicaSettings):
    """Replicas that draw their initial weights, for families that also follow a single network without chance."""

    common_start: bool = Field(
        default=False,
        description="whether all runs start with the same weights, those of the methods without chance, or each draws "
        "its own",
    )


class DimensionSettings(Part):
    """Dimension of SGD, which precedes the other keys."""

    dimension: int = Field(default=1024, ge=1, le=10**12, description="N, so that step k is at time t = k/N")


class EnsembleSettings(ReplicaSettings, DimensionSettings):
    """SGD at finite N; a family adds keys of its own by a subclass."""

    def check_times(self, time: Time) -> None:
        """Check that steps at times k/N can be counted; see `check_steps`."""
        self.check_steps(time, self.dimension, f"particles.dimension = {self.dimension}", "lower one of the two")
