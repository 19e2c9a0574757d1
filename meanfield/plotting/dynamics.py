"""Plots of the analysis of the reduced ODEs: fixed points, regions of attraction, and random starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.arguments import as_array
from meanfield.plotting.arguments import draws
from meanfield.plotting.histograms import bins_of_sample
from meanfield.plotting.panels import Panel, draw_panels
from meanfield.plotting.portrait import MARKERS, plot_portrait
from meanfield.plotting.style import COLOURS, LINES, marker_style
from meanfield.plotting.trajectories import entries_of
from meanfield.typing import FloatArray


@draws(dynamics="kind growth_rate")
def plot_dynamics(dynamics: xr.Dataset) -> Figure:
    """Fixed points with what they attract, escape times from random starts, and which feature wins.

    Parameters
    ----------
    dynamics : xarray.Dataset
        From `meanfield.contrastive.analyse_dynamics`. Panels of what it does not hold are left out.
    """
    panels: list[Panel] = [_plot_states]
    if "arrangement" in dynamics:
        panels = [plot_channel_rates, plot_attractors]
    panels += [plot_escape_quantiles] if "escape_time_quantile" in dynamics else []
    panels += [_plot_chances] if "win_chance" in dynamics else []
    return draw_panels(dynamics, panels)


@draws(dynamics="rate")
def plot_rate(dynamics: xr.Dataset, axes: Axes) -> Axes:
    """The rate dq/dt of a single feature, with its zeros by kind."""
    axes.axhline(0.0, color="0.6", lw=0.8)
    axes.plot(dynamics["line"], dynamics["rate"], color=COLOURS[0])
    _plot_kinds(dynamics, dynamics["q"].values[:, 0], np.zeros(dynamics.sizes["state"]), axes)
    axes.set(xlabel="overlap $q$", ylabel=r"rate $\dot q$", xlim=(-1.03, 1.03))
    return axes


@draws(dynamics="kind growth_rate")
def plot_similarities(dynamics: xr.Dataset, axes: Axes) -> Axes:
    """Growth rate against cosine similarity |q| of all fixed points, for any number of features."""
    axes.axhline(0.0, color="0.6", lw=0.8)
    similarity = np.linalg.norm(dynamics["q"].values, axis=1)
    _plot_kinds(dynamics, similarity, dynamics["growth_rate"].values, axes)
    axes.set(xlabel="cosine similarity $|q|$", ylabel="largest growth rate", xlim=(-0.03, 1.03))
    return axes


def plot_channel_rates(dynamics: xr.Dataset, axes: Axes) -> Axes:
    """Growth rate of all fixed points of several channels against the largest overlap |M| of two of them."""
    axes.axhline(0.0, color="0.6", lw=0.8)
    M = np.abs(dynamics["M"].transpose("state", "channel", "channel_").values)
    first, second = np.triu_indices(M.shape[1], 1)
    _plot_kinds(dynamics, M[:, first, second].max(axis=1), dynamics["growth_rate"].values, axes)
    axes.set(xlabel=r"largest overlap of channels $|M_{kl}|$", ylabel="largest growth rate", xlim=(-0.03, 1.03))
    return axes


def plot_attractors(dynamics: xr.Dataset, axes: Axes) -> Axes:
    """Overlaps of channels with features in the fixed points that attract, with their shares of the random starts."""
    axes.axhline(0.0, color="0.6", lw=0.8)
    shown = np.flatnonzero(dynamics["stability"].values >= 0)[:6]  # more fixed points would hide each other in a panel
    for number, i in enumerate(shown):
        state = dynamics.isel(state=i)
        named = list(entries_of(state["q"].transpose("channel", "feature")))
        x = np.arange(len(named)) + 0.12 * (number - 0.5 * (len(shown) - 1))
        label = f"{state['arrangement'].item()}, {float(state['region_share']):.0%}"
        axes.plot(x, [float(value) for _, value in named], label=label, **marker_style(number))
        places = [rf"$q_{{{index[1]}{index[0]}}}$" for index, _ in named]
        axes.set_xticks(np.arange(len(named)), places)
    axes.set(xlabel="feature and channel", ylabel="overlap $q$", ylim=(-1.05, 1.05))
    return axes


@draws(dynamics="escape_time_quantile")
def plot_escape_quantiles(dynamics: xr.Dataset, axes: Axes) -> Axes:
    """Median and outer quantiles of the escape time from random starts against N."""
    N, times = dynamics["dimension"], dynamics["escape_time_quantile"]
    low, middle, high = (times.isel(quantile=i) for i in (0, times.sizes["quantile"] // 2, -1))
    axes.plot(N, middle, color=COLOURS[0], label="median")
    shares = f"{float(low['quantile']):.0%} to {float(high['quantile']):.0%}"
    axes.fill_between(N, low, high, color=COLOURS[0], alpha=0.2, lw=0, label=shares)
    overlap = times.attrs["escape_overlap"]
    axes.set(xlabel="dimension $N$", ylabel=f"time until $|q| = {overlap:.3g}$", xscale="log", ylim=(0, None))
    return axes


def _plot_states(dynamics: xr.Dataset, axes: Axes) -> Axes:
    if "q_cell" in dynamics:
        return plot_portrait(dynamics, axes)
    return plot_rate(dynamics, axes) if "rate" in dynamics else plot_similarities(dynamics, axes)


def _plot_chances(dynamics: xr.Dataset, axes: Axes) -> Axes:
    for k in range(dynamics.sizes["feature"]):
        chance = dynamics["win_chance"].values[:, k]
        shown = np.where(chance > 0, chance, np.nan)
        plot_chance(dynamics["dimension"].values, shown, axes, None, f"feature {k + 1}", COLOURS[k], LINES[k])
    return axes


def _plot_kinds(dynamics: xr.Dataset, x: Any, y: Any, axes: Axes) -> None:
    for kind, style in MARKERS.items():
        chosen = dynamics["kind"].values == kind
        if chosen.any():
            shown: dict[str, Any] = style | {"linestyle": "", "markeredgecolor": "black", "label": kind}
            axes.plot(x[chosen], y[chosen], zorder=4, clip_on=False, **shown)


@draws(ensemble="escape_time")
def plot_escape_times(
    ensemble: xr.Dataset, axes: Axes, label: str = "SGD", colour: str = COLOURS[5], **style: Any
) -> Axes:
    """A histogram of the escape times of an ensemble, of area 1 if all replicas escaped.

    Parameters
    ----------
    ensemble : xarray.Dataset
        From `meanfield.simulate_sgd` with `particles.escape_overlap`.
    **style
        Of the bars.
    """
    times = ensemble["escape_time"].values
    escaped = times[np.isfinite(times)]
    edges = bins_of_sample(escaped)
    heights, _ = np.histogram(escaped.clip(edges[0], edges[-1]), edges)
    shown: dict[str, Any] = {"fill": True, "color": colour, "alpha": 0.45, "label": label} | style
    axes.stairs(heights / (len(times) * np.diff(edges)), edges, **shown)
    axes.set(xlabel="escape time $t$", ylabel="density of escape times")
    return axes


@draws()
def plot_chance(
    N: FloatArray,
    chance: FloatArray,
    axes: Axes,
    replicas: FloatArray | None = None,
    label: str = "",
    colour: str = COLOURS[0],
    line: str = "-",
    marker: str = "o",
) -> Axes:
    """Chance that a feature wins, against N: a line, or for shares of replicas bars of two standard errors.

    Parameters
    ----------
    N, chance : ndarray, shape (n,)
    replicas : ndarray, shape (n,), optional
        How many the shares are of.
    """
    wanted = "give an array of numbers, one for each N"
    N, chance = as_array(N, "N", wanted), as_array(chance, "chance", wanted)
    if replicas is None:
        axes.plot(N, chance, line, color=colour, label=label)
    else:
        replicas = as_array(replicas, "replicas", wanted)
        error = np.sqrt(chance * (1 - chance) / replicas)
        # bars of two standard errors
        axes.errorbar(N, chance, 2.0 * error, fmt=marker, ms=4, capsize=2, color=colour, label=label)
    axes.set(xlabel="dimension $N$", ylabel="chance to win", xscale="log", yscale="log")
    return axes
