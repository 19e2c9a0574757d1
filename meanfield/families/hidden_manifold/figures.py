"""Figure of hidden-manifold results in time: generalisation error, overlaps R, covariance Q, second layer v."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.plotting.style import TIME, curve_style, draw_panels

MOST_CURVES = 8
"""Largest number of curves in a panel: the first ones are drawn."""


def plot_order_parameters(dataset: xr.Dataset) -> Figure:
    """Generalisation error, R, Q and v of a result in time.

    Parameters
    ----------
    dataset : xarray.Dataset
        Of the kind `order_parameters` or `density`.
    """
    return draw_panels(dataset, [_plot_error, _plot_R, _plot_Q, _plot_v])


def _plot_error(dataset: xr.Dataset, axes: Axes) -> Axes:
    axes.plot(dataset["time"], dataset["generalisation_error"], **curve_style(0))
    axes.set(xlabel=TIME, ylabel=r"generalisation error $\epsilon_g$", ylim=(0.0, None))
    return axes


def _plot_R(dataset: xr.Dataset, axes: Axes) -> Axes:
    return _plot_pairs(dataset, axes, "R", "overlap with the teacher $R_{km}$")


def _plot_Q(dataset: xr.Dataset, axes: Axes) -> Axes:
    return _plot_pairs(dataset, axes, "Q", "covariance of the student $Q_{kl}$")


def _plot_v(dataset: xr.Dataset, axes: Axes) -> Axes:
    for k in range(min(dataset.sizes["student"], MOST_CURVES)):
        axes.plot(dataset["time"], dataset["v"].isel(student=k), label=f"$v_{{{k + 1}}}$", **curve_style(k))
    axes.set(xlabel=TIME, ylabel="second layer $v_k$")
    return axes


def _plot_pairs(dataset: xr.Dataset, axes: Axes, name: str, label: str) -> Axes:
    values = dataset[name].values
    pairs = [(k, j) for k, j in np.ndindex(*values.shape[1:]) if name == "R" or j >= k]
    for number, (k, j) in enumerate(pairs[:MOST_CURVES]):
        axes.plot(dataset["time"], values[:, k, j], label=f"${name}_{{{k + 1}{j + 1}}}$", **curve_style(number))
    axes.axhline(0.0, color="0.6", lw=0.8)
    axes.set(xlabel=TIME, ylabel=label)
    return axes
