"""Figures and key numbers of networks in training: the exact flow, SGD, and statistics over replicas."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.plotting.style import Panel, curve_style, draw_panels
from meanfield.results.numbers import plain
from meanfield.typing import FloatArray

TIME = r"time $t = \eta k$"

CURVES = (
    ("energy $E_\\alpha$", {"energy": None}),
    (r"trace of $C_\alpha$ of the filters' outputs", {"covariance_trace": None}),
    ("best match of a token", {"chi_plus": r"$\chi_+$, tokens of generators", "chi_minus": r"$\chi_-$, other tokens"}),
    ("mean loss of a batch", {"loss": None}),
)
"""Label of the axis of each panel, and its curves with their names."""


def plot_training(dataset: xr.Dataset) -> Figure:
    """Energy, trace of the covariance, matches of tokens, and loss in time; means over replicas.

    Parameters
    ----------
    dataset : xarray.Dataset
        Of the kind `population`, `particles` or `ensemble`.
    """
    panels: list[Panel] = []
    for label, curves in CURVES:
        shown = {name: words for name, words in curves.items() if _values(dataset, name) is not None}
        if shown:
            panels.append(partial(_plot_curves, label=label, curves=shown))
    return draw_panels(dataset, panels)


def _plot_curves(dataset: xr.Dataset, axes: Axes, label: str, curves: dict[str, str | None]) -> Axes:
    for number, (name, words) in enumerate(curves.items()):
        values = _values(dataset, name)
        assert values is not None
        mean = values.mean(axis=0)
        style = curve_style(number)
        axes.plot(dataset["time"], mean, label=words, **style)
        if len(values) > 1:
            spread = values.std(axis=0, ddof=1)
            axes.fill_between(dataset["time"], mean - spread, mean + spread, color=style["color"], alpha=0.2, lw=0)
    axes.set(xlabel=TIME, ylabel=label)
    return axes


def _values(dataset: xr.Dataset, name: str) -> FloatArray | None:
    """Values in time, shape (replicas, times), or their mean as a single row; None where there are none."""
    if name in dataset:
        return np.atleast_2d(dataset[name].values)
    return dataset[f"{name}_mean"].values[None] if f"{name}_mean" in dataset else None


def of_training(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Energy, scores and ranks at the last time that was reached."""
    for name, words in (
        ("energy", "energy"),
        ("covariance_trace", "trace of the covariance of the filters' outputs"),
        ("chi_plus", "chi_+"),
        ("chi_minus", "chi_-"),
        ("loss", "mean loss"),
        ("top_rank", "effective rank of the top layer"),
    ):
        values = _values(dataset, name)
        if values is None:
            continue
        reached = np.flatnonzero(np.isfinite(values).all(axis=0))
        if len(reached):
            when = f"at t = {float(dataset['time'][reached[-1]]):g}"
            yield f"{words} {when}", plain(float(values[:, reached[-1]].mean()))
