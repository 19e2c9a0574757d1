"""Common style of all figures: a colour, a line style and a marker that go together, and words for what is drawn.

No two curves of a panel differ by colour alone, so that a figure can be read in grey print and by people with
colour-blindness.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import xarray as xr

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
