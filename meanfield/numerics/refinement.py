"""Refinement: a computation is repeated with better settings until it is good enough, or until two solutions agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from meanfield.typing import FloatArray

Level = TypeVar("Level")
Result = TypeVar("Result")


class Change(NamedTuple):
    """What a level changes in the result of the one before it, the estimate of its error: by variables, and largest."""

    errors: dict[str, FloatArray]
    largest: float


UNKNOWN = Change({}, math.inf)
"""Change of a level that has none before it."""


@dataclass(frozen=True)
class Refined(Generic[Level, Result]):
    """The finest level that was solved, the result of the one before it, and the change from there."""

    level: Level
    result: Result
    before: Result | None = None
    change: Change = UNKNOWN
    interrupted: bool = False


def refine(
    levels: Iterable[Level],
    solve: Callable[[Level], Result],
    compare: Callable[[Result, Result], Change],
    tolerance: float,
    status_of: Callable[[Result], str] = lambda _: "complete",
) -> Refined[Level, Result]:
    """Solve one level after the other until one changes less than the tolerance, or there are no more.

    Parameters
    ----------
    levels : iterable
        From coarse to fine. The next one is asked for when those before it are solved, so that levels may end where a
        budget is spent.
    solve : callable
        level -> result
    compare : callable
        (result of the level before, result) -> change
    tolerance : float
    status_of : callable, optional
        result -> status. Unless it is `complete` there are no more levels. After an interruption the level before
        stands, if its error is known.
    """
    found: Refined[Level, Result] | None = None
    for level in levels:
        try:
            result = solve(level)
            status = status_of(result)
        except KeyboardInterrupt:
            if found is None or found.before is None:
                raise
            status = "interrupted"
        if status == "interrupted" and found is not None and found.before is not None:
            return replace(found, interrupted=True)
        last, found = found, Refined(level, result, interrupted=status == "interrupted")
        if last is not None:
            found = replace(found, before=last.result, change=compare(last.result, result))
        if status != "complete" or found.change.largest <= tolerance:
            break
    assert found is not None, "there are levels"
    return found


def retry(
    attempt: Callable[[Level], Result], settings: Level, better: Callable[[Level, Result], Level | None]
) -> Result:
    """Result of the first attempt whose settings cannot be improved, or need not be.

    Parameters
    ----------
    attempt : callable
        settings -> result. What makes an attempt fail belongs to its result, so that `better` can answer to it.
    settings : object
        Settings of the first attempt.
    better : callable
        (settings, result) -> settings of the next attempt; None, or the same settings again, where there is to be none.
    """
    while True:
        result = attempt(settings)
        following = better(settings, result)
        if following is None or following == settings:
            return result
        settings = following


def change_of(before: dict[str, FloatArray], after: dict[str, FloatArray], names: Iterable[str]) -> Change:
    """Differences of some variables with a leading dim of times, and the largest of them."""
    errors = {f"{name}_error": largest_of_times(after[name] - before[name]) for name in names}
    return Change(errors, max(float(np.nanmax(error)) for error in errors.values()))


def largest_of_times(difference: FloatArray) -> FloatArray:
    """Largest size of a difference at any time, at all of them: at single times levels agree by chance.

    NaN at times that were not reached.
    """
    size = np.abs(difference)
    return np.where(np.isnan(size), np.nan, np.nanmax(size, axis=0))


def doublings(first: int, most: int) -> Iterator[int]:
    """A number, and twice the one before as long as it is allowed."""
    while first <= most:
        yield first
        first *= 2


def missed(what: str, error: float, key: str, tolerance: float, remedy: str = "raise it") -> str:
    """What is said of an estimated error of something that misses the tolerance of a key; "" if it does not.

    An error of which there is no estimate is infinite.
    """
    if error <= tolerance:
        return ""
    size = f"estimated at {error:.2g}, above" if math.isfinite(error) else "unknown, and may be above"
    return f"the error of {what} is {size} {key} = {tolerance:g}; {remedy}"
