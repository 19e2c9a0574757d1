"""Plots of order parameters and coefficients against time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield.plotting.arguments import draws
from meanfield.plotting.entries import entries, say_shown
from meanfield.plotting.style import COLOURS, LINES, MARKERS, TIME, curve_style, entry_label, symbol
from meanfield.results.result import Result

DEVIATIONS = 2.0
"""Half-width of bands in standard deviations."""

OVERLAP = "overlap $q_t = E[u w]$"
PRIOR_WORK = r"prior work $r_t = E[w\,\phi(w)]$"


@draws(dataset="q|q_mean time")
def plot_overlap(dataset: xr.Dataset, axes: Axes, label: str = "", colour: str = COLOURS[0], line: str = "-") -> Axes:
    """Overlap q against time: a line; for replicas mean and bars of two standard errors; for statistics quantiles.

    `colour` and `line` are those of the first feature and channel; the others take what follows in the common style.
    """
    first = COLOURS.index(colour) if colour in COLOURS else 0
    several = "channel" in dataset.dims or dataset.sizes["feature"] > 1
    for k, (index, place) in enumerate(entries(dataset["q_mean" if "q_mean" in dataset else "q"], axes=axes)):
        name = entry_label("q", index, label) if several else label
        style = curve_style(first + k) if k else {"color": colour, "linestyle": line}
        if "q_mean" in dataset:
            _plot_band(dataset.isel(place), axes, name, style)
        else:
            plot_in_time(dataset["q"].isel(place), axes, name, style)
    axes.set(xlabel=TIME, ylabel=OVERLAP)
    return axes


@draws(dataset="r|r_mean time")
def plot_prior_work(
    dataset: xr.Dataset, axes: Axes, label: str = "", colour: str = COLOURS[0], line: str = "-"
) -> Axes:
    """Prior work r against time: a line; for replicas bars of two standard errors; for statistics two deviations."""
    if "r_mean" in dataset:
        spread = DEVIATIONS * (dataset["r_variance"].clip(min=0.0) / Result.of(dataset).label("dimension")) ** 0.5
        style = {"color": colour, "linestyle": line}
        for index, place in entries(dataset["r_mean"], axes=axes):
            name = ", ".join(filter(None, (label or r"mean $\pm$ 2 deviations", index)))
            _plot_around(dataset["r_mean"].isel(place), spread.isel(place), axes, name, style)
    else:
        first = COLOURS.index(colour) if colour in COLOURS else 0
        for k, (index, place) in enumerate(entries(dataset["r"], axes=axes)):
            name = entry_label("r", index, label) if index else label
            style = curve_style(first + k) if k else {"color": colour, "linestyle": line}
            plot_in_time(dataset["r"].isel(place), axes, name, style)
    axes.set(xlabel=TIME, ylabel=PRIOR_WORK)
    return axes


@draws(particles="{quantity} replica time")
def plot_replicas(particles: xr.Dataset, axes: Axes, quantity: str = "q") -> Axes:
    """Paths of replicas one by one, at most thirty of them, with the mean and two standard deviations of all.

    Parameters
    ----------
    particles : xarray.Dataset
        From `meanfield.simulate_sgd`, with records of replicas.
    axes : Axes
    quantity : {"q", "r"}
    """
    values = particles[quantity]
    several = "channel" in particles.dims or (quantity == "q" and particles.sizes["feature"] > 1)
    for k, (index, place) in enumerate(entries(values, axes=axes)):
        of_feature, style = values.isel(place), curve_style(k)
        paths = of_feature.isel(replica=slice(30)).transpose("time", "replica")  # thirty replicas are drawn one by one
        axes.plot(particles["time"], paths, lw=0.5, alpha=0.6, **style)
        name = entry_label(quantity, index if several else "")
        label = rf"{name}: mean $\pm$ 2 deviations" + f"\nof {particles.sizes['replica']} replicas"
        spread = DEVIATIONS * _deviation(of_feature)
        _plot_around(of_feature.mean("replica"), spread, axes, label, style)
    axes.set(xlabel=TIME, ylabel=OVERLAP if quantity == "q" else PRIOR_WORK)
    return axes


@draws(ensemble="q_mean q_quantile")
def plot_quantiles(ensemble: xr.Dataset, axes: Axes) -> Axes:
    """Nested bands between the quantiles of the overlaps of an ensemble, and the medians.

    Parameters
    ----------
    ensemble : xarray.Dataset
        From `meanfield.simulate_sgd` with `particles.record = 'statistics'`.
    axes : Axes
    """
    quantile = ensemble["quantile"].values
    several = "channel" in ensemble.dims or ensemble.sizes["feature"] > 1
    for k, (index, place) in enumerate(entries(ensemble["q_mean"], axes=axes)):
        style = curve_style(k)
        values = ensemble["q_quantile"].isel(place)
        for outer in range(len(quantile) // 2):
            low, high = values.isel(quantile=outer), values.isel(quantile=-1 - outer)
            label = f"{quantile[outer]:.0%} to {quantile[-1 - outer]:.0%}" if k == 0 else None
            shade = 0.12 + 0.09 * outer
            axes.fill_between(ensemble["time"], low, high, color=style["color"], alpha=shade, lw=0, label=label)
        median = values.isel(quantile=len(quantile) // 2)
        axes.plot(ensemble["time"], median, label=entry_label("q", index, "median") if several else "median", **style)
    axes.set(xlabel=TIME, ylabel=OVERLAP)
    return axes


def plot_channel_overlap(
    dataset: xr.Dataset, axes: Axes, label: str = "", colour: str = COLOURS[0], line: str = "-"
) -> Axes:
    """Overlaps M of each two channels against time; see `plot_overlap`."""
    first = COLOURS.index(colour) if colour in COLOURS else 0
    M = dataset["M_mean" if "M_mean" in dataset else "M"]
    pairs = [(index, place) for index, place in entries(M) if place["channel"] != place["channel_"]]
    say_shown(axes, len(pairs), M.sizes["channel"] * (M.sizes["channel"] - 1) // 2)
    for k, (index, place) in enumerate(pairs):
        style = curve_style(first + k) if k else {"color": colour, "linestyle": line}
        plot_in_time(M.isel(place), axes, entry_label("M", index, label), style)
    axes.axhline(0.0, color="0.6", lw=0.8)
    axes.set(xlabel=TIME, ylabel="overlap of channels $M_t = E[w w^T]$")
    return axes


def plot_diffusion(dataset: xr.Dataset, axes: Axes) -> Axes:
    """Diffusion matrix Lambda of several channels against time."""
    for k, (index, place) in enumerate(entries(dataset["Lambda"], axes=axes)):
        axes.plot(
            dataset["time"], dataset["Lambda"].isel(place), label=entry_label(r"\Lambda", index), **curve_style(k)
        )
    axes.axhline(0.0, color="0.6", lw=0.8)
    axes.set(xlabel=TIME, ylabel=r"diffusion $\Lambda_t$")
    return axes


@draws(dataset="g Lambda time")
def plot_coefficients(dataset: xr.Dataset, axes: Axes) -> Axes:
    """Drift gains g and diffusion coefficient Lambda against time, of a density or of order parameters."""
    for k in range(dataset.sizes["feature"]):
        label = f"drift gain {symbol('g', k, dataset.sizes['feature'])}"
        axes.plot(dataset["time"], dataset["g"].isel(feature=k), label=label, **curve_style(k))
    style = {"color": COLOURS[-1], "linestyle": LINES[-1], "label": r"diffusion $\Lambda$"}
    axes.plot(dataset["time"], dataset["Lambda"], **style)
    axes.axhline(0.0, color="0.6", lw=0.8)
    axes.set(xlabel=TIME, ylabel=r"drift gain $g_t$, diffusion $\Lambda_t$")
    return axes


def _plot_around(middle: xr.DataArray, spread: xr.DataArray, axes: Axes, label: str, style: Mapping[str, Any]) -> None:
    """Plot a line in the middle of a band."""
    axes.plot(middle["time"], middle, label=label, **style)
    axes.fill_between(middle["time"], middle - spread, middle + spread, color=style["color"], alpha=0.2, lw=0)


def _plot_band(ensemble: xr.Dataset, axes: Axes, label: str, style: Mapping[str, Any]) -> None:
    """Plot mean and outermost quantiles of one overlap over an ensemble."""
    axes.plot(ensemble["time"], ensemble["q_mean"], label=label, **style)
    low, high = ensemble["q_quantile"].isel(quantile=0), ensemble["q_quantile"].isel(quantile=-1)
    axes.fill_between(ensemble["time"], low, high, color=style["color"], alpha=0.2, lw=0)


def plot_in_time(values: xr.DataArray, axes: Axes, label: str, style: Mapping[str, Any]) -> None:
    """Plot a line, or the mean of replicas with bars and the marker that belongs to the line."""
    if "replica" not in values.dims:
        axes.plot(values["time"], values, label=label, **style)
        return
    thinned = values.isel(time=slice(None, None, max(1, values.sizes["time"] // 20)))
    replicas = thinned.sizes["replica"]
    axes.errorbar(
        thinned["time"],
        thinned.mean("replica"),
        yerr=2 * _deviation(thinned) / np.sqrt(replicas),
        fmt=MARKERS[LINES.index(style["linestyle"])] if style["linestyle"] in LINES else MARKERS[0],
        markersize=3,
        capsize=2,
        color=style["color"],
        label=label,
    )


def _deviation(values: xr.DataArray) -> xr.DataArray:
    """Standard deviation over replicas, 0 for a single one."""
    return values.std("replica", ddof=1) if values.sizes["replica"] > 1 else 0 * values.isel(replica=0)
