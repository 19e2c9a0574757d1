"""Ends of time steps: times that divide the intervals between outputs, refined by whole factors."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import wrightomega

from meanfield.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class StepTimes:
    """Steps between output times, dense at the start if there is an onset.

    A clock s(t) = ticks (rate t + log(1 + t/onset)) ticks once for each step, so that steps are constant fractions of
    the time that has passed while `onset` < t < 1/rate, and equal afterwards: what a sharp start needs, where every
    time scale from the shortest on matters. The clock does not depend on how often it is divided, so errors have
    expansions in even powers of 1/`factor`.

    Parameters
    ----------
    outputs : ndarray, shape (outputs,)
        Output times, increasing from 0.
    ticks : float
        Number of steps in a time of 1/`rate`, and while the time since the start grows e-fold.
    rate : float
        Rate of the dynamics.
    onset : float
        The shortest time scale of the start; infinite for equal steps.
    factor : int
        Steps per tick. There is at least one tick in each interval between outputs.
    corners : tuple of float
        Times at which steps end besides.
    starts : tuple of float
        Those of the corners at which the dynamics starts anew, and the clock with it.
    """

    outputs: FloatArray
    ticks: float
    rate: float
    onset: float = math.inf
    factor: int = 1
    corners: tuple[float, ...] = ()
    starts: tuple[float, ...] = ()

    def refined(self, factor: int) -> StepTimes:
        """Times with `factor` steps in place of each."""
        return replace(self, factor=factor * self.factor)

    @cached_property
    def _knots(self) -> FloatArray:
        """Output times and corners."""
        return np.unique([*self.outputs, *(time for time in self.corners if 0.0 < time < self.outputs[-1])])

    @cached_property
    def _begins(self) -> FloatArray:
        """Last start before the end of each interval between knots."""
        starts = np.array([0.0, *self.starts])
        return np.asarray(starts[np.searchsorted(starts, self._knots[:-1], side="right") - 1])

    @cached_property
    def _ticks(self) -> FloatArray:
        """Clock at both ends of each interval between knots, shape (2, intervals)."""
        return np.asarray(self._clock(np.stack([self._knots[:-1], self._knots[1:]]) - self._begins))

    @cached_property
    def _counts(self) -> IntArray:
        """Number of steps from each knot to the next."""
        ticks = self._ticks[1] - self._ticks[0]
        return np.asarray(np.maximum(1, np.ceil(ticks * (1 - 1e-12))).astype(int) * self.factor)

    @property
    def counts(self) -> list[int]:
        """Number of steps in each interval between outputs."""
        return [len(part) for part in self._steps]

    @property
    def total(self) -> int:
        """Number of all steps."""
        return int(self._counts.sum())

    def steps(self, interval: int) -> FloatArray:
        """Ends of the steps of an interval; the last one is its output time exactly."""
        return self._steps[interval]

    @cached_property
    def _steps(self) -> list[FloatArray]:
        parts = [np.arange(1, count + 1) / count for count in self._counts]
        ends = np.concatenate([a + (b - a) * part for a, b, part in zip(*self._ticks, parts, strict=True)])
        last = np.cumsum(self._counts)
        times = np.repeat(self._begins, self._counts) + self._inverse(ends)
        times[last - 1] = self._knots[1:]
        return np.split(times, last[np.isin(self._knots[1:], self.outputs)][:-1])

    def _clock(self, t: FloatArray) -> FloatArray:
        return self.ticks * (self.rate * t + np.log1p(t / self.onset))

    def _inverse(self, s: FloatArray) -> FloatArray:
        """Inverse of the clock: with y = 1 + t/onset and a = rate onset it is a (y - 1) + log y times its ticks."""
        s = s / self.ticks
        if math.isinf(self.onset):
            return s / self.rate
        a = self.rate * self.onset
        return self.onset * (wrightomega(s + a + math.log(a)) / a - 1.0)
