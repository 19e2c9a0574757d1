"""Plots of the densities and histograms of weights, all of them and given the feature coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield.comparison.distributions import (
    group_distribution,
    group_sample,
    groups_of,
    laws_given_u,
    marginal_distribution,
)
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.numerics.distances import density_of
from meanfield.plotting.arguments import draws
from meanfield.plotting.histograms import VISIBLE, density_curve, draw_histogram
from meanfield.plotting.style import COLOURS, curve_style, time_styles
from meanfield.results.result import Result
from meanfield.typing import FloatArray

MOST_DOTS = 4000
"""Largest number of pairs of weights and coordinates that are drawn."""


def reached(density: xr.Dataset) -> FloatArray:
    """Output times that a run reached; an interrupted one has NaN at the others."""
    return np.asarray(density["time"].values[np.isfinite(density["P"].values).all(axis=(1, 2))])


def visible_weights(density: xr.Dataset, *times: float) -> tuple[float, float]:
    """Range of w in which all densities at some times are visible."""
    edges = edges_of(density)
    result = Result.of(density)
    found = [visible_range(marginal_distribution(result, time)[0], edges) for time in times]
    return min(low for low, _ in found), max(high for _, high in found)


def visible_range(F: FloatArray, edges: FloatArray) -> tuple[float, float]:
    """Range of w in which a distribution function, given at cell edges, is visibly neither 0 nor 1."""
    low, high = np.interp([VISIBLE, 1 - VISIBLE], F, edges)
    return float(low), float(high)


@draws(dataset="P time")
def plot_density(dataset: xr.Dataset, axes: Axes, time: float, colour: str = COLOURS[0], **style: Any) -> Axes:
    """Density of w alone at a time."""
    edges = edges_of(dataset)
    F, _ = marginal_distribution(Result.of(dataset), time)
    axes.plot(*density_curve(edges, density_of(edges, F)), color=colour, **style)
    return _label_weights(axes)


@draws(dataset="P time")
def plot_densities(dataset: xr.Dataset, axes: Axes, times: Sequence[float] | None = None) -> Axes:
    """Density of w alone at some times; by default four of the output times."""
    shown = _some_of(reached(dataset)) if times is None else times
    for time, style in zip(shown, time_styles(shown), strict=True):
        plot_density(dataset, axes, time, style.pop("color"), label=f"$t = {time:.4g}$", **style)
    axes.set(xlim=visible_weights(dataset, *shown), ylim=(0, None))
    return axes


@draws(dataset="P time")
def plot_density_given_u(dataset: xr.Dataset, axes: Axes, time: float | None = None, feature: int = 0) -> Axes:
    """Density of w given the feature coordinate u as an image, and the mean of w given u.

    Parameters
    ----------
    dataset : xarray.Dataset
        From `meanfield.solve_density`.
    axes : Axes
        A colour bar is put beside it.
    time : float, optional
        By default the last output time.
    feature : int
        Which coordinate; over the others is averaged.
    """
    chosen = reached(dataset)[-1] if time is None else time
    snapshot = dataset.sel(time=chosen, method="nearest")
    laws = laws_given_u(Result.of(dataset), float(chosen), feature)
    u, place = np.unique(laws.u[:, feature], return_inverse=True)
    share = np.bincount(place, laws.weight)
    P = np.zeros((len(u), dataset.sizes["w"]))
    np.add.at(P, place, laws.weight[:, None] * density_of(edges_of(dataset), laws.F))
    shown = np.minimum(np.cumsum(share), np.cumsum(share[::-1])[::-1]) > VISIBLE
    u, P = u[shown], P[shown] / share[shown, None]
    w = dataset["w"].values
    mesh = axes.pcolormesh(u, w, P.T, cmap="cividis", shading="nearest", rasterized=True)
    axes.figure.colorbar(mesh, ax=axes, label="density $P_t(w|u)$")
    mean = P @ w / P.sum(axis=1)
    axes.plot(u, mean, "--", color="white", lw=1.5)
    name = "u" if dataset.sizes["feature"] == 1 else f"u_{feature + 1}"
    axes.set(xlabel=f"feature coordinate ${name}$", ylabel="weight $w$", ylim=visible_weights(dataset, float(chosen)))
    axes.set_title(f"$t = {float(snapshot['time']):.4g}$; dashed: mean of $w$ given ${name}$", fontsize="medium")
    return axes


@draws(dataset="weights snapshot_time")
def plot_histograms(dataset: xr.Dataset, axes: Axes, times: Sequence[float] | None = None) -> Axes:
    """Outlines of the histograms of the weights of all replicas at some snapshots; by default at most four."""
    shown = _some_of(dataset["snapshot_time"].values) if times is None else times
    for time, style in zip(shown, time_styles(shown), strict=True):
        outline: dict[str, Any] = {"fill": False, "alpha": 1.0, "linestyle": style["linestyle"], "linewidth": 1.2}
        plot_histogram(dataset, axes, time, style["color"], label=f"$t = {time:.4g}$", **outline)
    return axes


@draws(dataset="w_sample snapshot_time")
def plot_sample(dataset: xr.Dataset, axes: Axes, channel: int, times: Sequence[float] | None = None) -> Axes:
    """Outlines of the histograms of one channel's weights in particles of the limit, by default at four snapshots."""
    shown = _some_of(dataset["snapshot_time"].values) if times is None else times
    for time, style in zip(shown, time_styles(shown), strict=True):
        outline: dict[str, Any] = {"fill": False, "alpha": 1.0, "linestyle": style["linestyle"], "linewidth": 1.2}
        sample = dataset["w_sample"].sel(snapshot_time=time, method="nearest").values[:, channel]
        if np.isfinite(sample).all():
            draw_histogram(sample, axes, color=style["color"], label=f"$t = {time:.4g}$", **outline)
    axes.set(xlabel=f"weight $w_{channel + 1}$", ylabel=f"density $P_t(w_{channel + 1})$")
    return axes


@draws(dataset="weights U snapshot_time")
def plot_pairs(dataset: xr.Dataset, axes: Axes, time: float | None = None, feature: int = 0) -> Axes:
    """Weights of SGD against feature coordinates at a snapshot, by default the last: a dot for each of some."""
    chosen = dataset["snapshot_time"].values[-1] if time is None else time
    w = dataset["weights"].sel(snapshot_time=chosen, method="nearest").values.ravel()
    u = dataset["U"].values[:, :, feature].ravel()
    some = slice(None, None, max(1, -(-len(w) // MOST_DOTS)))
    axes.plot(u[some], w[some], ".", color=COLOURS[0], markersize=2, alpha=0.5, rasterized=True)
    name = "u" if dataset.sizes["feature"] == 1 else f"u_{feature + 1}"
    axes.set(xlabel=f"feature coordinate ${name}$", ylabel="weight $w$")
    axes.set_title(f"$t = {float(chosen):.4g}$", fontsize="medium")
    return axes


@draws(dataset="weights snapshot_time", density="P time")
def plot_histogram(
    dataset: xr.Dataset,
    axes: Axes,
    time: float,
    colour: str = COLOURS[1],
    density: xr.Dataset | None = None,
    **style: Any,
) -> Axes:
    """A histogram of the weights of all replicas at a snapshot; its bins follow a density, or else the weights."""
    sample = dataset["weights"].sel(snapshot_time=time, method="nearest").values.ravel()
    law = None if density is None else (edges_of(density), marginal_distribution(Result.of(density), time)[0])
    draw_histogram(sample, axes, law=law, color=colour, **style)
    return _label_weights(axes)


@draws(density="P time", particles="weights U snapshot_time")
def plot_conditional(
    density: xr.Dataset, particles: xr.Dataset, axes: Axes, time: float, feature: int = 0, groups: int = 3
) -> Axes:
    """Weights given the feature coordinate u: histograms of SGD under the densities, for some groups of u."""
    name = "u" if density.sizes["feature"] == 1 else f"u_{feature + 1}"
    return draw_conditional(density, particles, axes, time, feature, name, groups)


def draw_conditional(
    density: xr.Dataset, particles: xr.Dataset, axes: Axes, time: float, axis: int, name: str, groups: int = 3
) -> Axes:
    """Weights given a coordinate of nodes; see `meanfield.comparison.distributions.Condition`."""
    edges = edges_of(density)
    all_groups = groups_of(density, axis)
    chosen = np.unique(np.linspace(0, len(all_groups) - 1, groups).astype(int))
    laws = laws_given_u(Result.of(density), time, axis)
    for i, group in enumerate(all_groups[i] for i in chosen):
        w, _, membership = group_sample(particles, time, axis, group)
        F, _ = group_distribution(laws, axis, group)
        draw_histogram(w, axes, membership, (edges, F), color=COLOURS[i], alpha=0.3)
        label = rf"${name} \approx {group.centre:.3g}$"
        axes.plot(*density_curve(edges, density_of(edges, F)), label=label, **curve_style(i))
    _label_weights(axes)
    axes.set_ylabel(f"density $P_t(w|{name})$")
    return axes


def _some_of(times: FloatArray) -> list[float]:
    """Selection of at most four elements, the first and the last among these."""
    return [float(times[i]) for i in np.unique(np.linspace(0, len(times) - 1, 4).round().astype(int))]


def _label_weights(axes: Axes) -> Axes:
    axes.set(xlabel="weight $w$", ylabel="density $P_t(w)$")
    return axes
