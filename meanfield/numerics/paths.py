"""Many paths of an autonomous differential equation at once, each with steps of its own length.

The method of Dormand and Prince (order 5, with an error estimate of order 4) with the coefficients of SciPy, whose
integrators take one path, or many with common steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import RK45

from meanfield.errors import InputError
from meanfield.numerics.ode import Tolerance
from meanfield.typing import FloatArray

Velocity = Callable[[FloatArray], FloatArray]
"""dq/dt at many points, (n, d) -> (n, d); NaN outside its domain, which no step enters."""

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]

Arrived = Callable[[FloatArray, FloatArray], Flags]
"""Condition for the end of a path: whether it holds, (n,), at points (n, d) with velocities (n, d)."""

Margin = Callable[[FloatArray], FloatArray]
"""A function of many points, (n, d) -> (n,), negative before an event and not after it."""


@dataclass(frozen=True)
class Paths:
    """Ends, times and events of many paths.

    Parameters
    ----------
    end : ndarray, shape (paths, d)
        End of each path.
    time : ndarray, shape (paths,)
        Time at which each path ended.
    event : ndarray, shape (paths,)
        Time at which the margin first was not negative: 0 if from the start, infinite if never.
    finished : ndarray of bool, shape (paths,)
        Whether a path arrived, or went on until the time was over; others were given up.
    """

    end: FloatArray
    time: FloatArray
    event: FloatArray
    finished: Flags


def follow_paths(
    velocity: Velocity,
    starts: FloatArray,
    tolerance: Tolerance,
    *,
    first_step: FloatArray | float,
    arrived: Arrived | None = None,
    margin: Margin | None = None,
    stop: FloatArray | float = np.inf,
    longest_step: float = np.inf,
    most_steps: int = 100_000,
) -> Paths:
    """Follow dq/dt = velocity(q) from many starts until every path has arrived or the time is over.

    Parameters
    ----------
    velocity : callable
        dq/dt at many points.
    starts : ndarray, shape (paths, d)
        Points of the paths at time 0.
    tolerance : Tolerance
        Tolerance of a step.
    first_step : float or ndarray, shape (paths,)
        Length of the first step.
    arrived : callable, optional
        Condition for the end of a path, evaluated after every step.
    margin : callable, optional
        Function whose first change of sign, from below, is the event of a path.
    stop : float or ndarray, shape (paths,)
        Time at which paths end that have not arrived.
    most_steps : int
        Number of steps, rejected ones included, after which paths are given up.

    Raises
    ------
    InputError
        If there is no end: neither `arrived` nor a finite `stop`.
    """
    if arrived is None and not np.all(np.isfinite(stop)):
        raise InputError(f"stop = {stop}: paths have no end; give a finite time, or say where paths arrive")
    with np.errstate(all="ignore"):  # a step with a value that is not finite is rejected
        run = _Run(velocity, starts, tolerance, first_step, longest_step, stop, margin)
        for _ in range(most_steps):
            run.let_go(arrived)
            if not len(run.going):
                break
            run.step()
        else:
            run.let_go(arrived)
    return Paths(run.q, run.time, run.event, run.finished)


class _Run:
    """Integration of many paths under way."""

    def __init__(
        self,
        velocity: Velocity,
        starts: FloatArray,
        tolerance: Tolerance,
        first_step: FloatArray | float,
        longest_step: float,
        stop: FloatArray | float,
        margin: Margin | None,
    ) -> None:
        self.q = np.array(starts, dtype=float)
        self.time, self.event = np.zeros(len(self.q)), np.full(len(self.q), np.inf)
        self.finished, self.going = np.zeros(len(self.q), dtype=bool), np.arange(len(self.q))
        self._stop = np.broadcast_to(stop, self.time.shape)
        self._velocity, self._tolerance, self._margin = velocity, tolerance, margin
        self._speed = velocity(self.q)
        self._step, self._longest = np.broadcast_to(first_step, self.time.shape).astype(float), longest_step
        if margin is not None:
            self.event[margin(self.q) >= 0.0] = 0.0

    def let_go(self, arrived: Arrived | None) -> None:
        """Drop the paths that are at their end from further steps."""
        done = self.time[self.going] >= self._stop[self.going]
        if arrived is not None:
            done |= arrived(self.q[self.going], self._speed[self.going])
        self.finished[self.going[done]] = True
        self.going = self.going[~done]

    def step(self) -> None:
        """Try a step of every path that goes on, not beyond its end, and choose the next one by its error."""
        going, before = self.going, self.q[self.going]
        stop = self._stop[going]
        left = stop - self.time[going]
        length = np.minimum(np.minimum(self._step[going], self._longest), left)
        slopes, ahead, error = _dormand_prince(self._velocity, before, self._speed[going], length)
        scale = self._tolerance.absolute + self._tolerance.relative * np.maximum(np.abs(before), np.abs(ahead))
        size = (np.abs(error) / np.maximum(scale, np.finfo(float).tiny)).max(axis=1)
        size = np.where(np.isfinite(size), size, np.inf)
        self._step[going] = length * np.clip(
            0.9 * size**-0.2, 0.2, 5.0
        )  # a step that the error allows, for safety shorter
        good = size <= 1.0
        self._look_for_events(good, before, ahead, length, slopes)
        taken = going[good]
        self.q[taken], self._speed[taken] = ahead[good], slopes[-1, good]
        self.time[taken] = np.where(length < left, self.time[going] + length, stop)[good]

    def _look_for_events(
        self, good: Flags, before: FloatArray, ahead: FloatArray, length: FloatArray, slopes: FloatArray
    ) -> None:
        """Record the times at which margins first change their sign, in steps that are accepted."""
        margin = self._margin
        if margin is None:
            return
        meets = good & np.isinf(self.event[self.going]) & (margin(ahead) >= 0.0)
        if not meets.any():
            return
        curve = length[meets, None, None] * np.einsum("snk,sp->nkp", slopes[:, meets], RK45.P)
        low, high = np.zeros(len(curve)), np.ones(len(curve))
        for _ in range(52):  # the bits of a share of the step
            share = 0.5 * (low + high)
            powers = share[:, None] ** np.arange(1, curve.shape[2] + 1)
            after = margin(before[meets] + np.einsum("nkp,np->nk", curve, powers)) >= 0.0
            low, high = np.where(after, low, share), np.where(after, share, high)
        where = self.going[meets]
        self.event[where] = self.time[where] + high * length[meets]


def _dormand_prince(
    velocity: Velocity, q: FloatArray, speed: FloatArray, length: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Dormand-Prince step of every path: slopes at its stages, (7, n, d), its end, and its error, (n, d)."""
    slopes, length = np.empty((RK45.n_stages + 1, *q.shape)), length[:, None]
    slopes[0] = speed
    for i, row in enumerate(RK45.A[1:], 1):
        slopes[i] = velocity(q + length * _sum(row[:i], slopes[:i]))
    ahead = q + length * _sum(RK45.B, slopes[:-1])
    slopes[-1] = velocity(ahead)
    return slopes, ahead, length * _sum(RK45.E, slopes)


def _sum(weight: FloatArray, slopes: FloatArray) -> FloatArray:
    """Sum over stages, in the same order for any number of paths."""
    return np.asarray(sum(w * k for w, k in zip(weight, slopes, strict=True)))
