"""Plots of random starts: escape times, and the chance of each feature to win."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield.arguments import as_array
from meanfield.plotting.arguments import draws
from meanfield.plotting.histograms import bins_of_sample
from meanfield.plotting.style import COLOURS
from meanfield.typing import FloatArray


@draws(ensemble="escape_time")
def plot_escape_times(
    ensemble: xr.Dataset, axes: Axes, label: str = "SGD", colour: str = COLOURS[5], **style: Any
) -> Axes:
    """A histogram of the escape times of an ensemble, of area 1 if all replicas escaped.

    Parameters
    ----------
    ensemble : xarray.Dataset
        From `meanfield.simulate_sgd` with `particles.escape_overlap`.
    axes : Axes
    label, colour : str
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
    axes : Axes
    replicas : ndarray, shape (n,), optional
        How many the shares are of.
    label, colour, line, marker : str
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
