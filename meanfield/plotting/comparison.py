"""Plots of results of several methods side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.comparison.wording import verdicts_of
from meanfield.plotting.style import COLOURS, LINES
from meanfield.plotting.trajectories import plot_overlap, plot_prior_work
from meanfield.plotting.weights import plot_conditional, plot_density, plot_histogram, visible_weights


def plot_comparison(results: Mapping[str, xr.Dataset], comparison: xr.Dataset | None = None) -> Figure:
    """Results of one problem side by side: q, r, and the weights at the last snapshot, marginal and given u.

    Parameters
    ----------
    results : mapping of str to xarray.Dataset
        Labels and results of the methods.
    comparison : xarray.Dataset, optional
        What `meanfield.compare` returns of them, whose verdicts then stand below the title.
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
    verdicts = [] if comparison is None else verdicts_of(comparison)
    figure.suptitle("\n".join([title, *verdicts]), parse_math=False)
    return figure


def _plot_weights(density: xr.Dataset, particles: xr.Dataset, panels: Any) -> None:
    """The lower row of a comparison: weights at the last snapshot."""
    time = float(particles["snapshot_time"][-1])
    plot_histogram(particles, panels[0], time, COLOURS[5], label="SGD")
    plot_density(density, panels[0], time, COLOURS[-1], label="density")
    plot_conditional(density, particles, panels[1], time)
    panels[0].set_title(f"all weights at t = {time:g}", fontsize="medium")
    panels[1].set_title(f"weights given the feature coordinate, t = {time:g}", fontsize="medium")
    for panel in panels:
        panel.set_xlim(*visible_weights(density, time))
        panel.legend(frameon=False)
