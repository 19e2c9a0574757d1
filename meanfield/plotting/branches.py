"""Branches of states as a number of the problem varies."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.plotting.arguments import draws
from meanfield.plotting.entries import entries
from meanfield.plotting.legends import share_legend
from meanfield.plotting.style import COLOURS, key_words
from meanfield.typing import FloatArray

STABILITY_STYLES: dict[int, dict[str, Any]] = {
    1: {"color": COLOURS[0], "linestyle": "-", "linewidth": 2.0, "label": "stable"},
    0: {"color": COLOURS[4], "linestyle": ":", "linewidth": 2.0, "label": "marginal"},
    -1: {"color": COLOURS[1], "linestyle": "--", "linewidth": 1.3, "label": "unstable"},
}


@draws(continuation="parameter branch")
def plot_branches(continuation: xr.Dataset) -> Figure:
    """Branches of states against the number that varies: a panel for each overlap, one for r if it is not 0.

    Overlaps of several channels with a feature share its panel. Stable states are solid, unstable ones dashed, marginal
    ones dotted; circles are turning points.

    Parameters
    ----------
    continuation : xarray.Dataset
        From `meanfield.contrastive.continue_stationary_states` or `continue_fixed_points`.
    """
    panels: list[tuple[str, xr.DataArray]] = [
        ("overlap $q$" if continuation.sizes["feature"] == 1 else f"overlap $q_{k + 1}$", continuation["q"][:, k])
        for k in range(continuation.sizes["feature"])
    ]
    if "M" in continuation:
        pairs = entries(continuation["M"], "point")
        panels += [(f"overlap of channels $M_{{{i}}}$", continuation["M"].isel(p)) for i, p in pairs if i[0] != i[1]]
    if "r" in continuation and np.any(continuation["r"] != 0):
        panels.append((r"prior work $r = E[w\,\phi(w)]$", continuation["r"]))
    figure = Figure(figsize=(4.6 * len(panels), 3.8), layout="constrained")
    for axes, (label, values) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels, strict=True):
        for each in values.values.reshape(len(values), -1).T:  # of each channel, where there are several
            _plot_branch_values(continuation, each, axes)
        axes.set(xlabel=key_words(continuation, continuation["parameter"].attrs["key"]), ylabel=label)
    share_legend(figure)
    figure.suptitle(continuation.attrs["title"], parse_math=False)
    return figure


def _plot_branch_values(continuation: xr.Dataset, values: FloatArray, axes: Axes) -> None:
    p, turning = continuation["parameter"].values, continuation["turning"].values == 1
    # A turning point itself is marginal and has a sign of its own.
    verdicts = np.where(turning, np.roll(continuation["stability"].values, 1), continuation["stability"].values)
    for number in np.unique(continuation["branch"]):
        index = np.flatnonzero(continuation["branch"].values == number)
        cuts = np.flatnonzero(np.diff(verdicts[index])) + 1
        for piece in np.split(index, cuts):
            style = STABILITY_STYLES[int(verdicts[piece[0]])]
            shown = np.arange(piece[0], min(piece[-1] + 2, index[-1] + 1))  # on to where the next piece begins
            axes.plot(p[shown], values[shown], **style)
    if turning.any():
        style = {"color": COLOURS[-1], "markerfacecolor": "white", "label": "turning point", "zorder": 3}
        axes.plot(p[turning], values[turning], "o", **style)
