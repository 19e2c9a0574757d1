"""Figures of results: critical points along the circle, or their energies where there is no circle."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.families.alpha_contrastive.data import GaussianMixture
from meanfield.families.alpha_contrastive.limit.circle import on_circle
from meanfield.families.alpha_contrastive.limit.fields import discrete_field, mixture_field
from meanfield.plotting.style import COLOURS, Panel, draw_panels
from meanfield.results.schema import problem_of

CURVE_POINTS = 721
"""Angles of the curve of the energy."""

KINDS_OF_POINTS = (
    ("stable, between walls", "o", "black"),
    ("stable, on a wall", "s", "black"),
    ("not stable", "o", "white"),
)
"""Label, marker and filling of the critical points of a figure."""


def plot_critical_points(dataset: xr.Dataset) -> Figure:
    """Energy of critical points and shares of their basins, along the circle if there is one."""
    panels: list[Panel] = [_plot_energy, _plot_basins]
    return draw_panels(dataset, panels)


def _plot_energy(dataset: xr.Dataset, axes: Axes) -> Axes:
    place, label = _places(dataset)
    if dataset.sizes["coordinate"] == 2:
        angle = np.linspace(-np.pi, np.pi, CURVE_POINTS)
        axes.plot(angle / np.pi, _energy_curve(dataset, angle), color=COLOURS[0], lw=1.0)
    stable, wall = dataset["stable"].values > 0, dataset["wall"].values > 0
    for (name, marker, filling), chosen in zip(KINDS_OF_POINTS, (stable & ~wall, stable & wall, ~stable), strict=True):
        if chosen.any():
            axes.plot(
                *(place[chosen], dataset["energy"].values[chosen]),
                marker=marker,
                markerfacecolor=filling,
                markeredgecolor="black",
                linestyle="none",
                markersize=5,
                label=name,
            )
    axes.set(xlabel=label, ylabel=r"energy $E_\alpha(w)$")
    return axes


def _energy_curve(dataset: xr.Dataset, angle: np.ndarray) -> np.ndarray:
    problem = problem_of(dataset)
    data = problem.data
    field = mixture_field(problem, data) if isinstance(data, GaussianMixture) else discrete_field(problem, data)
    return field.energy(on_circle(angle))


def _plot_basins(dataset: xr.Dataset, axes: Axes) -> Axes:
    place, label = _places(dataset)
    stable = dataset["stable"].values > 0
    axes.vlines(place[stable], 0.0, dataset["basin_share"].values[stable], color=COLOURS[0])
    axes.plot(place[stable], dataset["basin_share"].values[stable], "o", color=COLOURS[0], markersize=4)
    axes.set(xlabel=label, ylabel="share of the sphere that comes to it")
    axes.set_ylim(bottom=0.0)
    return axes


def _places(dataset: xr.Dataset) -> tuple[np.ndarray, str]:
    """Place of each point on the axis, and the label of the axis."""
    if dataset.sizes["coordinate"] == 2:
        w = dataset["w"].values
        return np.arctan2(w[:, 1], w[:, 0]) / np.pi, r"angle $\theta/\pi$ of the filter"
    return np.arange(1, dataset.sizes["point"] + 1), "critical point, in the order of energy"
