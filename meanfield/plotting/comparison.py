"""Plots of results side by side, and of the differences of pairs of them.

Beside differences is what chance allows: in 95 of 100 comparisons of true pairs nothing exceeds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from textwrap import fill
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.arguments import wrong
from meanfield.comparison.distributions import Condition, Pair, conditions_of, weights_alone
from meanfield.comparison.inputs import in_time
from meanfield.comparison.wording import verdicts_of
from meanfield.errors import InputError
from meanfield.plotting.arguments import draws
from meanfield.plotting.course import course_of
from meanfield.plotting.histograms import show_areas
from meanfield.plotting.panels import draw_figure
from meanfield.plotting.plane import plot_joint_density
from meanfield.plotting.style import (
    ANY_TIME,
    COLOURS,
    LINES,
    MARKERS,
    TITLE_WIDTH,
    curve_style,
    entry_label,
    feature_label,
    time_styles,
)
from meanfield.plotting.trajectories import (
    entries_of,
    plot_channel_overlap,
    plot_in_time,
    plot_overlap,
    plot_prior_work,
)
from meanfield.plotting.weights import draw_conditional, plot_density, plot_histogram, reached, visible_weights
from meanfield.problems.output_times import same_times
from meanfield.results.collection import by_label
from meanfield.results.result import Result
from meanfield.typing import FloatArray

OWN_PANELS: dict[str, Callable[..., Axes]] = {
    "q": plot_overlap,
    "r": plot_prior_work,
    "M": plot_channel_overlap,
}
"""Plot functions of variables that have one; others are drawn entry by entry."""


def plot_comparison(results: Mapping[str, xr.Dataset] | xr.DataTree, comparison: xr.Dataset | None = None) -> Figure:
    """Results of one problem side by side: compared variables, and the weights at the last snapshot that both reached.

    There is no panel of a further variable that vanishes, such as r without a prior, and none of weights unless there
    are both a density and weights of SGD. The density of both weights of two channels is drawn over those of SGD.

    Parameters
    ----------
    results : mapping of str to xarray.Dataset, or DataTree
        Labels and results of the methods, or what `meanfield.collect` returns of them.
    comparison : xarray.Dataset, optional
        What `meanfield.compare` returns of them, whose verdicts then stand below the title.

    Raises
    ------
    InputError
        If there are no results, or something else or a result of another family is among them.
    """
    if not isinstance(results, Mapping) or isinstance(results, xr.Dataset) or not results:
        raise wrong("results", results, "give labels and results, such as {'density': density, 'SGD': runs}")
    known = {label: in_time(Result.of(dataset)) for label, dataset in by_label(results).items()}
    results = {label: result.dataset for label, result in known.items()}
    first = next(iter(known.values()))
    for label, result in known.items():
        if result.kind.leading not in ("time", "density_time") or result.family is not first.family:
            raise InputError(f"'{label}' is no result in time of the family of the first one; draw it by plot_result")
    if comparison is not None and Result.of(comparison).kind.made_by != "compare":
        raise wrong("comparison", comparison, "give what meanfield.compare(*results) returns")
    panels: list[Callable[[Axes], Axes]] = []
    for name, variable in first.family.compared.items():
        having = {label: d for label, d in results.items() if name in d or f"{name}_mean" in d}
        if not panels or any(np.any(np.nan_to_num(_values(d, name)) != 0) for d in having.values()):
            panels.append(partial(_plot_each, results, name, variable.long_name))
    densities = [r for r in known.values() if r.method == "density" and "feature" in r.dataset.sizes]
    particles = [d for d in results.values() if "weights" in d and "snapshot_time" in d]
    if densities and particles:
        panels += _panels_of_weights(densities[0], particles[0])
    for joint in (d for d in results.values() if "P_joint" in d and particles):
        panels += _panels_of_planes(joint, particles[0])
    verdicts = [] if comparison is None else verdicts_of(comparison)
    return draw_figure("\n".join([first.dataset.attrs["title"], *verdicts]), panels, course_of(first.dataset))


def _panels_of_weights(density: Result, particles: xr.Dataset) -> list[Callable[[Axes], Axes]]:
    """Weights of SGD under the density, those of each vector."""
    panels: list[Callable[[Axes], Axes]] = []
    for pair in weights_alone(density, particles):
        time = _last_shared(reached(pair.density.dataset), pair.particles)
        if time is not None:
            panels.append(partial(_plot_all_weights, pair, time))
            panels += [partial(_plot_weights_given, pair, time, each) for each in conditions_of(density.dataset)]
    return panels


def _panels_of_planes(joint: xr.Dataset, particles: xr.Dataset) -> list[Callable[[Axes], Axes]]:
    """Weights of both channels of SGD, under their density."""
    time = _last_shared(joint["P_joint"].dropna("density_time")["density_time"].values, particles)
    return [] if time is None else [lambda axes: plot_joint_density(joint, axes, time, particles)]


def _last_shared(times: FloatArray, particles: xr.Dataset) -> float | None:
    """The last snapshot that SGD reached and that is one of some times; None if there is none."""
    w = particles["weights"].transpose("snapshot_time", ...).values
    known = np.isfinite(w).reshape(len(w), -1).any(axis=1)
    snapshots = particles["snapshot_time"].values[known]
    shared = snapshots[same_times(times, snapshots) >= 0]
    return float(shared[-1]) if len(shared) else None


def _values(dataset: xr.Dataset, name: str) -> xr.DataArray:
    """A variable, or its mean in statistics of an ensemble."""
    return dataset[f"{name}_mean" if f"{name}_mean" in dataset else name]


def _plot_each(results: Mapping[str, xr.Dataset], name: str, long_name: str, axes: Axes) -> Axes:
    """One variable of all results that have it; no two curves have one style, whatever their number in a result."""
    number = 0
    if name not in OWN_PANELS:
        axes.set(xlabel=ANY_TIME, ylabel=name.replace("_", " "))
        axes.set_title(fill(long_name, TITLE_WIDTH), fontsize="small")
    most = max(dataset.sizes.get("feature", 1) * dataset.sizes.get("channel", 1) for dataset in results.values())
    for i, (label, dataset) in enumerate(results.items()):
        if name not in dataset and f"{name}_mean" not in dataset:
            continue
        if name in OWN_PANELS:
            style = curve_style(i * most)
            OWN_PANELS[name](dataset, axes, label, style["color"], style["linestyle"])
            continue
        for index, curve in entries_of(_values(dataset, name), "time", "replica", axes=axes):
            plot_in_time(curve, axes, f"{label}, {index}" if index else label, curve_style(number))
            number += 1
    return axes


def _plot_all_weights(pair: Pair, time: float, axes: Axes) -> Axes:
    """Histogram of the weights at a snapshot under the density."""
    density = pair.density.dataset
    plot_histogram(pair.particles, axes, time, COLOURS[5], density, label="SGD")
    plot_density(density, axes, time, COLOURS[-1], label="density")
    axes.set_xlim(visible_weights(density, time))
    return _titled(axes, f"all weights{_of_vector(pair)} at $t = {time:.4g}$")


def _plot_weights_given(pair: Pair, time: float, condition: Condition, axes: Axes) -> Axes:
    """Histograms of the weights at a snapshot under the densities, for some groups of a coordinate."""
    density = pair.density.dataset
    given = r"$\rho$" if condition.name == "rho" else feature_label(density, "u", condition.axis)
    draw_conditional(density, pair.particles, axes, time, condition.axis, given.strip("$"))
    axes.set_xlim(visible_weights(density, time))
    return _titled(axes, f"weights{_of_vector(pair)} given {given} at $t = {time:.4g}$")


def _titled(axes: Axes, title: str) -> Axes:
    """Panel of weights with its title and scale; peaks that are not seen in full are named."""
    peak = show_areas(axes)
    axes.set_title(title if peak is None else f"{title}\npeaks up to {peak:.3g} cut off", fontsize="medium")
    return axes


def _of_vector(pair: Pair) -> str:
    return f" of {pair.vector} {pair.place[0] + 1}" if pair.place else ""


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
