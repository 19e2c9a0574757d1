"""Schedules from functions of t in Python: by name where they stand in a module, else as a table of their values.

A table is a cubic in each of its intervals, with the values and slopes of the function at both ends. Intervals are
halved until it is as close to the function as `ACCURACY` says, and begin anew at jumps, which bisection finds.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from meanfield.typing import FloatArray

ACCURACY = 1e-9
"""Largest error of a table, relative to the range of values."""

MOST_TIMES = 2000
"""Largest number of times of a table."""

SAMPLES = 1000
"""Number of intervals in which jumps are looked for, and at whose ends a table is checked."""

LEAST_JUMP = 1e-6
"""Least jump that is found, relative to the range of values."""

DIFFERENCE = 1.0 / 32.0
"""Step of differences for slopes, relative to the distance of times."""

_CENTRAL = (np.array([-2.0, -1.0, 1.0, 2.0]), np.array([1.0, -8.0, 8.0, -1.0]) / 12.0)
_ONE_SIDED = (np.arange(5.0), np.array([-25.0, 48.0, -36.0, 16.0, -3.0]) / 12.0)
"""Places and weights of differences of fourth order."""

_stop: ContextVar[float | None] = ContextVar("_stop", default=None)
"""End of the run of the problem that is being made."""


@contextmanager
def run_until(time: Any) -> Iterator[None]:
    """Context in which a problem is made with a table `time`, as it was given."""
    stop = time.get("stop") if isinstance(time, dict) else getattr(time, "stop", None)
    known = isinstance(stop, int | float) and 0.0 < stop <= 1e12  # as of `Time`
    token = _stop.set(float(stop) if known else None)  # type: ignore[arg-type]
    try:
        yield
    finally:
        _stop.reset(token)


def is_function(given: object) -> bool:
    """Whether something is a function of Python, or another object that can be called."""
    return callable(given) and not isinstance(given, type)


def schedule_of(function: Callable[[float], Any]) -> dict[str, Any]:
    """What a problem file says of a function of t.

    Raises
    ------
    ValueError
        If it has no finite value at some time, needs too many values, or nobody knows yet where the run ends.
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module != "__main__" and getattr(sys.modules.get(str(module)), name, None) is function:
        return {"function": f"{module}:{name}"}
    stop = _stop.get()
    if stop is None:
        raise ValueError("is a function of t; give it to meanfield.with_value or meanfield.Problem with time.stop")
    return _table(function, stop)


def jumps_of(values_at: Callable[[FloatArray], FloatArray], start: float, stop: float) -> list[float]:
    """Times from which on a function has another value than just before, by bisection to rounding, increasing.

    Halved are intervals in which the function changes otherwise than in those beside them, and of both halves the one
    in which it changes more. Where the change shrinks with the interval the function is smooth, however steep.
    """
    times = np.linspace(start, stop, SAMPLES + 1)
    values = values_at(times)
    least = LEAST_JUMP * float(np.ptp(values))
    change = np.pad(np.diff(values), 1, mode="edge")
    odd = np.abs(change[1:-1] - 0.5 * (change[:-2] + change[2:])) > 0.25 * least
    found = (_jump_in(values_at, *ends, least) for ends in zip(times[:-1][odd], times[1:][odd], strict=True))
    return [time for time in found if time is not None]


def _jump_in(values_at: Callable[[FloatArray], FloatArray], low: float, high: float, least: float) -> float | None:
    """Time of a jump of more than `least` in an interval, None if there is none."""
    before, after = values_at(np.array([low, high]))
    while abs(after - before) > least:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return high
        value = float(values_at(np.array([middle]))[0])
        if abs(value - before) >= abs(after - value):
            high, after = middle, value
        else:
            low, before = middle, value
    return None


def _table(function: Callable[[float], Any], stop: float) -> dict[str, Any]:
    """Table of a function until the end of a run."""
    known: dict[float, float] = {}

    def values_at(times: FloatArray) -> FloatArray:
        asked = times.ravel().tolist()
        known.update((t, value_of(function, t, "the function")) for t in asked if t not in known)
        return np.array([known[t] for t in asked]).reshape(times.shape)

    samples = np.linspace(0.0, stop, SAMPLES + 1)
    values = values_at(samples)
    # half of it, as only some times are tried, and what the rounding of values makes
    allowed = 0.5 * ACCURACY * float(np.ptp(values)) + 8.0 * np.finfo(float).eps * float(np.abs(values).max())
    jumps = jumps_of(values_at, 0.0, stop)
    ends = np.unique([0.0, *jumps, stop])
    pieces = [_piece(values_at, low, high, high in jumps, allowed) for low, high in itertools.pairwise(ends)]
    pieces += [(ends[-1:], values[-1:], np.zeros(1))] if stop in jumps else []
    times, values, slopes = (np.concatenate(part) for part in zip(*pieces, strict=True))
    if slopes.any():
        table = {"times": times.tolist(), "values": values.tolist(), "slopes": slopes.tolist()}
        return table | {"interpolation": "cubic"}
    first = np.append(True, np.diff(values) != 0.0)
    return {"times": times[first].tolist(), "values": values[first].tolist(), "interpolation": "step"}


def _piece(
    values_at: Callable[[FloatArray], FloatArray], low: float, high: float, jumps: bool, allowed: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Times, values and slopes of a table of a function, which may jump at the end."""
    times, bad = np.array([low, np.nextafter(high, low) if jumps else high]), np.empty(0)
    samples = np.linspace(low, times[-1], SAMPLES)
    while len(times := np.sort(np.append(times, bad))) <= MOST_TIMES:
        values, slopes = values_at(times), _slopes(values_at, times)
        tried = np.concatenate([samples, *(times[:-1] + share * np.diff(times) for share in np.arange(1, 8) / 8.0)])
        off = np.abs(cubic(times, values, slopes, tried) - values_at(tried)) > allowed
        at = np.unique(np.searchsorted(times, tried[off], side="right").clip(1, len(times) - 1))
        bad = 0.5 * (times[at - 1] + times[at])
        bad = bad[(bad > times[at - 1]) & (bad < times[at])]  # two neighbours have no number in between
        if not len(bad):
            return np.append(times[:-1], high), values, slopes
    raise ValueError(
        f"is a function that {MOST_TIMES:,} values do not describe until time.stop, for instance between t = "
        f"{bad.min():.6g} and {bad.max():.6g}; put it into a module, and give its name 'module:function'"
    )


def _slopes(values_at: Callable[[FloatArray], FloatArray], times: FloatArray) -> FloatArray:
    """Slopes at times, at the first and the last one from inside."""
    steps = np.diff(times) * DIFFERENCE
    steps = np.concatenate([steps[:1], np.minimum(steps[:-1], steps[1:]), -steps[-1:]])
    slopes = np.empty(len(times))
    for inside, (places, weights) in ((True, _CENTRAL), (False, _ONE_SIDED)):
        chosen = np.arange(1, len(times) - 1) if inside else np.array([0, len(times) - 1])
        around = times[chosen, None] + places * steps[chosen, None]
        # less the value itself, as weights have the sum 0 but for rounding
        slopes[chosen] = (values_at(around) - values_at(times[chosen, None])) @ weights / steps[chosen]
    return slopes


def cubic(known: FloatArray, values: FloatArray, slopes: FloatArray, times: FloatArray) -> FloatArray:
    """Cubic in each interval with the values and slopes at both ends; after the last one the value stays.

    Of two known times that are equal, the first is the end of an interval, and the second the start of the next.
    """
    k = np.searchsorted(known, times, side="right").clip(1, len(known) - 1) - 1
    width, change = known[k + 1] - known[k], values[k + 1] - values[k]
    first, last = width * slopes[k], width * slopes[k + 1]
    s = (times - known[k]) / width
    inside = values[k] + s * (first + s * (3.0 * change - 2.0 * first - last + s * (first + last - 2.0 * change)))
    return np.asarray(np.where(times < known[-1], inside, values[-1]))


def value_of(function: Callable[[float], Any], time: float, what: str) -> float:
    """Value of a user's function at a time.

    Raises
    ------
    ValueError
        If it raises an error, or returns no finite number.
    """
    try:
        value = float(function(time))
    except Exception as error:  # whatever a user's function raises
        raise ValueError(
            f"{what} at t = {time:.6g}: {type(error).__name__}: {error}; let it take t alone and return a number"
        ) from error
    if not np.isfinite(value):
        raise ValueError(f"{what} is {value} at t = {time:.6g}; let it return a finite number until time.stop")
    return value
