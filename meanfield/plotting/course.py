"""Numbers of a problem that change in time: a panel of their values, and the phases of a run in all panels."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield.errors import InputError
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.plotting.style import ANY_TIME, curve_style
from meanfield.problems.base import Problem, schedules_of
from meanfield.problems.phases import phase_numbers, pieces_of
from meanfield.problems.problem_keys import held_by, number_keys
from meanfield.results.result import Result
from meanfield.typing import FloatArray

SHADE = "0.93"
"""Grey of every second phase, which is lighter than any curve."""


class Course(NamedTuple):
    """What changes in the course of a run.

    Parameters
    ----------
    times : ndarray, shape (times,)
        Times of values, with those on both sides of each jump.
    values : dict of str to ndarray
        Words of numbers, and their values at these times; none of numbers from modules and files that a result names.
    ends : list of float
        Start of the run and ends of its phases.
    """

    times: FloatArray
    values: dict[str, FloatArray | None]
    ends: list[float]

    @property
    def height(self) -> float:
        """Height of its panel in inches."""
        return 1.7 if self._known else 1.1

    @property
    def _known(self) -> bool:
        """Whether it has any values to plot."""
        return any(values is not None for values in self.values.values())

    def plot(self, axes: Axes) -> Axes:
        """Plot one number as it is, or several as shares of their largest values, under the numbers of the phases."""
        alone = len(self.values) == 1
        for number, (words, values) in enumerate(self.values.items()):
            if values is None:
                axes.plot([], [], label=f"{words}, not opened", **curve_style(number))
                continue
            largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
            label = words if alone else f"{words}, up to {largest:.3g}"
            axes.plot(self.times, values if alone else values / (largest or 1.0), label=label, **curve_style(number))
        axes.set(xlabel=ANY_TIME, ylabel="value" if alone else "share of the largest" if self.values else "phases")
        if not self._known:
            axes.set(yticks=[])
        self._number(axes)
        return axes

    def shade(self, panels: Iterable[Axes]) -> None:
        """Shade every second phase, behind all that is drawn."""
        for axes in panels:
            limits = axes.get_xlim()
            for low, high in itertools.islice(itertools.pairwise(self.ends), 1, None, 2):
                axes.axvspan(low, high, color=SHADE, linewidth=0.0, zorder=0.0)
            axes.set_xlim(limits)

    def _number(self, axes: Axes) -> None:
        """Write the number of each phase above a panel."""
        if not 2 < len(self.ends) <= 21:  # of which at most 20 phases are numbered
            return
        scale, above = axes.xaxis.get_transform(), axes.get_xaxis_transform()
        places = scale.transform(np.array(self.ends))
        for number, middle in enumerate(scale.inverted().transform(0.5 * (places[1:] + places[:-1]))):
            axes.text(middle, 1.02, f"phase {number + 1}", transform=above, ha="center", va="bottom", fontsize="small")


def course_of(dataset: xr.Dataset) -> Course | None:
    """What changes in the course of the run that a result holds; None for results without time, and if nothing does."""
    if "time" not in dataset.dims:
        return None
    try:
        result = Result.of(dataset)
        problem, words_of = result.problem, result.family.words_of
    except InputError:  # a figure needs no problem
        return None
    schedules = schedules_of(problem)
    if not schedules and problem.phases is None:
        return None
    stop, ends = float(dataset["time"].max()), [piece.stop for piece in pieces_of(problem)]
    corners = np.array([*ends, *(corner for each in schedules.values() for corner in _corners(each))])
    outputs = dataset["time"].values  # which may be spread out evenly in their logarithms
    times = np.unique([*np.linspace(0.0, stop, 401), *outputs, *corners, *np.nextafter(corners, 0.0)])
    times = times[times <= stop]
    values = {words_of(key): _values(problem, key, times) for key in _changing(problem)}
    return Course(times, values, [0.0, *(end for end in ends if end < stop), stop])


def _changing(problem: Problem) -> list[str]:
    """Keys of the numbers that change in time, by schedules, or from one phase to another."""
    pieces = [piece.problem for piece in pieces_of(problem)]
    scheduled = list(dict.fromkeys(key for each in pieces for key in schedules_of(each)))
    found = [{key: held_by(each, key) for key in number_keys(each)} for each in pieces]
    steady = [key for key in found[0] if all(key in each for each in found) and not key.startswith(tuple(scheduled))]
    return [*scheduled, *(key for key in steady if len({each[key] for each in found}) > 1)]


def _corners(schedule: Schedule) -> tuple[float, ...]:
    try:
        return schedule.corners
    except InputError:  # in a file that a result names
        return ()


def _values(problem: Problem, key: str, times: FloatArray) -> FloatArray | None:
    """Values under a key at some times; None if they are in a file or a module that a result names."""
    values = np.full(len(times), np.nan)
    numbers = phase_numbers(problem, times)
    for number, piece in enumerate(pieces_of(problem)):
        held, inside = held_by(piece.problem, key), numbers == number
        try:
            values[inside] = held.values_at(times[inside]) if isinstance(held, Schedule) else held
        except InputError:
            return None
    return values
