"""Plots of the differences of pairs of results: in standard errors, absolute, and as distances of distributions.

Beside them is what chance allows: in 95 of 100 comparisons of true pairs nothing exceeds it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield.plotting.arguments import draws
from meanfield.plotting.entries import entries_of
from meanfield.plotting.style import ANY_TIME, COLOURS, LINES, MARKERS, entry_label, feature_label, time_styles

SYMBOLS = {"q": "overlap $q_t$", "r": "prior work $r_t$"}


@draws(comparison="{quantity}_difference")
def plot_standard_errors(comparison: xr.Dataset, axes: Axes, quantity: str = "q") -> Axes:
    """Differences of q or r in standard errors against time, for pairs with replicas; dots mark what chance allows.

    Parameters
    ----------
    comparison : xarray.Dataset
        From `meanfield.compare`.
    quantity : {"q", "r"}
    """
    axes.axhline(0.0, color="0.6", lw=0.8)
    if f"{quantity}_chance" in comparison:
        for i, level in enumerate(comparison[f"{quantity}_chance"].values):
            for end in (-level, level) if np.isfinite(level) else ():
                axes.axhline(end, color=COLOURS[i % len(COLOURS)], ls=":", lw=1.2)
    ratio = comparison[f"{quantity}_difference"] / comparison[f"{quantity}_standard_error"]
    _plot_pairs(ratio, comparison, axes, quantity)
    axes.set(xlabel=ANY_TIME, ylabel=f"difference of {SYMBOLS.get(quantity, quantity)}\nin standard errors")
    return axes


@draws(comparison="{quantity}_difference")
def plot_differences(comparison: xr.Dataset, axes: Axes, quantity: str = "q") -> Axes:
    """Absolute differences of q or r against time on a logarithmic scale, for pairs without standard errors."""
    error, difference = comparison[f"{quantity}_standard_error"], abs(comparison[f"{quantity}_difference"])
    unknown = error.isnull().all([dim for dim in error.dims if dim != "pair"])
    _plot_pairs(difference.where(unknown & (difference > 0)), comparison, axes, quantity)
    axes.set(xlabel=ANY_TIME, ylabel=f"|difference of {SYMBOLS.get(quantity, quantity)}|", yscale="log")
    return axes


@draws(comparison="W1")
def plot_distances(comparison: xr.Dataset, axes: Axes) -> Axes:
    """Distances W1 and KS of weights and density in time, in units of the largest that chance allows."""
    time = "snapshot_time" if "snapshot_time" in comparison["W1"].dims else "time"
    names = [("W1", "-"), ("KS", "--")] if "KS" in comparison else [("W1", "-")]
    for i, pair in enumerate(comparison["pair"].values):
        for name, line in names:
            ratio = _relative(comparison, name)[0].isel(pair=i)
            if np.isfinite(ratio).any():
                style: dict[str, Any] = {
                    "color": COLOURS[i % len(COLOURS)],
                    "marker": MARKERS[i % len(MARKERS)],
                    "markersize": 5,
                }
                for index, curve in entries_of(ratio, time, axes=axes):
                    words = f"{name}, {index}, {pair}" if index else f"{name}, {pair}"
                    axes.plot(comparison[time], curve, line, label=words, **style)
    axes.axhline(1.0, color="0.6", lw=0.8)
    axes.set(
        xlabel=ANY_TIME, ylabel=f"distance of weights and density\n{_relative(comparison, 'W1')[1]}", ylim=(0, None)
    )
    return axes


@draws(comparison="W1_given_u")
def plot_distances_given_u(comparison: xr.Dataset, axes: Axes, feature: int = 0) -> Axes:
    """Distances W1 within groups of the feature coordinate, in units of the largest that chance allows.

    Parameters
    ----------
    comparison : xarray.Dataset
        From `meanfield.compare`; the first pair of weights and density is drawn.
    feature : int
        Whose coordinate makes the groups.
    """
    ratio, unit = _relative(comparison, "W1_given_u")
    all_ratios = ratio.isel(feature=feature)
    pair = next((i for i in range(len(all_ratios)) if np.isfinite(all_ratios[i]).any()), 0)
    times = comparison["snapshot_time"].values
    for time, style in zip(times, time_styles(times), strict=True):
        ratio = all_ratios.isel(pair=pair).sel(snapshot_time=time)
        u = comparison["group_u"].isel(pair=pair, feature=feature)
        axes.plot(u, ratio, markersize=4, label=f"$t = {time:.4g}$", **({"marker": "o"} | style))
    axes.axhline(1.0, color="0.6", lw=0.8)
    name = feature_label(comparison, "u", feature)
    axes.set(xlabel=f"feature coordinate {name} of a group", ylim=(0, None))
    axes.set_ylabel(f"W1 of weights given {name}\n{unit}")
    return axes


def _relative(comparison: xr.Dataset, name: str) -> tuple[xr.DataArray, str]:
    """Distance in units of the largest one that chance allows; where that is not known, of its mean by sampling."""
    allowed = f"{name}_chance"
    if allowed in comparison and np.isfinite(comparison[allowed]).any():
        return comparison[name] / comparison[allowed], "/ largest that chance allows"
    quantity, _, condition = name.partition("_")
    expected = "_".join(filter(None, (quantity, "expected", condition)))
    if expected not in comparison:
        return comparison[name], "as it is"
    return comparison[name] / comparison[expected], "/ mean of samples"


def _plot_pairs(values: xr.DataArray, comparison: xr.Dataset, axes: Axes, quantity: str) -> None:
    """Plot a colour for each pair and a line for each entry."""
    for i, pair in enumerate(comparison["pair"].values):
        for k, (index, curve) in enumerate(entries_of(values.isel(pair=i), "time", axes=axes)):
            if np.isfinite(curve).any():
                style: dict[str, Any] = {
                    "color": COLOURS[i % len(COLOURS)],
                    "marker": MARKERS[i % len(MARKERS)],
                    "markersize": 3,
                }
                label = _label_of_entry(values, comparison, quantity, str(pair), k, index)
                axes.plot(comparison["time"], curve, linestyle=LINES[k % len(LINES)], label=label, **style)


def _label_of_entry(
    values: xr.DataArray, comparison: xr.Dataset, quantity: str, pair: str, number: int, index: str
) -> str:
    """Pair, and which entry of the quantity, if there are several."""
    if values[{"pair": 0, "time": 0}].size == 1:
        return pair
    if "feature" in values.dims and "channel" not in values.dims:
        return feature_label(comparison, quantity, number, f"{pair},")
    return entry_label(quantity, index, f"{pair},") if "channel" in values.dims else f"{pair}, {index}"
