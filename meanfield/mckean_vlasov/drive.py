"""Numbers that schedules change in time, for compiled code: any number of them, and those of a limit.

These are factors of g, Lambda and the prior's force, relative to numbers of reference. A learning rate multiplies g and
phi and, squared, Lambda; the strength of a prior multiplies phi. A limit therefore has the coefficients of one constant
problem, that of the largest rate and strength, and three factors in time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from meanfield.numerics.piecewise import ORDER, Table, interpolate, panel_of, tabulate, with_derivatives
from meanfield.problems.base import Problem, schedules_of
from meanfield.problems.in_time import with_numbers
from meanfield.problems.problem_keys import value_of, with_values
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

P = TypeVar("P", bound=Problem)

RATE, STRENGTH = "model.learning_rate", "prior.strength"


class Drive(NamedTuple):
    """Numbers in time, none of them negative, for compiled code.

    Parameters
    ----------
    table : Table
        The numbers and their slopes as functions of t/stop; its breaks are where they jump or bend.
    stop : float
        End of the run.
    corners : ndarray, shape (corners + 2,)
        0, the times between 0 and the end at which the numbers jump or bend, and infinity.
    moves : bool
        Whether anything changes in time; if not, numbers are what they are without rounding.
    clock : ndarray, shape (2,)
        The last time at which numbers were filled in, for closures that change, and a short step; 0 without such.
    """

    table: Table
    stop: float
    corners: FloatArray
    moves: bool
    clock: FloatArray

    @property
    def room(self) -> FloatArray:
        """Array for numbers and their slopes, with those at the start."""
        count = len(self.table.values) // 2
        return np.append(self.table.values[:count, 0], np.zeros(count))

    @property
    def inner_corners(self) -> tuple[float, ...]:
        """Corners between the start and the end."""
        return tuple(self.corners[1:-1].tolist())

    def stopping_at(self, times: Sequence[float]) -> Drive:
        """The same with further corners."""
        return self._replace(corners=np.unique([*self.corners, *times]))

    def setting(self, clock: FloatArray) -> Drive:
        """The same with the clock of a closure that changes."""
        return self._replace(moves=True, clock=clock)

    def fill(self, time: float, low: float, high: float, result: FloatArray) -> None:
        """Fill in numbers and their slopes; see `fill_numbers`, which is compiled only where something moves."""
        if self.moves:
            fill_numbers(self, time, low, high, result)

    def at(self, times: FloatArray) -> FloatArray:
        """Numbers at some times, from a corner on at corners, shape (times, numbers)."""
        both = self.room
        count = len(both) // 2
        found = np.tile(both[:count], (len(times), 1))
        if self.moves:
            pieces = np.searchsorted(self.corners, times, side="right")
            ends = self.corners[pieces - 1], self.corners[pieces]
            for i, (time, low, high) in enumerate(zip(times, *ends, strict=True)):
                fill_numbers(self, time, low, high, both)
                found[i] = both[:count]
        return found


def drive_of(numbers: Callable[[FloatArray], FloatArray], corners: FloatArray, stop: float) -> Drive:
    """Drive from a function of times, shape (n,), to the numbers, shape (numbers, n)."""
    inner = np.unique([time for time in corners if 0.0 < time < stop])
    table = tabulate(
        lambda x: numbers(stop * np.clip(x, 0.0, 1.0)),
        [0.0, *(inner / stop)],  # nothing changes before the start
        1.0,
        "a schedule",
        "give the times at which it jumps or bends",
    )
    moves = bool(np.any(table.values != table.values[:, :1]))
    return Drive(with_derivatives(table, len(table.values)), stop, np.array([0.0, *inner, np.inf]), moves, np.zeros(2))


def steady_drive(stop: float, count: int = 3) -> Drive:
    """Drive of `count` numbers that stay 1, which never looks at its table."""
    none, values = np.empty(0), np.repeat([[1.0], [0.0]], count, axis=0)
    table = Table(np.array([-1.0, 1.0]), none, none, values, np.zeros((1, ORDER, 2 * count)), none, values.T[:0])
    return Drive(table, stop, np.array([0.0, np.inf]), moves=False, clock=np.zeros(2))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def piece_of(drive, time):  # type: ignore[no-untyped-def]
    """Corners between which a time lies; at a corner, that one and the next."""
    last = 1
    while drive.corners[last] <= time:
        last += 1
    return drive.corners[last - 1], drive.corners[last]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fill_numbers(drive, time, low, high, result):  # type: ignore[no-untyped-def]
    """Fill in the numbers at a time, then their slopes, as they are between the corners `low` and `high`.

    At a corner itself they are those on the side of the other one.
    """
    if not drive.moves:
        return
    drive.clock[0] = time
    table, x = drive.table, time / drive.stop
    inside = min(max(x, low / drive.stop), high / drive.stop * (1.0 - 1e-15))  # the panel before the corner
    interpolate(table, panel_of(table, inside), x, result)
    count = result.size // 2
    for i in range(count):
        result[i] = max(result[i], 0.0)  # a series may leave -1e-17
        result[count + i] /= drive.stop


def reference_of(problem: P, keys: Sequence[str] | None = None) -> P:
    """Problem with the largest values of its schedules; of given factors alone, others as they are."""
    found = {key: _largest(problem, key) for key in schedules_of(problem) if keys is None or key in keys}
    return with_values(problem, found) if keys is None else with_numbers(problem, found)  # a factor fits to any other


def _largest(problem: Problem, key: str) -> float:
    """Largest value of a schedule; 1, if it is zero throughout."""
    schedule, stop = schedules_of(problem)[key], problem.time.stop  # type: ignore[attr-defined]
    times = np.unique([*np.linspace(0.0, stop, 1000), *(time for time in schedule.corners if time <= stop)])
    return float(schedule.values_at(times).max()) or 1.0


def factors_of(problem: Problem, reference: Problem) -> Callable[[FloatArray], FloatArray]:
    """Learning rate and strength of the prior, relative to the reference, as functions of times, shape (2, times)."""
    schedules = schedules_of(problem)

    def factor(key: str, times: FloatArray) -> FloatArray:
        if key not in schedules:
            return np.ones(times.shape)
        return schedules[key].values_at(times) / value_of(reference, key)

    return lambda times: np.array([factor(RATE, times), factor(STRENGTH, times)])


def drive_for(problem: Problem, reference: Problem) -> Drive:
    """Drive by the schedules of a problem, relative to its reference."""
    relative = factors_of(problem, reference)
    schedules = schedules_of(problem)
    corners = [time for key in (RATE, STRENGTH) if key in schedules for time in schedules[key].corners]

    def factors(times: FloatArray) -> FloatArray:
        rate, strength = relative(times)
        return np.array([rate, rate * rate, rate * strength])

    return drive_of(factors, np.array(corners), problem.time.stop)  # type: ignore[attr-defined]
