"""Datasets to Axes. Nothing is saved here and no solver is called.

Functions of one quantity take a Dataset and Axes and return the Axes. Colours are those of Okabe and Ito, which
people with colour-blindness can tell apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.analysis import conditional
from meanfield.analysis.distances import density_of
from meanfield.typing import FloatArray

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

LINES = ("-", "--", "-.", ":")

VISIBLE = 3e-4
"""Weights are drawn where the distribution function lies between this and one minus this."""


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


def plot_density(dataset: xr.Dataset, axes: Axes, time: float, colour: str = COLOURS[0], **style: Any) -> Axes:
    """The density of w alone at a time."""
    F, _ = conditional.marginal_distribution(dataset, time)
    P = density_of(dataset["w_edge"].values, F)
    axes.plot(dataset["w"], P, color=colour, **style)
    return _label_weights(axes)


def plot_histogram(dataset: xr.Dataset, axes: Axes, time: float, colour: str = COLOURS[1], **style: Any) -> Axes:
    """A histogram of the weights of all replicas at a snapshot."""
    sample = dataset["weights"].sel(snapshot_time=time, method="nearest").values.ravel()
    return _histogram(sample, axes, colour, **style)


def plot_conditional(
    density: xr.Dataset, particles: xr.Dataset, axes: Axes, time: float, feature: int = 0, groups: int = 3
) -> Axes:
    """Weights given the feature coordinate u: histograms of SGD under the densities, for some groups of u."""
    edges = density["w_edge"].values
    all_groups = conditional.groups_of(density, feature)
    chosen = np.unique(np.linspace(0, len(all_groups) - 1, groups).astype(int))
    for group, colour in zip([all_groups[i] for i in chosen], COLOURS, strict=False):
        w, _, membership = conditional.group_sample(particles, time, feature, group)
        name = rf"$u \approx {group.centre:g}$"
        _histogram(w, axes, colour, weights=membership, alpha=0.35, label=name)
        F, _ = conditional.group_distribution(density, time, feature, group)
        axes.plot(density["w"], density_of(edges, F), color=colour)
    return _label_weights(axes)


def _histogram(sample: FloatArray, axes: Axes, colour: str, **style: Any) -> Axes:
    weights = style.get("weights", np.ones_like(sample))
    order = np.argsort(sample)
    share = np.cumsum(weights[order]) / weights.sum()
    low, high = np.interp([VISIBLE, 1 - VISIBLE], share, sample[order])
    bins = int(np.clip(1.5 * len(sample) ** (1 / 3), 10, 60))
    axes.hist(
        sample, bins=np.linspace(low, high, bins + 1).tolist(), density=True, color=colour, **({"alpha": 0.45} | style)
    )
    return _label_weights(axes)


def _label_weights(axes: Axes) -> Axes:
    axes.set(xlabel="weight $w$", ylabel="density")
    return axes


def plot_comparison(results: Mapping[str, xr.Dataset]) -> Figure:
    """Results of one problem side by side: q, r, and the weights at the last snapshot, marginal and given u.

    Parameters
    ----------
    results : mapping of str to xarray.Dataset
        Labels and results of the methods.
    """
    densities = [d for d in results.values() if d.attrs["method"] == "density"]
    particles = [d for d in results.values() if "weights" in d]
    both = bool(densities and particles)
    figure = Figure(figsize=(10, 7.5 if both else 4), layout="constrained")
    panels = np.atleast_2d(figure.subplots(2 if both else 1, 2))
    styles = list(zip(COLOURS, LINES * 2, strict=False))
    for (label, dataset), (colour, line) in zip(results.items(), styles, strict=False):
        plot_overlap(dataset, panels[0, 0], label, colour, line)
        if "r" in dataset:
            plot_prior_work(dataset, panels[0, 1], label, colour, line)
    panels[0, 0].legend(frameon=False)
    if both:
        _plot_weights(densities[0], particles[0], panels[1])
    title = next(iter(results.values())).attrs["title"]
    figure.suptitle(title)
    return figure


def _plot_weights(density: xr.Dataset, particles: xr.Dataset, panels: Any) -> None:
    """The lower row of a comparison: weights at the last snapshot."""
    time = float(particles["snapshot_time"][-1])
    plot_histogram(particles, panels[0], time, COLOURS[5], label="SGD")
    plot_density(density, panels[0], time, COLOURS[-1], label="density")
    plot_conditional(density, particles, panels[1], time)
    panels[0].set_title(f"all weights at t = {time:g}", fontsize="medium")
    panels[1].set_title(f"weights given the feature coordinate, t = {time:g}", fontsize="medium")
    F, _ = conditional.marginal_distribution(density, time)
    limits = np.interp([VISIBLE, 1 - VISIBLE], F, density["w_edge"].values)
    for panel in panels:
        panel.set_xlim(*limits)
        panel.legend(frameon=False)


STABILITY_STYLES: dict[int, dict[str, Any]] = {
    1: {"color": COLOURS[0], "linestyle": "-", "linewidth": 2.0, "label": "stable"},
    0: {"color": COLOURS[4], "linestyle": ":", "linewidth": 2.0, "label": "marginal"},
    -1: {"color": COLOURS[1], "linestyle": "--", "linewidth": 1.3, "label": "unstable"},
}


def plot_branches(continuation: xr.Dataset) -> Figure:
    """Branches of stationary states against the number that varies: a panel for each overlap, one for r if it is not 0.

    Stable states are solid, unstable ones dashed, marginal ones dotted; circles are turning points.

    Parameters
    ----------
    continuation : xarray.Dataset
        From `meanfield.continue_stationary_states`.
    """
    panels: list[tuple[str, xr.DataArray]] = [
        ("overlap $q$" if continuation.sizes["feature"] == 1 else f"overlap $q_{k + 1}$", continuation["q"][:, k])
        for k in range(continuation.sizes["feature"])
    ]
    if np.any(continuation["r"] != 0):
        panels.append((r"prior work $r = E[w\,\phi(w)]$", continuation["r"]))
    figure = Figure(figsize=(4.6 * len(panels), 3.8), layout="constrained")
    for axes, (label, values) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels, strict=True):
        _plot_branch_values(continuation, values.values, axes)
        axes.set(xlabel=continuation["parameter"].attrs["key"], ylabel=label)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    if unique:
        figure.legend(unique.values(), unique.keys(), loc="outside lower center", ncols=len(unique), frameon=False)
    figure.suptitle(continuation.attrs["title"])
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
