"""Figures of update rules: observables, overlaps and side variables in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.comparison.distributions import laws_given_u
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.numerics.distances import density_of
from meanfield.plotting import order_parameters
from meanfield.plotting.histograms import density_curve
from meanfield.plotting.panels import Panel, draw_panels, mark_quantiles
from meanfield.plotting.plane import plot_channel_densities
from meanfield.plotting.style import TIME, curve_style
from meanfield.plotting.weights import (
    plot_densities,
    plot_density_given_u,
    plot_sample,
    reached,
    visible_weights,
)
from meanfield.report.charts import Chart, matrices, profile, profile_of_runs
from meanfield.report.maps import plane
from meanfield.results.result import Result

PANELS = {
    "observables": ("observables", ""),
    "R": ("overlap with features $R_{km}$", "R"),
    "Q": ("overlap of students $Q_{kl}$", "Q"),
    "v": ("side variables", "v"),
    "r": ("prior work $r$", "r"),
}
"""Label of the axis and symbol of each variable."""

NAMES = {"observables": "observable_name", "v": "side_name"}
"""Variables whose entries have names, and where these are."""


def plot_order_parameters(dataset: xr.Dataset) -> Figure:
    """Observables, overlaps and side variables, as far as there are some; means over replicas with bands.

    Parameters
    ----------
    dataset : xarray.Dataset
        Of the kind `order_parameters`, `particles` or `ensemble`.
    """
    shown = {name: words for name, words in PANELS.items() if {name, f"{name}_mean"} & {*dataset}}
    return order_parameters.plot_order_parameters(dataset, shown, NAMES)


def plot_density(dataset: xr.Dataset) -> Figure:
    """Order parameters and densities of weights at some times; of one student also given features and eigenvalue.

    Parameters
    ----------
    dataset : xarray.Dataset
        Of the kind `density` or `limit_particles`.
    """
    shown = {name: words for name, words in PANELS.items() if name in dataset}
    if dataset.sizes["student"] == 1:
        features = range(dataset.sizes["feature"])
        panels: list[Panel] = [plot_densities, *(partial(plot_density_given_u, feature=k) for k in features)]
        panels += [_plot_given_eigenvalue] if "rho_of_node" in dataset else []
    else:
        plot = plot_channel_densities if "P" in dataset else plot_sample
        panels = [partial(_plot_student, plot=plot, number=k) for k in range(dataset.sizes["student"])]
    return order_parameters.plot_order_parameters(dataset, shown, NAMES, panels)


def _plot_student(dataset: xr.Dataset, axes: Axes, plot: Callable[..., Axes], number: int) -> Axes:
    """Draw the weights of one of several students, as of a channel."""
    return plot(dataset.rename(student="channel"), axes, number)


def _plot_given_eigenvalue(density: xr.Dataset, axes: Axes) -> Axes:
    """Density of w given the eigenvalue of the noise, at a few of them and at the last output time."""
    time, edges = float(reached(density)[-1]), edges_of(density)
    laws = laws_given_u(Result.of(density), time, density.sizes["feature"])
    rho, place = np.unique(laws.u[:, -1], return_inverse=True)
    for number, k in enumerate(np.unique(np.linspace(0, len(rho) - 1, 4).round().astype(int))):
        F = np.average(laws.F[place == k], axis=0, weights=laws.weight[place == k])
        label = rf"$\rho = {rho[k]:.3g}$"
        axes.plot(*density_curve(edges, density_of(edges, F)), label=label, **curve_style(number))
    axes.set(xlabel="weight $w$", ylabel=r"density $P_t(w|\rho)$", xlim=visible_weights(density, time), ylim=(0, None))
    axes.set_title(f"$t = {time:.4g}$", fontsize="medium")
    return axes


def plot_escape(escape: xr.Dataset) -> Figure:
    """Linearised change of R at finite N, with the times by which shares of runs escape.

    Parameters
    ----------
    escape : xarray.Dataset
        From `meanfield.update_rule.predict_escape`.
    """
    return draw_panels(escape, [_plot_deviation])


def _plot_deviation(escape: xr.Dataset, axes: Axes) -> Axes:
    grown = escape["deviation"].where(escape["deviation"] > 0.0)
    axes.semilogy(escape["time"], grown, **curve_style(0))
    mark_quantiles(axes, escape["quantile"].values, escape["escape_time_quantile"].values)
    axes.set(xlabel=TIME, ylabel="change of $R$, linearised, root mean square")
    return axes


def charts(dataset: xr.Dataset) -> Iterator[Chart]:
    """Matrices R and Q, overlaps over eigenvalues of the noise, and the plane of the weights of two students."""
    yield from matrices(dataset, "R", "Q")
    yield from plane(dataset)
    with_features, of_students = "overlaps R with features", "overlaps Q of students"
    if "R_rho" in dataset:
        yield from profile(with_features, dataset["R_rho"])
        yield from profile(of_students, dataset["Q_rho"])
    if {"weights", "rho_of_coordinate"} <= {*dataset}:
        w, rho = dataset["weights"], dataset["rho_of_coordinate"]
        yield from profile_of_runs(with_features, w, dataset["U"], rho)
        yield from profile_of_runs(of_students, w, w.rename(student="student_"), rho)
