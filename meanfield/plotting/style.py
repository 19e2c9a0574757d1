"""Common style of all figures: a colour, a line style and a marker that go together, and panels in rows.

No two curves of a panel differ by colour alone, so that a figure can be read in grey print and by people with
colour-blindness.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.plotting.legends import is_beside, place_legend
from meanfield.results.result import family_of_result
from meanfield.typing import FloatArray

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Palette of Okabe and Ito."""

LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (3, 1, 1, 1, 1, 1)), (0, (9, 3)))
"""Line styles, by name or as (offset, lengths of dashes and gaps)."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")

TIME = "time $t = k/N$"

ANY_TIME = "time $t$"
"""Label of the time axis of results of any family: steps that make a unit of time differ."""

Panel = Callable[[xr.Dataset, Axes], Axes]
"""Plot function of one quantity."""

PANEL_WIDTHS = {1: 4.8, 2: 4.2, 3: 3.45}
"""Width of a panel in inches by their number in a row: on a page 8 inches wide no text is below 7 pt."""

PANEL_HEIGHT = 3.1
"""Height of a panel in inches."""

AROUND_PANEL = 1.0
"""Height in inches of what is above and below the axes of a panel: its title, ticks and label."""

TITLE_HEIGHT, TITLE_LINE = 0.3, 0.2
"""Height of the title of a figure in inches, and that of each further line."""

TITLE_WIDTH = 32
"""Largest number of letters in a line of the title of a panel: so many fit where legends stand beside three panels."""


def curve_style(number: int) -> dict[str, Any]:
    """Colour and line style of a curve, and from the seventh curve of a panel on a marker, for `Axes.plot`.

    Parameters
    ----------
    number : int
        Of the curve in its panel, from 0.
    """
    style = {"color": COLOURS[number % len(COLOURS)], "linestyle": LINES[number % len(LINES)]}
    turn = number // len(LINES)
    return style | ({"marker": MARKERS[(turn - 1) % len(MARKERS)], "markevery": 0.1} if turn else {})


def marker_style(number: int, first: int = 0) -> dict[str, Any]:
    """Colour and marker of points, without a line between them, for `Axes.plot` and `Axes.errorbar`.

    Parameters
    ----------
    number : int
        Of the points in their panel, from 0: those of a curve of the same number have its colour.
    first : int
        Number of markers that are left out, because something else in the panel has them.
    """
    marker = MARKERS[(first + number) % len(MARKERS)]
    return {"color": COLOURS[number % len(COLOURS)], "marker": marker, "linestyle": "none"}


def draw_panels(dataset: xr.Dataset, panels: Sequence[Panel]) -> Figure:
    """One figure of all `panels` of a Dataset, with their legends and the title of its problem."""
    return draw_figure(dataset.attrs["title"], [partial(panel, dataset) for panel in panels])


def draw_figure(title: str, panels: Sequence[Callable[[Axes], Axes]]) -> Figure:
    """One figure of all `panels`, at most three in a row, with their legends, as high as the tallest legend needs."""
    columns = math.ceil(len(panels) / math.ceil(len(panels) / max(PANEL_WIDTHS)))
    rows = math.ceil(len(panels) / columns)
    above = TITLE_HEIGHT + TITLE_LINE * title.count("\n")
    figure = Figure(figsize=(PANEL_WIDTHS[columns] * columns, PANEL_HEIGHT * rows + above), layout="constrained")
    all_axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for plot, axes in zip(panels, all_axes, strict=False):
        plot(axes)
        _spread_out_times(axes)
    for axes in all_axes[len(panels) :]:
        axes.remove()
    # A title is the user's: it is no formula, even with dollars in it.
    figure.suptitle(title, parse_math=False, wrap=True)
    _place_legends(figure, rows, above)
    return figure


def _spread_out_times(axes: Axes) -> None:
    """Show times that are evenly spaced in their logarithms, but for the start, on such an axis."""
    known = [np.asarray(line.get_xdata(), dtype=float) for line in axes.get_lines()]
    times = next((x for x in known if len(x) > 3), np.empty(0))
    if not axes.get_xlabel().startswith("time") or not times.size or times[0] != 0 or not (times[1:] > 0).all():
        return
    growth = np.diff(np.log(times[1:]))
    if np.allclose(growth, growth[0]) and growth[0] > 0:
        axes.set_xscale("symlog", linthresh=times[1], linscale=0.5)
        axes.set_xlim(left=0.0)


def _place_legends(figure: Figure, rows: int, above: float) -> None:
    """Place the legends of a figure in panels as they are laid out, and make it as high as the tallest legend needs.

    A legend beside a panel makes it narrower, so that those inside may need other places.
    """
    panels = [axes for axes in figure.axes if axes.get_legend_handles_labels()[1]]
    limits = {axes: (axes.get_ylim(), axes.get_autoscaley_on()) for axes in panels}
    _lay_out(figure)
    legends = {axes: legend for axes in panels if (legend := place_legend(axes)) is not None}
    tallest = max((legend.get_window_extent().height / figure.dpi for legend in legends.values()), default=0.0)
    inside = [axes for axes, legend in legends.items() if not is_beside(legend)]
    if tallest + AROUND_PANEL <= PANEL_HEIGHT and len(inside) == len(legends):
        return
    figure.set_figheight(max(PANEL_HEIGHT, tallest + AROUND_PANEL) * rows + above)
    _lay_out(figure)
    for axes in inside:
        (low, high), automatic = limits[axes]
        axes.set_ylim(low, high, auto=automatic)
        place_legend(axes)


def _lay_out(figure: Figure) -> None:
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.execute(figure)


def time_styles(times: Sequence[float] | FloatArray) -> list[dict[str, Any]]:
    """Style of the curve of each of some times: from light to dark, which grey print keeps, the last one solid."""
    shades = matplotlib.colormaps["viridis"](np.linspace(0.8, 0.0, len(times)))
    last_first = range(len(times) - 1, -1, -1)
    return [
        curve_style(number) | {"color": matplotlib.colors.to_hex(shade)}
        for shade, number in zip(shades, last_first, strict=True)
    ]


def symbol(name: str, feature: int, features: int) -> str:
    """The symbol of a number that each feature has: $q$, or $q_1$, $q_2$ where there are several."""
    return f"${name}$" if features == 1 else f"${name}_{feature + 1}$"


def feature_label(dataset: xr.Dataset, name: str, feature: int, words: str = "") -> str:
    """Words of a legend, and the symbol where there are no words or several features."""
    features = dataset.sizes["feature"]
    return words if words and features == 1 else f"{words} {symbol(name, feature, features)}".lstrip()


def entry_label(name: str, index: str, words: str = "") -> str:
    """Words of a legend, and the symbol of an entry with its indices, such as $q_{12}$."""
    subscript = index if len(index) == 1 else f"{{{index}}}"
    return f"{words} ${name}{'_' * bool(index)}{subscript if index else ''}$".lstrip()


def key_words(dataset: xr.Dataset, key: str) -> str:
    """Words and symbol of a key of a problem, or the key itself."""
    return family_of_result(dataset).words_of(key)
