"""Problems in time, for solvers that ask at every step what phases and schedules say."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from meanfield.errors import InputError
from meanfield.ingredients.part import with_unchecked
from meanfield.problems.base import Problem, corners_of, schedules_of
from meanfield.problems.phases import Piece, piece_at, pieces_of
from meanfield.problems.problem_keys import steps_of
from meanfield.typing import FloatArray

P = TypeVar("P", bound=Problem)
T = TypeVar("T")


class Stretch(NamedTuple, Generic[P]):
    """Time between two corners, in which nothing jumps or bends.

    Parameters
    ----------
    start, stop : float
    at : callable
        Problem at a time; at both ends as it is inside.
    """

    start: float
    stop: float
    at: Callable[[float], P]

    def outputs(self, times: FloatArray) -> FloatArray:
        """Both ends, and those of some times that are in between."""
        return np.unique([self.start, *times[(times >= self.start) & (times <= self.stop)], self.stop])


class InTime(Generic[P]):
    """Problem at each time of a run, that of its phase with the values of its schedules; at a jump those after it.

    A problem whose numbers are those of the time before is the same object, and so are its tables. One without phases
    and schedules is always returned as it is. Values are checked against the bounds of their keys, and nothing else.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: P) -> None:
        self._problem = self._current = problem
        self._piece: P | None = None
        self._values: dict[str, float] = {}
        self._pieces = [(piece, schedules_of(piece.problem)) for piece in pieces_of(problem)]
        self.moves = len(self._pieces) > 1 or bool(self._pieces[0][1])
        self.corners = corners_of(problem)

    def __call__(self, time: float) -> P:
        """Problem at a time.

        Raises
        ------
        InputError
            If a user's function has a value there that its key does not allow.
        """
        if not self.moves:
            return self._problem
        piece = piece_at(self._problem, time).problem
        if piece is not self._piece:
            self._piece, self._current, self._values = piece, piece, {}
            self._schedules = next(schedules for each, schedules in self._pieces if each.problem is piece)
        for key, schedule in self._schedules.items():
            value = schedule.value_at(time)
            if value != self._values.get(key):
                try:
                    schedule.check_values(key, np.array([time]), np.array([value]))
                except ValueError as error:
                    raise InputError(f"{error}") from error
                self._values[key] = value
                self._current = _with_number(self._current, steps_of(key), value)
        return self._current

    def stretches(self, stop: float) -> list[Stretch[P]]:
        """Stretches from one corner to the next until a time."""
        ends = [0.0, *(time for time in self.corners if time < stop), stop]
        return [Stretch(low, high, self._inside(low, high)) for low, high in itertools.pairwise(ends)]

    def _inside(self, low: float, high: float) -> Callable[[float], P]:
        if not self.moves:
            return lambda _: self._problem
        last = float(np.nextafter(high, low))
        return lambda time: self(min(max(time, low), last))

    def extremes(self, stop: float) -> dict[float, P]:
        """Problems at the start of each phase, and where one of its numbers is smallest or largest, by their times."""
        if not self.moves:
            return {0.0: self._problem}
        times = set()
        for (start, last, _), schedules in self._pieces:
            ends = start, min(last, stop)
            times |= {start, *(time for schedule in schedules.values() for time in schedule.extremes(*ends))}
        return {time: self(time) for time in sorted(times)}


def pieces_in_steps(problem: P, besides: Container[str] = ()) -> list[Piece[P]]:
    """Phases of a problem, cut where numbers that change in steps become others; in each piece these are numbers.

    Parameters
    ----------
    besides : container of str
        Keys whose schedules stay as they are.
    """
    found: list[Piece[P]] = []
    for start, stop, each in pieces_of(problem):
        steps = {
            key: schedule
            for key, schedule in schedules_of(each).items()
            if key not in besides and (schedule.in_steps or "whole" in schedule.bounds)
        }
        corners = sorted({time for schedule in steps.values() for time in schedule.corners if start < time < stop})
        at = {time: {key: steps[key].value_at(time) for key in steps} for time in (start, *corners)}
        begins = [start, *(after for before, after in itertools.pairwise(at) if at[after] != at[before])]
        found += [Piece(low, high, with_numbers(each, at[low])) for low, high in itertools.pairwise([*begins, stop])]
    return found


def with_numbers(problem: P, numbers: Mapping[str, float]) -> P:
    """Copy of a problem with numbers under some keys, which nobody checks."""
    for key, value in numbers.items():
        problem = _with_number(problem, steps_of(key), value)
    return problem


def check_at_extremes(problem: P, check: Callable[[P], object]) -> None:
    """Refuse a problem that a check refuses at the extremes of its schedules, and say at which time."""
    in_time = InTime(problem)
    for time, each in in_time.extremes(problem.time.stop).items():  # type: ignore[attr-defined]
        try:
            check(each)
        except InputError as error:
            raise InputError(f"{error} (at t = {time:.6g})" if in_time.moves else f"{error}") from error


def made_of(make: Callable[[P], T], parts: Callable[[P], object]) -> Callable[[P], T]:
    """Function of problems that makes something anew only where parts of the problem are others than last time."""
    of: P | None = None
    wanted: object = None
    made: T

    def remember(problem: P) -> T:
        nonlocal of, wanted, made
        if of is not problem:
            before, of, wanted = (of, wanted), problem, parts(problem)
            if before[0] is None or before[1] != wanted:
                made = make(problem)
        return made

    return remember


def _with_number(held: Any, steps: list[str | int], value: float) -> Any:
    """Copy of a part, or of a tuple or table of such, with a number at the end of a path."""
    if not steps:
        return value
    first, rest = steps[0], steps[1:]
    if isinstance(held, tuple):
        return tuple(_with_number(inner, rest, value) if index == first else inner for index, inner in enumerate(held))
    if isinstance(held, dict):
        return type(held)(held | {first: _with_number(held[first], rest, value)})
    return with_unchecked(held, **{str(first): _with_number(getattr(held, str(first)), rest, value)})
