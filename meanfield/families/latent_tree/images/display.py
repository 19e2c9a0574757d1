"""Results on images as figures and key numbers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.plotting.panels import Panel, draw_panels
from meanfield.plotting.style import curve_style
from meanfield.results.text import last_values, plain

IN_TIME = {"sampled_loss": "sampled loss", "probe_accuracy": "accuracy of the linear probe"}
"""Labels of the axes of variables in time."""

OF_LAYERS = {
    "layer_operator_norm": r"operator norm $\Vert OP_l\Vert_F$",
    "gradient_norm": "norm of the gradient",
    "residue": "residue, share of the gradient",
}
"""Labels of the axes of variables of layers."""


def plot_training(dataset: xr.Dataset) -> Figure:
    """Sampled loss and accuracy of the probe in time: mean over replicas and one standard deviation.

    Parameters
    ----------
    dataset : xarray.Dataset
        Of the kind `image_training` or `image_statistics`.
    """
    shown = [name for name in IN_TIME if name in dataset or f"{name}_mean" in dataset]
    panels: list[Panel] = [partial(_plot_in_time, name=name) for name in shown]
    return draw_panels(dataset, panels)


def _plot_in_time(dataset: xr.Dataset, axes: Axes, name: str) -> Axes:
    mean, spread = _moments(dataset, name)
    axes.plot(dataset["time"], mean, **curve_style(0))
    axes.fill_between(dataset["time"], mean - spread, mean + spread, color=curve_style(0)["color"], alpha=0.2, lw=0)
    axes.set(xlabel=r"time $t$, $\eta$ times the steps", ylabel=IN_TIME[name])
    return axes


def _moments(dataset: xr.Dataset, name: str) -> tuple[xr.DataArray, xr.DataArray]:
    """Mean over replicas and standard deviation, in time."""
    if name not in dataset:
        return dataset[f"{name}_mean"], (dataset[f"{name}_variance"] * dataset["eta"]) ** 0.5
    values = dataset[name]
    return (values.mean("replica"), values.std("replica")) if "replica" in values.dims else (values, 0.0 * values)


def plot_layers(dataset: xr.Dataset) -> Figure:
    """Norms of operators and gradients, and residues, by layer."""
    panels: list[Panel] = [partial(_plot_by_layer, name=name) for name in OF_LAYERS]
    return draw_panels(dataset, panels)


def _plot_by_layer(dataset: xr.Dataset, axes: Axes, name: str) -> Axes:
    axes.bar(dataset["level"], dataset[name], width=0.6, color=curve_style(0)["color"])
    axes.set(xlabel="layer, from the inputs up", ylabel=OF_LAYERS[name], xticks=dataset["level"].values)
    return axes


def of_layers(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Loss, and for each layer the norm of its operator and the residue."""
    yield "loss", plain(float(dataset["loss"]))
    for i, layer in enumerate(dataset["level"].values):
        yield f"norm of the operator of layer {layer}", plain(float(dataset["layer_operator_norm"][i]))
        yield f"residue of layer {layer}", plain(float(dataset["residue"][i]))


def of_training(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Loss and accuracy of the probe at the last time that was reached."""
    known = (name for name in IN_TIME if name in dataset or f"{name}_mean" in dataset)
    return last_values(dataset, ((IN_TIME[name], _moments(dataset, name)[0].values) for name in known))
