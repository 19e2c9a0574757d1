"""Figure of a report on assumptions: the exact theory, the conventional one and the matched Gaussian in time."""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.plotting.style import TIME, Panel, curve_style, draw_panels
from meanfield.typing import FloatArray

THEORIES = {"": "mixture", "_matched": "matched Gaussian", "_conventional": "conventional"}
"""Endings of variables, and labels of their curves."""

PANELS = {"generalisation_error": r"generalisation error $\epsilon_g$", "R": "overlap with teacher", "Q": "covariance"}
"""Label of the axis of each variable."""


def plot_assumptions(report: xr.Dataset) -> Figure:
    """Generalisation error, the entries of R and Q in which the theories differ most, and the kurtosis of fields."""
    panels: list[Panel] = [partial(_plot, name=name) for name in PANELS]
    return draw_panels(report, [*panels, _plot_kurtosis] if "kurtosis" in report else panels)


def _plot(report: xr.Dataset, axes: Axes, name: str) -> Axes:
    values: dict[str, FloatArray] = {end: report[name + end].values for end in THEORIES if name + end in report}
    place = _most_apart(list(values.values()))
    index = "".join(str(k + 1) for k in place)
    for number, (end, curve) in enumerate(values.items()):
        axes.plot(report["time"], [now[place] for now in curve], label=THEORIES[end], **curve_style(number))
    axes.set(xlabel=TIME, ylabel=f"{PANELS[name]} ${name}_{{{index}}}$" if index else PANELS[name])
    return axes


def _most_apart(curves: list[FloatArray]) -> tuple[int, ...]:
    """Entry in which curves differ most, the first if there is one curve."""
    apart = np.nan_to_num(np.ptp(np.array(curves), axis=0)).max(axis=0)
    return tuple(int(i) for i in np.unravel_index(np.argmax(apart), apart.shape)) if apart.ndim else ()


def _plot_kurtosis(report: xr.Dataset, axes: Axes) -> Axes:
    values = report["kurtosis"].values
    for k in range(values.shape[1]):
        axes.plot(report["time"], values[:, k], label=rf"$\lambda_{{{k + 1}}}$", **curve_style(k))
    axes.axhline(3.0, color="0.6", lw=0.8)
    axes.set(xlabel=TIME, ylabel="kurtosis of the student's fields")
    return axes
