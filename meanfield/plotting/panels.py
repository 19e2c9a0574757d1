"""Figures of panels in rows, with their legends, and below them what changes in time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.plotting.course import Course, course_of
from meanfield.plotting.legends import is_beside, place_legend
from meanfield.typing import FloatArray

Panel = Callable[[xr.Dataset, Axes], Axes]
"""Plot function of one quantity."""

PANEL_WIDTHS = {1: 4.8, 2: 4.2, 3: 3.45}
"""Width of a panel in inches by their number in a row: on a page 8 inches wide no text is below 7 pt."""

PANEL_HEIGHT = 3.1
"""Height of a panel in inches."""

AROUND_PANEL = 1.0
"""Height in inches of what is above and below the axes of a panel: its title, ticks and label."""


def draw_panels(dataset: xr.Dataset, panels: Sequence[Panel]) -> Figure:
    """One figure of all `panels` of a Dataset, with their legends and the title of its problem."""
    drawn = [partial(panel, dataset) for panel in panels]
    return draw_figure(dataset.attrs["title"], drawn, course_of(dataset))


def draw_figure(title: str, panels: Sequence[Callable[[Axes], Axes]], course: Course | None = None) -> Figure:
    """One figure of all `panels`, at most three in a row, with their legends, as high as the tallest legend needs.

    Parameters
    ----------
    course : Course, optional
        What changes in time: it has a low panel below the others, and its phases are shaded in those in time.
    """
    columns = math.ceil(len(panels) / math.ceil(len(panels) / max(PANEL_WIDTHS)))
    rows = math.ceil(len(panels) / columns)
    heights = [PANEL_HEIGHT] * rows + ([] if course is None else [course.height])
    beside = 0.3 + 0.2 * title.count("\n") + sum(heights[rows:])  # inches
    figure = Figure(figsize=(PANEL_WIDTHS[columns] * columns, PANEL_HEIGHT * rows + beside), layout="constrained")
    grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    all_axes = [figure.add_subplot(grid[number]) for number in range(len(panels))]
    for plot, axes in zip(panels, all_axes, strict=True):
        plot(axes)
        _spread_out_times(axes)
    in_time = [axes for axes in all_axes if _is_in_time(axes)]
    if course is not None:
        in_time.append(course.plot(figure.add_subplot(grid[rows, :], sharex=next(iter(in_time), None))))
    # A title is the user's: it is no formula, even with dollars in it.
    figure.suptitle(title, parse_math=False, wrap=True)
    _place_legends(figure, rows, beside)
    if course is not None:
        course.shade(in_time)  # last, as legends may stand on phases
    return figure


def mark_quantiles(axes: Axes, shares: FloatArray, times: FloatArray) -> None:
    """Mark times by which shares of runs have done something."""
    for share, t in zip(shares, times, strict=True):
        mark_time(axes, t, f"{100 * share:g} %")


def mark_time(axes: Axes, t: float, words: str) -> None:
    """Mark a time with words at the foot of a panel; nothing if it is NaN."""
    if np.isfinite(t):
        axes.axvline(t, color="0.6", lw=0.8)
        axes.annotate(words, (t, 0.02), xycoords=("data", "axes fraction"), fontsize="small")


def _is_in_time(axes: Axes) -> bool:
    return axes.get_xlabel().startswith("time")


def _spread_out_times(axes: Axes) -> None:
    """Show times that are evenly spaced in their logarithms, but for the start, on such an axis."""
    known = [np.asarray(line.get_xdata(), dtype=float) for line in axes.get_lines()]
    times = next((x for x in known if len(x) > 3), np.empty(0))
    if not _is_in_time(axes) or not times.size or times[0] != 0 or not (times[1:] > 0).all():
        return
    growth = np.diff(np.log(times[1:]))
    if np.allclose(growth, growth[0]) and growth[0] > 0:
        axes.set_xscale("symlog", linthresh=times[1], linscale=0.5)
        axes.set_xlim(left=0.0)


def _place_legends(figure: Figure, rows: int, beside: float) -> None:
    """Place the legends of a figure in panels as they are laid out, and make it as high as the tallest legend needs.

    A legend beside a panel makes it narrower, so that those inside may need other places.

    Parameters
    ----------
    rows : int
        Number of rows of panels.
    beside : float
        Height in inches of everything else.
    """
    panels = [axes for axes in figure.axes if axes.get_legend_handles_labels()[1]]
    limits = {axes: (axes.get_ylim(), axes.get_autoscaley_on()) for axes in panels}
    _lay_out(figure)
    legends = {axes: legend for axes in panels if (legend := place_legend(axes)) is not None}
    tallest = max((legend.get_window_extent().height / figure.dpi for legend in legends.values()), default=0.0)
    inside = [axes for axes, legend in legends.items() if not is_beside(legend)]
    if tallest + AROUND_PANEL <= PANEL_HEIGHT and len(inside) == len(legends):
        return
    figure.set_figheight(max(PANEL_HEIGHT, tallest + AROUND_PANEL) * rows + beside)
    _lay_out(figure)
    for axes in inside:
        (low, high), automatic = limits[axes]
        axes.set_ylim(low, high, auto=automatic)
        place_legend(axes)


def _lay_out(figure: Figure) -> None:
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.execute(figure)
