"""Order parameters against time."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield.plotting.style import COLOURS


def plot_overlap(dataset: xr.Dataset, axes: Axes, label: str = "", colour: str = COLOURS[0], line: str = "-") -> Axes:
    """Q against time: a line; for replicas their mean with bars of two standard errors; for statistics quantiles."""
    for k in range(dataset.sizes["feature"]):
        name = label if dataset.sizes["feature"] == 1 else f"{label}, feature {k + 1}"
        colour = colour if k == 0 else COLOURS[-1 - k]
        if "q_mean" in dataset:
            _plot_band(dataset.isel(feature=k), axes, name, colour)
        else:
            _plot_in_time(dataset["q"].isel(feature=k), axes, name, colour, line)
    axes.set(xlabel="time $t = k/N$", ylabel="overlap $q_t$")
    return axes


def plot_prior_work(
    dataset: xr.Dataset, axes: Axes, label: str = "", colour: str = COLOURS[0], line: str = "-"
) -> Axes:
    """R against time: a line, or for replicas their mean with bars of two standard errors."""
    _plot_in_time(dataset["r"], axes, label, colour, line)
    axes.set(xlabel="time $t = k/N$", ylabel=r"prior work $r_t = E[w\,\phi(w)]$")
    return axes


def _plot_band(ensemble: xr.Dataset, axes: Axes, label: str, colour: str) -> None:
    """Mean and outermost quantiles of one overlap over an ensemble."""
    axes.plot(ensemble["time"], ensemble["q_mean"], ":", color=colour, label=label)
    low, high = ensemble["q_quantile"].isel(quantile=0), ensemble["q_quantile"].isel(quantile=-1)
    axes.fill_between(ensemble["time"], low, high, color=colour, alpha=0.2, lw=0)


def _plot_in_time(values: xr.DataArray, axes: Axes, label: str, colour: str, line: str) -> None:
    if "replica" not in values.dims:
        axes.plot(values["time"], values, line, color=colour, label=label)
        return
    thinned = values.isel(time=slice(None, None, max(1, values.sizes["time"] // 20)))
    replicas = thinned.sizes["replica"]
    spread = thinned.std("replica", ddof=1) if replicas > 1 else 0 * thinned.isel(replica=0)
    axes.errorbar(
        thinned["time"],
        thinned.mean("replica"),
        yerr=2 * spread / np.sqrt(replicas),
        fmt="o",
        markersize=3,
        capsize=2,
        color=colour,
        label=label,
    )
