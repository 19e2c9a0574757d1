"""Figures of order parameters that are matrices, vectors or numbers in time, with bands of replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.plotting.panels import Panel, draw_panels
from meanfield.plotting.style import TIME, curve_style
from meanfield.typing import FloatArray

BAND_DEVIATIONS = 2.0
"""Half-width of the bands of replicas in standard deviations."""

Panels = Mapping[str, tuple[str, str]]
"""Label of the axis and symbol of each variable."""


def plot_order_parameters(
    dataset: xr.Dataset, shown: Panels, names: Mapping[str, str] | None = None, besides: Sequence[Panel] = ()
) -> Figure:
    """A panel for each variable with a curve for each of its entries; means over replicas with bands.

    Parameters
    ----------
    dataset : xarray.Dataset
        In time: values, of replicas too, or means over them.
    shown : mapping of str to (str, str)
    names : mapping of str to str, optional
        Variables with the names of their entries, by the variables whose entries have names.
    besides : sequence of Panel, optional
        Panels that follow.
    """
    panels: list[Panel] = [partial(_plot, name=name, words=shown[name], names=names or {}) for name in shown]
    return draw_panels(dataset, [*panels, *besides])


def _plot(dataset: xr.Dataset, axes: Axes, name: str, words: tuple[str, str], names: Mapping[str, str]) -> Axes:
    """Plot one curve for each entry, of a symmetric matrix those above its diagonal."""
    mean, spread = mean_of(dataset, name), _spread(dataset, name)
    label, symbol = words
    values = dataset.get(name, dataset.get(f"{name}_mean"))
    assert values is not None
    dims = [dim for dim in values.dims if dim not in ("time", "replica")]
    symmetric = len(dims) == 2 and dims[1] == f"{dims[0]}_"
    places = [place for place in np.ndindex(*mean.shape[1:]) if not symmetric or place[0] <= place[1]]
    for number, place in enumerate(places[:12]):  # which can still be told apart
        style, curve = curve_style(number), mean[:, *place]
        index = "".join(str(k + 1) for k in place)
        text = f"${symbol}_{{{index}}}$" if index else None
        if name in names:
            text = str(dataset[names[name]].values[place])
        axes.plot(dataset["time"], curve, label=text, **style)
        if spread is not None:
            width = BAND_DEVIATIONS * spread[:, *place]
            axes.fill_between(dataset["time"], curve - width, curve + width, alpha=0.2, lw=0, color=style["color"])
    axes.set(xlabel=TIME, ylabel=label)
    if spread is not None:
        axes.set_title(rf"mean $\pm$ {BAND_DEVIATIONS:g} deviations of {_who(dataset)}", fontsize="small")
    return axes


def mean_of(dataset: xr.Dataset, name: str) -> FloatArray:
    """Values, or means over the replicas that are there, shape (time, ...)."""
    if f"{name}_mean" in dataset:
        return dataset[f"{name}_mean"].values
    if "replica" in dataset[name].dims:
        return dataset[name].mean("replica").values
    return dataset[name].values


def _spread(dataset: xr.Dataset, name: str) -> FloatArray | None:
    """Standard deviations over replicas, or predicted ones; None where neither is known. Shape (time, ...)."""
    mean = mean_of(dataset, name)
    spread = f"{name}_{'covariance' if mean.ndim > 1 else 'variance'}"
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
