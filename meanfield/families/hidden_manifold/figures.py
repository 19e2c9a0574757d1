"""Figure of order parameters in time: of the limit, of replicas of SGD, and of their statistics."""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.plotting.style import TIME, Panel, curve_style, draw_panels
from meanfield.typing import FloatArray

BAND_DEVIATIONS = 2.0
"""Half-width of the bands of replicas in standard deviations."""

PANELS = {
    "generalisation_error": (r"generalisation error $\epsilon_g$", r"\epsilon_g"),
    "R": ("overlap with the teacher $R_{km}$", "R"),
    "Q": ("covariance of the student $Q_{kl}$", "Q"),
    "v": ("second layer $v_k$", "v"),
}
"""Label of the axis and symbol of each variable."""


def plot_order_parameters(dataset: xr.Dataset) -> Figure:
    """Generalisation error, R, Q, and the second layer where it is trained; means over replicas with bands.

    Parameters
    ----------
    dataset : xarray.Dataset
        Of the kind `order_parameters`, `density`, `particles` or `ensemble`.
    """
    shown = [name for name in PANELS if name != "v" or _moves(_mean(dataset, name))]
    panels: list[Panel] = [partial(_plot, name=name) for name in shown]
    return draw_panels(dataset, panels)


def _plot(dataset: xr.Dataset, axes: Axes, name: str) -> Axes:
    """Plot one curve for each entry, of a symmetric matrix those above its diagonal."""
    mean = _mean(dataset, name)
    spread = _spread(dataset, name)
    label, symbol = PANELS[name]
    places = [place for place in np.ndindex(*mean.shape[1:]) if name != "Q" or place[0] <= place[1]]
    for number, place in enumerate(places[:12]):  # in a panel
        style, curve = curve_style(number), mean[:, *place]
        index = "".join(str(k + 1) for k in place)
        axes.plot(dataset["time"], curve, label=f"${symbol}_{{{index}}}$" if index else None, **style)
        if spread is not None:
            width = BAND_DEVIATIONS * spread[:, *place]
            axes.fill_between(dataset["time"], curve - width, curve + width, alpha=0.2, lw=0, color=style["color"])
    axes.set(xlabel=TIME, ylabel=label)
    if spread is not None:
        axes.set_title(rf"mean $\pm$ {BAND_DEVIATIONS:g} deviations of {_who(dataset)}", fontsize="small")
    return axes


def _mean(dataset: xr.Dataset, name: str) -> FloatArray:
    """Values, or means over the replicas that are there, shape (time, ...)."""
    if f"{name}_mean" in dataset:
        return np.asarray(dataset[f"{name}_mean"].values)
    if "replica" in dataset[name].dims:
        return np.asarray(dataset[name].mean("replica").values)
    return np.asarray(dataset[name].values)


def _spread(dataset: xr.Dataset, name: str) -> FloatArray | None:
    """Standard deviations over replicas, or predicted ones; None where neither is known. Shape (time, ...)."""
    mean = _mean(dataset, name)
    spread = f"{name}_{'covariance' if name != 'generalisation_error' else 'variance'}"
    if spread in dataset:
        size = int(np.prod(mean.shape[1:]))
        scatter = dataset[spread].values
        variance = np.einsum("tii->ti", scatter.reshape(len(mean), size, size)) / float(dataset.attrs["dimension"])
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)).reshape(mean.shape))
    return np.asarray(dataset[name].std("replica").values) if "replica" in dataset[name].dims else None


def _who(dataset: xr.Dataset) -> str:
    """Source of the uncertainty bands: replicas that were counted, or SGD whose spread is predicted."""
    if "count" not in dataset and "replica" not in dataset.sizes:
        return f"SGD with N = {dataset.attrs['dimension']:,}"
    count = dataset["count"] if "count" in dataset else dataset.sizes["replica"]
    return f"{int(count):,} replicas"


def _moves(values: FloatArray) -> bool:
    """Whether values change in time."""
    return bool(np.nanmax(np.abs(values - values[0])) > 1e-12)
