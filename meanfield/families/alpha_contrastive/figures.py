"""Figures of results: filters along the circle, or their coordinates where there is none; and training in time.

Key numbers of training are read off its curves, which come from one replica, from many, or from statistics.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.families.alpha_contrastive.laws import GaussianMixture
from meanfield.families.alpha_contrastive.limit.circle import on_circle
from meanfield.families.alpha_contrastive.limit.fields import discrete_field, mixture_field
from meanfield.families.alpha_contrastive.modulated_basins import chance_of_pattern
from meanfield.plotting.panels import Panel, draw_panels
from meanfield.plotting.plane import draw_on_sphere
from meanfield.plotting.style import COLOURS, curve_style, key_words, marker_style, time_styles
from meanfield.results.result import Result
from meanfield.results.text import last_values
from meanfield.typing import FloatArray

KINDS_OF_POINTS = (
    ("stable, between walls", "o", "black"),
    ("stable, on a wall", "s", "black"),
    ("not stable", "o", "white"),
)
"""Label, marker and filling of the critical points of a figure."""

BRANCH_STYLES: dict[bool, tuple[Any, ...]] = {True: (COLOURS[0], "-", 2.0), False: (COLOURS[1], "--", 1.2)}
"""Colour, line style and width of branches, by whether they are stable."""

TIME = r"time $t = \eta k$"

CURVES = (
    ("energy $E_\\alpha$", {"energy": None}),
    (r"trace of $C_\alpha$ of the filters' outputs", {"covariance_trace": None}),
    ("best match of a token", {"chi_plus": r"$\chi_+$, tokens of generators", "chi_minus": r"$\chi_-$, other tokens"}),
    ("mean loss of a batch", {"loss": None}),
)
"""Label of the axis of each panel, and its curves with their names."""


def plot_critical_points(dataset: xr.Dataset) -> Figure:
    """Objective that a filter climbs, at critical points, and their basins; along the circle if there is one."""
    panels: list[Panel] = [_plot_heights, _plot_basins]
    if np.isfinite(dataset["roughness"].values).any():
        panels.append(_plot_roughness)
    return draw_panels(dataset, panels)


def _plot_roughness(dataset: xr.Dataset, axes: Axes) -> Axes:
    """Gap of A(w) against the roughness: above the line theorem 1 of the paper says that an eigenvector is stable."""
    rough = dataset["roughness"].values
    axes.axline((0.0, 0.0), slope=1.0, color="0.6", lw=1.0, label="gap = roughness")
    _mark_points(dataset, axes, rough, dataset["gap"].values)
    axes.set(xlabel=r"roughness $\rho$", ylabel="gap of the two largest eigenvalues of $A$")
    return axes


def _plot_heights(dataset: xr.Dataset, axes: Axes) -> Axes:
    place, label = _places(dataset)
    problem = Result.of(dataset).problem
    if dataset.sizes["coordinate"] == 2 and problem.importance.at_hand:
        angle = np.linspace(-np.pi, np.pi, 721)
        axes.plot(angle / np.pi, _height_curve(problem, angle), color=COLOURS[0], lw=1.0)
    _mark_points(dataset, axes, place, dataset["objective"].values)
    axes.set(xlabel=label, ylabel="objective $G$ of a filter")
    return axes


def _mark_points(dataset: xr.Dataset, axes: Axes, x: FloatArray, y: FloatArray) -> None:
    """Draw critical points, with marks that tell their kinds."""
    stable, wall = dataset["stable"].values > 0, dataset["wall"].values > 0
    for (name, marker, filling), kind in zip(KINDS_OF_POINTS, (stable & ~wall, stable & wall, ~stable), strict=True):
        chosen = kind & np.isfinite(x)
        if chosen.any():
            axes.plot(
                *(x[chosen], y[chosen]),
                marker=marker,
                markerfacecolor=filling,
                markeredgecolor="black",
                linestyle="none",
                markersize=5,
                label=name,
            )


def _height_curve(problem: Any, angle: np.ndarray) -> np.ndarray:
    data = problem.data
    field = mixture_field(problem, data) if isinstance(data, GaussianMixture) else discrete_field(problem, data)
    return field.objective(on_circle(angle))


def _plot_basins(dataset: xr.Dataset, axes: Axes) -> Axes:
    place, label = _places(dataset)
    stable = dataset["stable"].values > 0
    axes.vlines(place[stable], 0.0, dataset["basin_share"].values[stable], color=COLOURS[0])
    axes.plot(place[stable], dataset["basin_share"].values[stable], "o", color=COLOURS[0], markersize=4)
    axes.set(xlabel=label, ylabel="share of the sphere that comes to it")
    axes.set_ylim(bottom=0.0)
    if dataset.sizes["coordinate"] == 2:
        axes.set_xlim(-1.05, 1.05)
    return axes


def _places(dataset: xr.Dataset) -> tuple[np.ndarray, str]:
    """Place of each point on the axis, and the label of the axis."""
    if dataset.sizes["coordinate"] == 2:
        w = dataset["w"].values
        return np.arctan2(w[:, 1], w[:, 0]) / np.pi, r"angle $\theta/\pi$ of the filter"
    return np.arange(1, dataset.sizes["point"] + 1), "critical point, in the order of energy"


def plot_modulated_basins(dataset: xr.Dataset) -> Figure:
    """Share of random filters that come to a pattern against its advantage, and the chance of equation 155."""
    panels: list[Panel] = [_plot_shares]
    return draw_panels(dataset, panels)


def _plot_shares(dataset: xr.Dataset, axes: Axes) -> Axes:
    eps, error = dataset["advantage"], dataset["basin_share_error"]
    along = np.linspace(float(eps[0]), float(eps[-1]), 201)
    chance = chance_of_pattern(along, Result.of(dataset).problem.shape[2])
    axes.plot(along, chance, label="equation 155", **curve_style(0))
    axes.errorbar(eps, dataset["basin_share"], yerr=error, label="filters that come to it", **marker_style(1))
    axes.set(xlabel=r"advantage $\epsilon$ of the pattern", ylabel="share of random filters")
    return axes


def plot_branches(dataset: xr.Dataset) -> Figure:
    """Objective of critical points against the number that varies, and their angles if they are on a circle."""
    panels: list[Panel] = [_plot_branch_objectives]
    if dataset.sizes["coordinate"] == 2:
        panels.append(_plot_branch_angles)
    return draw_panels(dataset, panels)


def _plot_branch_objectives(dataset: xr.Dataset, axes: Axes) -> Axes:
    return _plot_along(dataset, axes, dataset["objective"].values, "objective $G$ of a filter")


def _plot_branch_angles(dataset: xr.Dataset, axes: Axes) -> Axes:
    w = dataset["w"].values
    return _plot_along(dataset, axes, np.arctan2(w[:, 1], w[:, 0]) / np.pi, r"angle $\theta/\pi$ of the filter")


def _plot_along(dataset: xr.Dataset, axes: Axes, values: np.ndarray, label: str) -> Axes:
    """Branches, stable points thick and solid, others thin and dashed."""
    p = dataset["parameter"].values
    stable = dataset["stable"].values > 0
    named: set[bool] = set()
    for number in np.unique(dataset["branch"]):
        index = np.flatnonzero(dataset["branch"].values == number)
        cuts = np.flatnonzero((np.diff(stable[index]) != 0) | (np.abs(np.diff(values[index])) > np.ptp(values) / 2)) + 1
        for part in np.split(index, cuts):
            kind = bool(stable[part[0]])
            style: dict[str, Any] = dict(zip(("color", "linestyle", "linewidth"), BRANCH_STYLES[kind], strict=True))
            name = None if kind in named else ("stable" if kind else "not stable")
            named.add(kind)
            axes.plot(p[part], values[part], label=name, **style)
    axes.set(xlabel=key_words(dataset, dataset["parameter"].attrs["key"]), ylabel=label)
    return axes


def plot_density(dataset: xr.Dataset) -> Figure:
    """Density of filters at some times, and the objective with the bound of its optimum."""
    panels: list[Panel] = [_plot_rho, _plot_objective]
    return draw_panels(dataset, panels)


def _plot_rho(dataset: xr.Dataset, axes: Axes) -> Axes:
    # Times whose densities are shown.
    shown = np.unique(np.linspace(0, dataset.sizes["time"] - 1, 5).round().astype(int))
    times = dataset["time"].values[shown]
    for k, style in zip(shown, time_styles(times), strict=True):
        rho = dataset["rho"].values[k]
        label = f"$t = {float(dataset['time'][k]):g}$"
        # Smaller densities are not shown.
        axes.plot(dataset["angle"] / np.pi, np.maximum(rho, 1e-6 * rho.max()), label=label, **style)
    axes.set(xlabel=r"angle $\theta/\pi$ of a filter", ylabel=r"density $\rho(\theta)$", yscale="log")
    return axes


def _plot_objective(dataset: xr.Dataset, axes: Axes) -> Axes:
    G = dataset["G"].values
    axes.plot(dataset["time"], G, label="objective $G$", **curve_style(0))
    if "certificate_gap" in dataset:
        bound = np.minimum.accumulate(G + dataset["certificate_gap"].values)
        axes.plot(dataset["time"], bound, label="bound of the best $G$", **curve_style(1))
    axes.set(xlabel=r"time $t = \eta k$", ylabel="objective $G$")
    return axes


def plot_sphere_density(dataset: xr.Dataset) -> Figure:
    """Density of filters on the sphere at the last time, and the objective with the bound of its optimum."""
    panels: list[Panel] = [_plot_map, _plot_objective]
    return draw_panels(dataset, panels)


def _plot_map(dataset: xr.Dataset, axes: Axes) -> Axes:
    return draw_on_sphere(axes, dataset, dataset["rho_on_sphere"].values[-1], float(dataset["time"][-1]), "a filter")


def plot_optimal_filters(dataset: xr.Dataset) -> Figure:
    """Weights of the filters of the best network, and the filters: by their angles, or coordinate by coordinate."""
    in_plane = dataset.sizes["coordinate"] == 2
    panels: list[Panel] = [_plot_angles] if in_plane else [_plot_weights, _plot_coordinates]
    return draw_panels(dataset, panels)


def _plot_angles(dataset: xr.Dataset, axes: Axes) -> Axes:
    w, weight = dataset["w"].values, dataset["weight"].values
    angle = np.arctan2(w[:, 1], w[:, 0]) / np.pi
    axes.vlines(angle, 0.0, weight, color=COLOURS[0])
    axes.plot(angle, weight, "o", color=COLOURS[0], markersize=5)
    axes.set(xlabel=r"angle $\theta/\pi$ of the filter", ylabel="weight of the filter", xlim=(-1.05, 1.05))
    axes.set_ylim(bottom=0.0)
    return axes


def _plot_weights(dataset: xr.Dataset, axes: Axes) -> Axes:
    count = dataset.sizes["atom"]
    axes.bar(np.arange(1, count + 1), dataset["weight"], color=COLOURS[0], width=0.6)
    axes.set(xlabel="filter", ylabel="weight of the filter", xticks=np.arange(1, count + 1)[:: max(1, count // 10)])
    return axes


def _plot_coordinates(dataset: xr.Dataset, axes: Axes) -> Axes:
    for k, w in enumerate(dataset["w"].values[:8]):  # filters whose coordinates are shown
        axes.plot(np.arange(1, len(w) + 1), w, label=f"filter {k + 1}", **(curve_style(k) | {"marker": "o"}))
    axes.set(xlabel="coordinate", ylabel="filter $w$", xticks=np.arange(1, dataset.sizes["coordinate"] + 1))
    return axes


def plot_training(dataset: xr.Dataset) -> Figure:
    """Energy, trace of the covariance, matches of tokens, and loss in time; means over replicas.

    Parameters
    ----------
    dataset : xarray.Dataset
        Of the kind `population`, `particles` or `ensemble`.
    """
    panels: list[Panel] = []
    for label, curves in CURVES:
        shown = {name: words for name, words in curves.items() if _values(dataset, name) is not None}
        if shown:
            panels.append(partial(_plot_curves, label=label, curves=shown))
    if "modulation" in dataset:
        panels += [_plot_modulations, _plot_alignments]
    return draw_panels(dataset, panels)


def _plot_modulations(dataset: xr.Dataset, axes: Axes) -> Axes:
    """Factors of the push that other places give the filter of each place."""
    return _plot_places(dataset, axes, dataset["modulation"].values, r"modulation $\delta_k$")


def _plot_alignments(dataset: xr.Dataset, axes: Axes) -> Axes:
    """Cosines of filters with what tells the two generators apart."""
    w, difference = dataset["weights"].values[:, :, 0], dataset["difference"].values
    sizes = np.linalg.norm(w, axis=-1) * np.linalg.norm(difference, axis=-1)
    along = np.sum(w * difference, axis=-1)
    cosine = np.divide(along, sizes, out=np.full_like(along, np.nan), where=sizes > 0.0)
    return _plot_places(dataset, axes, cosine, r"cosine of $w_k$ and $\Delta_k$")


def _plot_places(dataset: xr.Dataset, axes: Axes, values: FloatArray, label: str) -> Axes:
    """A curve for each of the first places."""
    for k, row in enumerate(values.T[:6]):  # so many line styles there are
        axes.plot(dataset["time"], row, label=f"place {k + 1}", **curve_style(k))
    axes.set(xlabel=TIME, ylabel=label)
    return axes


def _plot_curves(dataset: xr.Dataset, axes: Axes, label: str, curves: dict[str, str | None]) -> Axes:
    for number, (name, words) in enumerate(curves.items()):
        values = _values(dataset, name)
        assert values is not None
        mean = values.mean(axis=0)
        style = curve_style(number)
        axes.plot(dataset["time"], mean, label=words, **style)
        if len(values) > 1:
            spread = values.std(axis=0, ddof=1)
            axes.fill_between(dataset["time"], mean - spread, mean + spread, color=style["color"], alpha=0.2, lw=0)
    axes.set(xlabel=TIME, ylabel=label)
    return axes


def _values(dataset: xr.Dataset, name: str) -> FloatArray | None:
    """Values in time, shape (replicas, times), or their mean as a single row; None where there are none."""
    if name in dataset:
        return np.atleast_2d(dataset[name].values)
    return dataset[f"{name}_mean"].values[None] if f"{name}_mean" in dataset else None


def of_training(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Energy, scores and ranks at the last time that was reached."""
    words = {
        "energy": "energy",
        "covariance_trace": "trace of the covariance of the filters' outputs",
        "chi_plus": "chi_+",
        "chi_minus": "chi_-",
        "loss": "mean loss",
        "top_rank": "effective rank of the top layer",
    }
    known = ((words[name], _values(dataset, name)) for name in words)
    return last_values(dataset, ((what, values.mean(axis=0)) for what, values in known if values is not None))
