"""Plots of results of several methods side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.comparison.wording import verdicts_of
from meanfield.plotting.style import COLOURS, curve_style, draw_figure, feature_label
from meanfield.plotting.trajectories import plot_overlap, plot_prior_work
from meanfield.plotting.weights import plot_conditional, plot_density, plot_histogram, visible_weights

PRIOR_WORK = {"r", "r_mean"}
"""Variables that hold r, of single runs and of ensembles."""


def plot_comparison(results: Mapping[str, xr.Dataset], comparison: xr.Dataset | None = None) -> Figure:
    """Results of one problem side by side: q, r, and the weights at the last snapshot, marginal and given u.

    There is no panel of r where it vanishes, and none of weights unless there are both a density and weights of SGD.

    Parameters
    ----------
    results : mapping of str to xarray.Dataset
        Labels and results of the methods.
    comparison : xarray.Dataset, optional
        What `meanfield.compare` returns of them, whose verdicts then stand below the title.
    """
    panels: list[Callable[[Axes], Axes]] = [partial(_plot_each, results, plot_overlap)]
    if any(np.any(np.nan_to_num(d[name].values) != 0) for d in results.values() for name in PRIOR_WORK & set(d)):
        panels.append(partial(_plot_each, results, plot_prior_work))
    densities = [d for d in results.values() if d.attrs["method"] == "density"]
    particles = [d for d in results.values() if "weights" in d]
    if densities and particles:
        panels.append(partial(_plot_all_weights, densities[0], particles[0]))
        panels += [
            partial(_plot_weights_given_u, densities[0], particles[0], k) for k in range(densities[0].sizes["feature"])
        ]
    verdicts = [] if comparison is None else verdicts_of(comparison)
    return draw_figure("\n".join([next(iter(results.values())).attrs["title"], *verdicts]), panels)


def _plot_each(results: Mapping[str, xr.Dataset], plot: Callable[..., Axes], axes: Axes) -> Axes:
    """One quantity of all results that have it; the colours of two results differ for all features."""
    features = max(dataset.sizes["feature"] for dataset in results.values())
    for i, (label, dataset) in enumerate(results.items()):
        if plot is plot_overlap or PRIOR_WORK & set(dataset):
            style = curve_style(i * features)
            plot(dataset, axes, label, style["color"], style["linestyle"])
    return axes


def _plot_all_weights(density: xr.Dataset, particles: xr.Dataset, axes: Axes) -> Axes:
    """Histogram of the weights at the last snapshot under the density."""
    time = float(particles["snapshot_time"][-1])
    plot_histogram(particles, axes, time, COLOURS[5], density, label="SGD")
    plot_density(density, axes, time, COLOURS[-1], label="density")
    axes.set(xlim=visible_weights(density, time), ylim=(0, None))
    axes.set_title(f"all weights at $t = {time:.4g}$", fontsize="medium")
    return axes


def _plot_weights_given_u(density: xr.Dataset, particles: xr.Dataset, feature: int, axes: Axes) -> Axes:
    """Histograms of the weights at the last snapshot under the densities, for some groups of a coordinate."""
    time = float(particles["snapshot_time"][-1])
    plot_conditional(density, particles, axes, time, feature)
    axes.set(xlim=visible_weights(density, time), ylim=(0, None))
    axes.set_title(f"weights given {feature_label(density, 'u', feature)} at $t = {time:.4g}$", fontsize="medium")
    return axes
