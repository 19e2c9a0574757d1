"""Densities and histograms of weights, all of them and given the feature coordinate."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield.analysis import conditional
from meanfield.analysis.distances import density_of
from meanfield.plotting.style import COLOURS
from meanfield.typing import FloatArray

VISIBLE = 3e-4
"""Weights are drawn where the distribution function lies between this and one minus this."""


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
