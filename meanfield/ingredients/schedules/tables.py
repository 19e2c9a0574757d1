"""Schedules from numbers at times, in a problem file or a CSV file, and from functions of users."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from meanfield.errors import InputError
from meanfield.ingredients.file_part import FilePart
from meanfield.ingredients.named_functions import NamesFunctions
from meanfield.ingredients.objects import Object
from meanfield.ingredients.part import FieldError, after_fields
from meanfield.ingredients.schedules.sampling import cubic, jumps_of, value_of
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.ingredients.user_functions import is_address, load_own
from meanfield.typing import FloatArray

Numbers = Annotated[tuple[float, ...], Field(strict=False, max_length=100_000)]

BETWEEN = "'linear' between the times, or 'step', where each value holds until the next time"

MOST_LISTED = 8
"""Largest number of jumps that a message proposes to declare."""


class _Tabulated(Schedule):
    """Values at times, of which the first is 0, and the last one no earlier than `time.stop`.

    In steps the last value has no next time that ends it, and stays, as does a value that is alone.
    """

    if TYPE_CHECKING:  # fields come in the order of files
        interpolation: str

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """Times and values."""
        raise NotImplementedError

    @property
    def _going_on(self) -> tuple[str, str]:
        """Where the times stand, and what goes on to a time with a value, with places for these numbers."""
        raise NotImplementedError

    def check(self, key: str, stop: float) -> None:
        """See `Schedule.check`; what says nothing of the end of the run is refused, too."""
        super().check(key, stop)
        times, values = self.atoms
        if times[-1] < stop * (1.0 - 1e-12) and not self.in_steps:  # but for rounding
            place, remedy = self._going_on
            raise ValueError(
                f"{key}.{place} ends at t = {times[-1]:.15g}, before the run does, at time.stop = {stop:.15g}; "
                f"{remedy.format(stop, values[-1])}, if it keeps its last value, or lower time.stop"
            )

    def values_at(self, times: FloatArray) -> FloatArray:
        """See `Schedule.values_at`."""
        return _between(*self.atoms, self.interpolation, times)

    @property
    def corners(self) -> tuple[float, ...]:
        """See `Schedule.corners`."""
        return tuple(dict.fromkeys(self.atoms[0][1:].tolist()))

    @property
    def in_steps(self) -> bool:
        """See `Schedule.in_steps`."""
        return self.interpolation == "step" or len(self.atoms[0]) == 1


class Table(_Tabulated):
    """Values at times."""

    times: Numbers = Field(min_length=1, description="times t = k/N, increasing from 0.0")
    values: Numbers = Field(min_length=1, description="one value for each time")
    interpolation: Literal["linear", "step", "cubic"] = Field(
        default="linear", description=f"{BETWEEN}; 'cubic' with slopes, where it jumps between two times that are equal"
    )
    slopes: Numbers | None = Field(default=None, description="one slope for each time, for interpolation = 'cubic'")

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """See `_Tabulated.atoms`."""
        return np.array(self.times), np.array(self.values)

    @property
    def _going_on(self) -> tuple[str, str]:
        slope = "" if self.slopes is None else " and the slope 0.0"
        return "times", f"add the time {{:.15g}} with the value {{:.15g}}{slope}"

    @after_fields
    def _times_increase(self) -> None:
        _check_table(self.times, self.values, jumps=self.interpolation == "cubic")
        if self.interpolation == "cubic" and len(self.slopes or ()) != len(self.times):
            raise FieldError("slopes", f"are {len(self.slopes or ())} for {len(self.times)} times; give one for each")
        if self.interpolation != "cubic" and self.slopes is not None:
            raise FieldError("slopes", "belong to interpolation = 'cubic'; set that, or remove them")

    def values_at(self, times: FloatArray) -> FloatArray:
        """See `Schedule.values_at`."""
        if self.slopes is None:
            return super().values_at(times)
        return cubic(*self.atoms, np.array(self.slopes), np.asarray(times, dtype=float))

    @property
    def in_words(self) -> str:
        """See `Schedule.in_words`."""
        return _table_in_words(self.times, self.values, self.interpolation)


class FileTable(_Tabulated, FilePart):
    """Values at times from the first two columns of a CSV file."""

    file: str = Field(description="CSV file with a line 't, value' for each time; a line of words may stand above")
    interpolation: Literal["linear", "step"] = Field(default="linear", description=BETWEEN)

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """Times and values.

        Raises
        ------
        InputError
            If the file has none.
        """
        return self.read_once("file", lambda _: _read_table(self.file))

    @property
    def _going_on(self) -> tuple[str, str]:
        return f"file = {self.file}", "add the line '{:.15g}, {:.15g}'"

    @property
    def in_words(self) -> str:
        """See `Schedule.in_words`."""
        if self.is_refused:
            return f"from {self.file} (not opened)"
        times, values = (tuple(part.tolist()) for part in self.atoms)
        return f"from {self.file}, {_table_in_words(times, values, self.interpolation)}"


def _read_table(path: str) -> tuple[FloatArray, FloatArray]:
    """Times and values of a CSV file, or of the rows of an array in its place."""
    if isinstance(path, Object):
        given = np.asarray(path.content)
        if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "fiu" or not np.isfinite(given).all():
            raise InputError(f"{path}: is no array of rows 't, value' of finite numbers, shape (times, 2); correct it")
        return _checked_table(path, *given.astype(float).T)
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read ({error}); give a CSV file of times and values") from error
    numbers = [_numbers_of(row) for row in rows]
    if numbers and numbers[0] is None and not re.match(r"\s*[-+.]?\d", rows[0][0]):
        rows, numbers = rows[1:], numbers[1:]  # a line of words above
    wrong = next((row for row, found in zip(rows, numbers, strict=True) if found is None), None)
    if wrong is not None or not numbers:
        shown = f"the line {','.join(wrong)!r:.60}" if wrong is not None else "no line"
        raise InputError(f"{path}: {shown} where 't, value' is wanted, such as 2.0, 0.06; correct it")
    return _checked_table(path, *np.array([each for each in numbers if each]).T)


def _checked_table(path: str, times: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    try:
        _check_table(tuple(times), tuple(values))
    except FieldError as error:
        raise InputError(f"{path}: {error.key} {error}") from error
    return times, values


def _numbers_of(row: list[str]) -> tuple[float, float] | None:
    try:
        time, value = (float(cell) for cell in row[:2])
    except ValueError:
        return None
    return (time, value) if np.isfinite([time, value]).all() else None


def _check_table(times: tuple[float, ...], values: tuple[float, ...], jumps: bool = False) -> None:
    """Refuse times that do not increase from 0, or without a value each; where there are jumps two may be equal."""
    if len(values) != len(times):
        raise FieldError("values", f"has {len(values)} numbers for {len(times)} times; give one for each")
    if times[0] != 0.0:
        raise FieldError("times", f"begins with {times[0]:g}; begin with 0.0, the start of a run")
    before = (-1.0, -1.0, *times)
    late = next((k for k in range(len(times)) if not before[k + 1 - jumps] < times[k] >= before[k + 1]), None)
    if late is not None:
        raise FieldError("times", f"has {times[late]:g} after {times[late - 1]:g}; let times increase")


def _between(known: FloatArray, values: FloatArray, interpolation: str, times: FloatArray) -> FloatArray:
    if interpolation == "linear":
        return np.asarray(np.interp(times, known, values))
    return np.asarray(values[np.searchsorted(known, times, side="right").clip(1) - 1])


def _table_in_words(times: tuple[float, ...], values: tuple[float, ...], interpolation: str) -> str:
    if len(times) > 4:  # more would not be read
        return f"{len(times)} values from {values[0]:g} to {values[-1]:g} until t = {times[-1]:g}, {interpolation}"
    stops = [f"{value:g} at t = {time:g}" for time, value in zip(times, values, strict=True)]
    return f"{', '.join(stops)}, {'in steps' if interpolation == 'step' else f'{interpolation} in between'}"


class Function(Schedule, NamesFunctions):
    """Function of t in a module of the user, which returns a number."""

    function_key: ClassVar[str] = "function"
    make: ClassVar[Any] = staticmethod(
        lambda name, parameters, folder=None: _checked(load_own(_address(name), dict(parameters), folder), name)
    )

    function: str = Field(description="your own function of t as 'package.module:name'")
    jumps: Numbers = Field(default=(), description="times at which it jumps or bends")

    @after_fields
    def _jumps_are_times(self) -> None:
        if min(self.jumps, default=0.0) < 0.0:
            raise FieldError("jumps", f"has {min(self.jumps):g}; give times t = k/N of the run, from 0 on")

    def values_at(self, times: FloatArray) -> FloatArray:
        """See `Schedule.values_at`."""
        function, given, what = self.found(), np.asarray(times, dtype=float), f"'{self.function}'"
        try:
            return np.array([value_of(function, t, what) for t in given.ravel().tolist()]).reshape(given.shape)
        except ValueError as error:
            raise InputError(str(error)) from error

    def check(self, key: str, stop: float) -> None:
        """See `Schedule.check`; jumps that are not declared are refused, too, as integrators do not stop there."""
        try:
            super().check(key, stop)
        except InputError as error:
            raise ValueError(f"{key}.function: {error}") from error
        ends = [0.0, *(time for time in self.corners if 0.0 < time < stop), stop]
        found = [
            time
            for start, end in itertools.pairwise(ends)
            for time in jumps_of(self.values_at, start, np.nextafter(end, start))
        ]
        if found:
            before, after = self.values_at(np.array([np.nextafter(found[0], 0.0), found[0]]))
            jumps = ", ".join(f"{time:.15g}" for time in sorted([*self.jumps, *found[:MOST_LISTED]]))
            raise ValueError(
                f"{key}.function = '{self.function}' jumps from {before:.6g} to {after:.6g} at t = {found[0]:.15g}; "
                f"declare it: {{ function = '{self.function}', jumps = [{jumps}] }}"
            )

    @property
    def corners(self) -> tuple[float, ...]:
        """See `Schedule.corners`."""
        return tuple(sorted(self.jumps))

    @property
    def in_words(self) -> str:
        """See `Schedule.in_words`."""
        return f"'{self.function}', a user's own function of t"


def _address(name: str) -> str:
    """Address of a function; a name without a module is refused."""
    if not is_address(name):
        raise ValueError(f"'{name}' names no module; write 'module:function'")
    return name


def _checked(function: Any, name: str) -> Callable[[float], float]:
    """A function of t; anything else is refused."""
    if not callable(function):
        raise ValueError(f"'{name}' is {type(function).__name__}; give a function of t")
    value_of(function, 0.0, f"'{name}'")
    return function  # type: ignore[no-any-return]
