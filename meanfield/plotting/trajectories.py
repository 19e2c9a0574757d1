"""Plots of order parameters and coefficients against time."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield.plotting.style import COLOURS, LINES, TIME, feature_label, symbol
from meanfield.results.schema import label_of

DEVIATIONS = 2.0
"""Half-width of bands in standard deviations."""

OVERLAP = "overlap $q_t = E[u w]$"
PRIOR_WORK = r"prior work $r_t = E[w\,\phi(w)]$"

MOST_PATHS = 30
"""Largest number of replicas that are drawn one by one."""


def plot_overlap(dataset: xr.Dataset, axes: Axes, label: str = "", colour: str = COLOURS[0], line: str = "-") -> Axes:
    """Overlap q against time: a line; for replicas mean and bars of two standard errors; for statistics quantiles."""
    for k in range(dataset.sizes["feature"]):
        name = feature_label(dataset, "q", k, label)
        colour = colour if k == 0 else COLOURS[-1 - k]
        if "q_mean" in dataset:
            _plot_band(dataset.isel(feature=k), axes, name, colour)
        else:
            _plot_in_time(dataset["q"].isel(feature=k), axes, name, colour, line)
    axes.set(xlabel=TIME, ylabel=OVERLAP)
    return axes


def plot_prior_work(
    dataset: xr.Dataset, axes: Axes, label: str = "", colour: str = COLOURS[0], line: str = "-"
) -> Axes:
    """Prior work r against time: a line; for replicas bars of two standard errors; for statistics two deviations."""
    if "r_mean" in dataset:
        spread = DEVIATIONS * (dataset["r_variance"].clip(min=0.0) / label_of(dataset, "dimension")) ** 0.5
        _plot_around(dataset["r_mean"], spread, axes, label or r"mean $\pm$ 2 deviations", colour)
    else:
        _plot_in_time(dataset["r"], axes, label, colour, line)
    axes.set(xlabel=TIME, ylabel=PRIOR_WORK)
    return axes


def plot_replicas(particles: xr.Dataset, axes: Axes, quantity: str = "q") -> Axes:
    """Paths of replicas one by one, at most thirty of them, with the mean and two standard deviations of all.

    Parameters
    ----------
    particles : xarray.Dataset
        From `meanfield.simulate_sgd`, with records of replicas.
    axes : Axes
    quantity : {"q", "r"}
    """
    values = particles[quantity] if quantity == "q" else particles[quantity].expand_dims("feature", -1)
    for k in range(values.sizes["feature"]):
        of_feature, colour, line = values.isel(feature=k), COLOURS[k % len(COLOURS)], LINES[k % len(LINES)]
        paths = of_feature.isel(replica=slice(MOST_PATHS)).transpose("time", "replica")
        axes.plot(particles["time"], paths, color=colour, lw=0.5, alpha=0.6)
        name = symbol(quantity, k, values.sizes["feature"])
        label = rf"{name}: mean $\pm$ 2 deviations of {particles.sizes['replica']} replicas"
        spread = DEVIATIONS * _deviation(of_feature)
        _plot_around(of_feature.mean("replica"), spread, axes, label, colour, line)
    axes.set(xlabel=TIME, ylabel=OVERLAP if quantity == "q" else PRIOR_WORK)
    return axes


def plot_quantiles(ensemble: xr.Dataset, axes: Axes) -> Axes:
    """Nested bands between the quantiles of the overlaps of an ensemble, and the medians.

    Parameters
    ----------
    ensemble : xarray.Dataset
        From `meanfield.simulate_sgd` with `particles.record = 'statistics'`.
    axes : Axes
    """
    quantile = ensemble["quantile"].values
    for k in range(ensemble.sizes["feature"]):
        colour, line = COLOURS[k % len(COLOURS)], LINES[k % len(LINES)]
        values = ensemble["q_quantile"].isel(feature=k)
        for outer in range(len(quantile) // 2):
            low, high = values.isel(quantile=outer), values.isel(quantile=-1 - outer)
            label = f"{quantile[outer]:.0%} to {quantile[-1 - outer]:.0%}" if k == 0 else None
            shade = 0.12 + 0.09 * outer
            axes.fill_between(ensemble["time"], low, high, color=colour, alpha=shade, lw=0, label=label)
        median = values.isel(quantile=len(quantile) // 2)
        axes.plot(ensemble["time"], median, line, color=colour, label=feature_label(ensemble, "q", k, "median"))
    axes.set(xlabel=TIME, ylabel=OVERLAP)
    return axes


def plot_coefficients(dataset: xr.Dataset, axes: Axes) -> Axes:
    """Drift gains g and diffusion coefficient Lambda against time, of a density or of order parameters."""
    for k in range(dataset.sizes["feature"]):
        colour, line = COLOURS[k % len(COLOURS)], LINES[k % len(LINES)]
        label = f"drift gain {symbol('g', k, dataset.sizes['feature'])}"
        axes.plot(dataset["time"], dataset["g"].isel(feature=k), line, color=colour, label=label)
    axes.plot(dataset["time"], dataset["Lambda"], ":", lw=2, color=COLOURS[-1], label=r"diffusion $\Lambda$")
    axes.axhline(0.0, color="0.6", lw=0.8)
    axes.set(xlabel=TIME, ylabel=r"drift gain $g_t$, diffusion $\Lambda_t$")
    return axes


def _plot_around(
    middle: xr.DataArray, spread: xr.DataArray, axes: Axes, label: str, colour: str, line: str = "-"
) -> None:
    """Plot a line in the middle of a band."""
    axes.plot(middle["time"], middle, line, color=colour, label=label)
    axes.fill_between(middle["time"], middle - spread, middle + spread, color=colour, alpha=0.2, lw=0)


def _plot_band(ensemble: xr.Dataset, axes: Axes, label: str, colour: str) -> None:
    """Plot mean and outermost quantiles of one overlap over an ensemble."""
    axes.plot(ensemble["time"], ensemble["q_mean"], ":", color=colour, label=label)
    low, high = ensemble["q_quantile"].isel(quantile=0), ensemble["q_quantile"].isel(quantile=-1)
    axes.fill_between(ensemble["time"], low, high, color=colour, alpha=0.2, lw=0)


def _plot_in_time(values: xr.DataArray, axes: Axes, label: str, colour: str, line: str) -> None:
    if "replica" not in values.dims:
        axes.plot(values["time"], values, line, color=colour, label=label)
        return
    thinned = values.isel(time=slice(None, None, max(1, values.sizes["time"] // 20)))
    replicas = thinned.sizes["replica"]
    axes.errorbar(
        thinned["time"],
        thinned.mean("replica"),
        yerr=2 * _deviation(thinned) / np.sqrt(replicas),
        fmt="o",
        markersize=3,
        capsize=2,
        color=colour,
        label=label,
    )


def _deviation(values: xr.DataArray) -> xr.DataArray:
    """Standard deviation over replicas, 0 for a single one."""
    return values.std("replica", ddof=1) if values.sizes["replica"] > 1 else 0 * values.isel(replica=0)
