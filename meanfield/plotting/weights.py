"""Plots of the densities and histograms of weights, all of them and given the feature coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield.comparison import conditional
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.numerics.distances import density_of
from meanfield.plotting.style import COLOURS, LINES, time_styles
from meanfield.typing import FloatArray

VISIBLE = 3e-4
"""Probability beyond either end of the range in which weights are drawn."""


MOST_DOTS = 4000
"""Largest number of pairs of weights and coordinates that are drawn."""


def reached(density: xr.Dataset) -> FloatArray:
    """Output times that a run reached; an interrupted one has NaN at the others."""
    return np.asarray(density["time"].values[np.isfinite(density["P"].values).all(axis=(1, 2))])


def visible_weights(density: xr.Dataset, *times: float) -> tuple[float, float]:
    """Range of w in which all densities at some times are visible."""
    edges = edges_of(density)
    found = [visible_range(conditional.marginal_distribution(density, time)[0], edges) for time in times]
    return min(low for low, _ in found), max(high for _, high in found)


def visible_range(F: FloatArray, edges: FloatArray) -> tuple[float, float]:
    """Range of w in which a distribution function, given at cell edges, is visibly neither 0 nor 1."""
    low, high = np.interp([VISIBLE, 1 - VISIBLE], F, edges)
    return float(low), float(high)


def plot_density(dataset: xr.Dataset, axes: Axes, time: float, colour: str = COLOURS[0], **style: Any) -> Axes:
    """Density of w alone at a time."""
    F, _ = conditional.marginal_distribution(dataset, time)
    P = density_of(edges_of(dataset), F)
    axes.plot(dataset["w"], P, color=colour, **style)
    return _label_weights(axes)


def plot_densities(dataset: xr.Dataset, axes: Axes, times: Sequence[float] | None = None) -> Axes:
    """Density of w alone at some times; by default four of the output times."""
    shown = _some_of(reached(dataset)) if times is None else times
    for time, (colour, line) in zip(shown, time_styles(shown), strict=True):
        plot_density(dataset, axes, time, colour, linestyle=line, label=f"$t = {time:g}$")
    axes.set(xlim=visible_weights(dataset, *shown), ylim=(0, None))
    return axes


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
    laws = conditional.laws_given_u(dataset, float(chosen), feature)
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
    axes.set_title(f"$t = {float(snapshot['time']):g}$; dashed: mean of $w$ given ${name}$", fontsize="medium")
    return axes


def plot_histograms(dataset: xr.Dataset, axes: Axes, times: Sequence[float] | None = None) -> Axes:
    """Outlines of the histograms of the weights of all replicas at some snapshots; by default at most four."""
    shown = _some_of(dataset["snapshot_time"].values) if times is None else times
    for time, (colour, line) in zip(shown, time_styles(shown), strict=True):
        style: dict[str, Any] = {"histtype": "step", "alpha": 1.0, "linestyle": line, "linewidth": 1.4}
        plot_histogram(dataset, axes, time, colour, label=f"$t = {time:g}$", **style)
    return axes


def plot_pairs(dataset: xr.Dataset, axes: Axes, time: float | None = None, feature: int = 0) -> Axes:
    """Weights of SGD against feature coordinates at a snapshot, by default the last: a dot for each of some."""
    chosen = dataset["snapshot_time"].values[-1] if time is None else time
    w = dataset["weights"].sel(snapshot_time=chosen, method="nearest").values.ravel()
    u = dataset["U"].values[:, :, feature].ravel()
    some = slice(None, None, max(1, -(-len(w) // MOST_DOTS)))
    axes.plot(u[some], w[some], ".", color=COLOURS[0], markersize=2, alpha=0.5, rasterized=True)
    name = "u" if dataset.sizes["feature"] == 1 else f"u_{feature + 1}"
    axes.set(xlabel=f"feature coordinate ${name}$", ylabel="weight $w$")
    axes.set_title(f"$t = {float(chosen):g}$", fontsize="medium")
    return axes


def plot_histogram(dataset: xr.Dataset, axes: Axes, time: float, colour: str = COLOURS[1], **style: Any) -> Axes:
    """A histogram of the weights of all replicas at a snapshot."""
    sample = dataset["weights"].sel(snapshot_time=time, method="nearest").values.ravel()
    return _histogram(sample, axes, colour, **style)


def plot_conditional(
    density: xr.Dataset, particles: xr.Dataset, axes: Axes, time: float, feature: int = 0, groups: int = 3
) -> Axes:
    """Weights given the feature coordinate u: histograms of SGD under the densities, for some groups of u."""
    edges = edges_of(density)
    all_groups = conditional.groups_of(density, feature)
    chosen = np.unique(np.linspace(0, len(all_groups) - 1, groups).astype(int))
    name = "u" if density.sizes["feature"] == 1 else f"u_{feature + 1}"
    for group, colour, line in zip([all_groups[i] for i in chosen], COLOURS, LINES, strict=False):
        w, _, membership = conditional.group_sample(particles, time, feature, group)
        _histogram(w, axes, colour, weights=membership, alpha=0.35)
        F, _ = conditional.group_distribution(density, time, feature, group)
        label = rf"${name} \approx {group.centre:g}$"
        axes.plot(density["w"], density_of(edges, F), line, color=colour, label=label)
    _label_weights(axes)
    axes.set_ylabel(f"density $P_t(w|{name})$")
    return axes


def _some_of(times: FloatArray) -> list[float]:
    """Selection of at most four elements, the first and the last among these."""
    return [float(times[i]) for i in np.unique(np.linspace(0, len(times) - 1, 4).round().astype(int))]


def _histogram(sample: FloatArray, axes: Axes, colour: str, **style: Any) -> Axes:
    known = np.isfinite(sample)  # of replicas that came so far
    weights, sample = style.pop("weights", np.ones_like(sample))[known], sample[known]
    if not len(sample):
        return _label_weights(axes)
    order = np.argsort(sample)
    share = np.cumsum(weights[order]) / weights.sum()
    low, high = np.interp([VISIBLE, 1 - VISIBLE], share, sample[order])
    bins = int(np.clip(1.5 * len(sample) ** (1 / 3), 10, 60))
    axes.hist(
        sample,
        bins=np.linspace(low, high, bins + 1).tolist(),
        weights=weights,
        density=True,
        color=colour,
        **({"alpha": 0.45} | style),
    )
    return _label_weights(axes)


def _label_weights(axes: Axes) -> Axes:
    axes.set(xlabel="weight $w$", ylabel="density $P_t(w)$")
    return axes
