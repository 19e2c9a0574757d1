"""Table of a problem with the end of a run and its output times, which most families have."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from meanfield.ingredients.part import FieldError, Part, after_fields
from meanfield.typing import FloatArray, IntArray


class Time(Part):
    """End of a run, and its output times."""

    stop: float = Field(ge=1e-9, le=1e12, description="last time t = k/N, for instance 20.0")
    outputs: int = Field(default=41, ge=2, le=10**6, description="number of output times, both ends included")
    spacing: Literal["linear", "log"] = Field(
        default="linear",
        description="'linear' output times are evenly spaced from 0 to stop; 'log' ones are 0, and from first to stop "
        "evenly spaced in their logarithms",
    )
    first: float | None = Field(
        default=None,
        gt=0,
        le=1e12,
        description="first output time after 0 for spacing = 'log'; stop/1000 if nothing is said",
    )

    @after_fields
    def _first_is_before_the_end(self) -> None:
        if self.first is None:
            return
        if self.spacing == "linear":
            raise FieldError("first", "belongs to time.spacing = 'log'; set that, or remove first")
        if self.outputs == 2:
            raise FieldError("first", "is no output time where there are only 0 and stop; raise time.outputs")
        if not 1e-12 * self.stop <= self.first < self.stop:
            allowed = f"give at least {1e-12 * self.stop:g}, and less than time.stop = {self.stop:g}"
            raise FieldError("first", f"is {self.first:g}; {allowed}")

    @property
    def in_words(self) -> str:
        """First and last time, and the number of output times."""
        logarithms = f", from t = {self.outputs_at[1]:g} on even in log t" if self.spacing == "log" else ""
        return f"t = 0 to {self.stop:g} in {self.outputs} outputs{logarithms}"

    @property
    def outputs_at(self) -> FloatArray:
        """Output times, shape (outputs,)."""
        if self.spacing == "linear" or self.outputs == 2:
            return np.linspace(0.0, self.stop, self.outputs)
        first = 1e-3 * self.stop if self.first is None else self.first
        return np.append(0.0, np.geomspace(first, self.stop, self.outputs - 1))

    def output_of(self, times: FloatArray, allowed: float = 0.0) -> IntArray:
        """Number of the output time that each of some times is, -1 for one that is none.

        Parameters
        ----------
        times : ndarray
        allowed : float
            Largest difference besides rounding, such as half a step.
        """
        return same_times(self.outputs_at, times, allowed)


def same_times(known: FloatArray, times: FloatArray, allowed: float = 0.0) -> IntArray:
    """Position among known times, which increase, that each of some times has; -1 for one that is none of them.

    Parameters
    ----------
    allowed : float
        Largest difference besides rounding; none is larger than a quarter of the least spacing of known times.
    """
    if not len(known):
        return np.full(np.shape(times), -1)
    right = np.searchsorted(known, times).clip(max=len(known) - 1)
    left = np.maximum(right - 1, 0)
    nearest = np.where(np.abs(known[left] - times) <= np.abs(known[right] - times), left, right)
    # Times that differ by 1e-6 of the last one are one but for rounding, in single precision too.
    largest = min(max(1e-6 * known[-1], allowed), 0.25 * np.diff(known).min(initial=np.inf))
    return np.where(np.abs(known[nearest] - times) <= largest, nearest, -1)
