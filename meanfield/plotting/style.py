"""Common style of all figures: colours and lines for people with colour-blindness too, and panels in rows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.results.schema import family_of_result
from meanfield.typing import FloatArray

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Palette of Okabe and Ito."""

LINES = ("-", "--", "-.", ":")

TIME = "time $t = k/N$"

Panel = Callable[[xr.Dataset, Axes], Axes]
"""Plot function of one quantity."""

MOST_COLUMNS = 3


def draw_panels(dataset: xr.Dataset, panels: Sequence[Panel]) -> Figure:
    """One figure of all `panels` of a Dataset, with their legends and the title of its problem."""
    columns = math.ceil(len(panels) / math.ceil(len(panels) / MOST_COLUMNS))
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(4.3 * columns, 3.5 * rows), layout="constrained")
    all_axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for plot, axes in zip(panels, all_axes, strict=False):
        plot(dataset, axes)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize="small", framealpha=0.75, edgecolor="none")
    for axes in all_axes[len(panels) :]:
        axes.remove()
    # A title is the user's: it is no formula, even with dollars in it.
    figure.suptitle(dataset.attrs["title"], parse_math=False, wrap=True)
    return figure


def time_styles(times: Sequence[float] | FloatArray) -> list[tuple[str, str]]:
    """Colour and line style for each of some times: from light to dark, which grey print keeps, the last one solid."""
    shades = matplotlib.colormaps["viridis"](np.linspace(0.8, 0.0, len(times)))
    lines = [LINES[(len(times) - 1 - i) % len(LINES)] for i in range(len(times))]
    return [(matplotlib.colors.to_hex(shade), line) for shade, line in zip(shades, lines, strict=True)]


def symbol(name: str, feature: int, features: int) -> str:
    """The symbol of a number that each feature has: $q$, or $q_1$, $q_2$ where there are several."""
    return f"${name}$" if features == 1 else f"${name}_{feature + 1}$"


def feature_label(dataset: xr.Dataset, name: str, feature: int, words: str = "") -> str:
    """Words of a legend, and the symbol where there are no words or several features."""
    features = dataset.sizes["feature"]
    return words if words and features == 1 else f"{words} {symbol(name, feature, features)}".lstrip()


def key_words(dataset: xr.Dataset, key: str) -> str:
    """Words and symbol of a key of a problem, or the key itself."""
    known = family_of_result(dataset).key_words
    return next((words for pattern, words in known.items() if re.fullmatch(pattern, key)), key)
