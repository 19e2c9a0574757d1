"""Times of the steps of SGD: a step takes as much time as its learning rate is, t_(k+1) = t_k + eta(t_k)."""

from __future__ import annotations

from typing import Any

import numpy as np

from meanfield.errors import InputError
from meanfield.ingredients.part import after_fields
from meanfield.ingredients.schedules.shapes import Schedule, least_and_largest
from meanfield.problems.base import Problem, corners_of
from meanfield.problems.phases import phase_numbers, pieces_of
from meanfield.typing import FloatArray, IntArray

MOST_COUNTED = 10**8
"""Largest number of steps of different lengths, whose times are kept: 800 megabytes."""

AT_ONCE = 1 << 12
"""Number of steps whose times are found together."""

ROUNDING = 1e-6
"""Largest distance of a step from a corner, relative to the longest step, that is rounding of sums of lengths."""


class ClockedProblem(Problem):
    """Problem in which a step of SGD takes as much time as its learning rate, `training.learning_rate`, is."""

    @property
    def steps_per_time(self) -> float:
        """Steps of SGD per unit of time; of a learning rate that changes, as many as there are of the largest ones."""
        rates = [
            least_and_largest(each.problem.training.learning_rate, each.start, each.stop)[1]  # type: ignore[attr-defined]
            for each in pieces_of(self)
        ]
        return 1.0 / max(rates, default=1.0)  # phases that are refused have no pieces

    @after_fields
    def _rates_are_those_of_the_run(self) -> None:
        for number, piece in enumerate(pieces_of(self)):
            for key, what in (("average_rate", "an average"), ("momentum_rate", "a velocity")):
                given, wanted = (getattr(each.training, key) for each in (piece.problem, self))  # type: ignore[attr-defined]
                if given != wanted:
                    raise ValueError(
                        f"phases[{number}].set: training.{key} is {given}, and that of the run {wanted}: {what} "
                        "has one rate in all phases; give the same"
                    )

    @property
    def labels(self) -> dict[str, float]:
        """See `meanfield.Problem.labels`."""
        training: Any = self.training  # type: ignore[attr-defined]
        found = {name: getattr(training, name) for name in ("learning_rate", "batch_size")}
        found = {name: value for name, value in found.items() if not isinstance(value, Schedule)}
        if isinstance(training.learning_rate, Schedule) and self.trusted:  # a result alone may not open what tells it
            found["steps_per_time"] = self.steps_per_time
        return found


class Clock:
    """Times of steps.

    Parameters
    ----------
    problem : Problem
        With `training.learning_rate`, `time` and `steps_per_time`.
    """

    def __init__(self, problem: Any) -> None:
        self._problem, self._pieces = problem, pieces_of(problem)
        self._corners, self._rounding = np.array(corners_of(problem)), ROUNDING / problem.steps_per_time
        rates = {piece.problem.training.learning_rate for piece in self._pieces}
        self._rate = next(iter(rates)) if len(rates) == 1 and not isinstance(next(iter(rates)), Schedule) else None
        self._times = self._all_times() if self._rate is None else np.empty(0)

    def time_of(self, step: int) -> float:
        """Time at which a step is taken; of lengths that change no later than the first step at the end."""
        if self._rate is None:
            return float(self._times[min(step, len(self._times) - 1)])
        return float(self._snapped(np.array(step * self._rate)))

    def length_of(self, step: int) -> float:
        """Time that a step takes."""
        return self._rate if self._rate is not None else self.time_of(step + 1) - self.time_of(step)

    def steps_at(self, times: FloatArray) -> IntArray:
        """Number of the step that is nearest to each of some times."""
        taken = times / self._rate if self._rate else np.interp(times, self._times, np.arange(len(self._times)))
        return np.asarray(np.rint(taken), dtype=np.int64)

    def begin_of(self, time: float) -> float:
        """Time of the first step that sees what begins at a time."""
        if self._rate is None:
            return float(self._times[np.searchsorted(self._times, time)])
        return self.time_of(int(np.ceil(time / self._rate - ROUNDING)))

    def _all_times(self) -> FloatArray:
        """Times of all steps, the first of which is no earlier than the end included.

        Of several steps, from a guess of their times follow their lengths, and from these better times, the first of
        which is right; guesses are repeated until none changes.

        Raises
        ------
        InputError
            If there are very many.
        """
        stop, found = self._problem.time.stop, [np.zeros(1)]
        about = stop * float(np.mean(1.0 / self._rates(stop * (np.arange(1000) + 0.5) / 1000)))
        while (now := float(found[-1][-1])) < stop:
            if max(about, len(found) * AT_ONCE) > MOST_COUNTED:
                raise InputError(
                    f"training.learning_rate: {about:.2g} steps of its schedule take until time.stop = {stop:g}, and "
                    f"{MOST_COUNTED:,} can be counted; raise its lowest values, or lower time.stop"
                )
            times = now + float(self._rates(np.array([now]))[0]) * np.arange(AT_ONCE + 1.0)
            while not np.array_equal(better := np.cumsum([now, *self._rates(times[:-1])]), times):
                times = better
            found.append(times[1:])
        joined = np.concatenate(found)
        return self._snapped(joined[: int(np.searchsorted(joined, stop)) + 1])

    def _rates(self, times: FloatArray) -> FloatArray:
        """Learning rates of steps that are taken at some times."""
        inside, found = self._snapped(np.minimum(times, self._problem.time.stop)), np.empty(len(times))
        numbers = phase_numbers(self._problem, inside)
        for number, piece in enumerate(self._pieces):
            here, rate = numbers == number, piece.problem.training.learning_rate
            found[here] = rate.values_at(inside[here]) if isinstance(rate, Schedule) else rate
        return found

    def _snapped(self, times: FloatArray) -> FloatArray:
        """Times, of which those next to a corner are there."""
        if not len(self._corners):
            return times
        right = np.searchsorted(self._corners, times).clip(max=len(self._corners) - 1)
        for corner in (self._corners[right], self._corners[np.maximum(right - 1, 0)]):
            times = np.where(np.abs(times - corner) <= self._rounding, corner, times)
        return times
