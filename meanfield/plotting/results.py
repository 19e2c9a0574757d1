"""Default figure of a Dataset of any kind: a panel for each variable where a family declares no figure."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from textwrap import fill
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.comparison.wording import verdicts_of
from meanfield.errors import InputError
from meanfield.plotting.comparison import (
    plot_differences,
    plot_distances,
    plot_distances_given_u,
    plot_standard_errors,
)
from meanfield.plotting.dynamics import plot_escape_times
from meanfield.plotting.panels import Panel, draw_panels
from meanfield.plotting.phase_diagram import plot_along, plot_phase_diagram
from meanfield.plotting.plane import plot_channel_densities, plot_joint_density
from meanfield.plotting.portrait import plot_portrait
from meanfield.plotting.states import plot_state_densities, plot_state_stability
from meanfield.plotting.style import ANY_TIME, TITLE_WIDTH, curve_style, marker_style
from meanfield.plotting.trajectories import (
    plot_channel_overlap,
    plot_coefficients,
    plot_diffusion,
    plot_errors,
    plot_fluctuations,
    plot_overlap,
    plot_prior_work,
    plot_quantiles,
    plot_replicas,
)
from meanfield.plotting.weights import plot_densities, plot_density_given_u, plot_histograms, plot_pairs, plot_sample
from meanfield.problems.family import Family, resolve
from meanfield.results.result import Result, family_of_result
from meanfield.results.schema import validate


def plot_result(dataset: xr.Dataset) -> Figure:
    """One figure of a result of any method; panels of variables that it does not hold are left out.

    Parameters
    ----------
    dataset : xarray.Dataset
        From a solver or from `meanfield.load`. Runs that were interrupted are drawn as far as they came.

    Returns
    -------
    Figure
        Not known to pyplot: save it with `meanfield.results.figure_files.save_figure`, or show it as the last value of
        a cell.

    Raises
    ------
    InputError
        If it is no result of ours, or a sweep of which one cannot see all at once.
    """
    result = Result.of(dataset)
    validate(result)
    draw: Callable[[xr.Dataset], Figure] = resolve(result.kind.figure) if result.kind.figure else plot_plain
    return draw(dataset)


def plot_density_run(density: xr.Dataset) -> Figure:
    """Overlaps, prior work, densities, coefficients and error estimates of a density."""
    if "M" in density:
        return _plot_plane_run(density)
    panels: list[Panel] = [plot_overlap, *_prior_work(density, "r", plot_prior_work), plot_densities]
    panels += [partial(plot_density_given_u, feature=k) for k in range(density.sizes["feature"])]
    return draw_panels(density, [*panels, plot_coefficients, plot_errors])


def _plot_plane_run(density: xr.Dataset) -> Figure:
    """Panels of a run of two channels, with their own overlap."""
    panels: list[Panel] = [plot_overlap, plot_channel_overlap, *_prior_work(density, "r", plot_prior_work)]
    panels += [partial(plot_channel_densities, channel=k) for k in range(density.sizes["channel"])]
    return draw_panels(density, [*panels, plot_diffusion, plot_errors])


def plot_plane(joint: xr.Dataset) -> Figure:
    """Density of both weights of two channels at each of its times that was reached."""
    times = joint["P_joint"].dropna("density_time")["density_time"].values
    return draw_panels(joint, [partial(plot_joint_density, time=float(time)) for time in times])


def plot_order_parameter_run(run: xr.Dataset) -> Figure:
    """Overlaps with the spread of SGD about them, and coefficients; of several channels also their own overlaps."""
    if "M" in run:
        return draw_panels(run, [plot_overlap, plot_channel_overlap, plot_diffusion])
    return draw_panels(run, [plot_fluctuations if "q_covariance" in run else plot_overlap, plot_coefficients])


def plot_limit_particles(run: xr.Dataset) -> Figure:
    """Overlaps, prior work, histograms of the weights of each channel and errors of particles of the limit."""
    panels: list[Panel] = [plot_overlap, plot_channel_overlap, *_prior_work(run, "r", plot_prior_work)]
    panels += [partial(plot_sample, channel=k) for k in range(run.sizes["channel"])]
    return draw_panels(run, [*panels, plot_diffusion, plot_errors])


def plot_particle_run(particles: xr.Dataset) -> Figure:
    """Replicas of SGD, histograms of their weights, and escape times."""
    panels: list[Panel] = [plot_replicas, *_prior_work(particles, "r", partial(plot_replicas, quantity="r"))]
    panels += [plot_channel_overlap] if "M" in particles else []
    if "weights" in particles and "M" not in particles:
        panels.append(plot_histograms)
        panels += [partial(plot_pairs, feature=k) for k in range(particles.sizes["feature"])]
    return draw_panels(particles, [*panels, *_escape_times(particles)])


def plot_ensemble(ensemble: xr.Dataset) -> Figure:
    """Quantiles of an ensemble of SGD, and escape times."""
    work = _prior_work(ensemble, "r_mean", plot_prior_work)
    channels: list[Panel] = [plot_channel_overlap] if "M_mean" in ensemble else []
    return draw_panels(ensemble, [plot_quantiles, *channels, *work, *_escape_times(ensemble)])


def plot_states(stationary: xr.Dataset) -> Figure:
    """Densities of stationary states and their stability."""
    return draw_panels(stationary, [plot_state_densities, plot_state_stability])


def plot_portrait_alone(portrait: xr.Dataset) -> Figure:
    """A phase portrait in a figure of its own."""
    return draw_panels(portrait, [plot_portrait])


def plot_agreement(comparison: xr.Dataset) -> Figure:
    """Differences in standard errors where there are replicas, as they are where there are none, and distances."""
    panels: list[Panel] = []
    compared = [name for name in Result.of(comparison).family.compared if f"{name}_difference" in comparison]
    for name in compared:
        difference, error = comparison[f"{name}_difference"].values, comparison[f"{name}_standard_error"].values
        known = np.isfinite(error)
        if known.any():
            panels.append(partial(plot_standard_errors, quantity=name))
        alone = ~known.reshape(len(known), -1).any(axis=1)
        if np.any(np.abs(difference[alone]) > 0):
            panels.append(partial(plot_differences, quantity=name))
    if "W1" in comparison and np.isfinite(comparison["W1"]).any():
        panels.append(plot_distances)
        features = comparison.sizes["feature"] if "W1_given_u" in comparison else 0
        panels += [partial(plot_distances_given_u, feature=k) for k in range(features)]
    if not panels:  # nothing differs
        panels = [partial(plot_differences, quantity=name) for name in compared]
    title = "\n".join([comparison.attrs["title"], *verdicts_of(comparison)])
    return draw_panels(comparison.assign_attrs(title=title), panels)


def plot_fit(fit: xr.Dataset) -> Figure:
    """Estimates with their 95 % intervals, a panel for each key."""

    def panel(fit: xr.Dataset, axes: Axes, row: int) -> Axes:
        of_key = fit.isel(key=row)
        value, low, high = (of_key[name].item() for name in ("estimate", "lower", "upper"))
        axes.errorbar([0.0], [value], yerr=[[value - low], [high - value]], **marker_style(0), capsize=4)
        axes.set(xticks=[], ylabel=str(of_key["key"].item()))
        return axes

    return draw_panels(fit, [partial(panel, row=row) for row in range(fit.sizes["key"])])


def plot_sweep(sweep: xr.Dataset) -> Figure:
    """Figure that the family has for what a sweep keeps, else every number of one over one or two axes."""
    methods = tomllib.loads(sweep.attrs.get("sweep", "")).get("methods", {})
    own = sweep_figure(family_of_result(sweep), methods)
    if own:
        figure: Figure = resolve(own)(sweep)
        return figure
    dims = sweep["status"].dims
    plots: dict[int, Callable[..., Axes]] = {1: plot_along, 2: plot_phase_diagram}
    if len(dims) not in plots:
        raise InputError(
            f"a sweep over {len(dims)} axes has no figure; select values of all but two, "
            f"such as sweep.isel({dims[0] if dims else 'axis'}=0)"
        )
    shown = [str(name) for name, v in sweep.data_vars.items() if v.dims == dims and v.dtype.kind == "f"]
    if not shown:
        raise InputError("the sweep keeps no number of a point that could be drawn; keep one, such as similarity")
    return draw_panels(sweep, [partial(plots[len(dims)], variable=name) for name in shown])


def sweep_figure(family: Family, methods: Mapping[str, Iterable[str]]) -> str:
    """Address of the figure that a family has for sweeps that keep these reductions, empty if it has none."""
    kept = [name for names in methods.values() for name in names]
    return next((family.sweep_figures[name] for name in kept if name in family.sweep_figures), "")


def _prior_work(dataset: xr.Dataset, name: str, plot: Panel) -> list[Panel]:
    """Panel of r, unless it vanishes because there is no prior."""
    return [plot] if np.any(np.nan_to_num(dataset[name].values) != 0) else []


def _escape_times(dataset: xr.Dataset) -> list[Panel]:
    """Panel of escape times, if any replica escaped."""
    return [plot_escape_times] if "escape_time" in dataset and np.isfinite(dataset["escape_time"]).any() else []


def plot_plain(dataset: xr.Dataset) -> Figure:
    """Every declared variable along the leading dim: lines in time, dots for states.

    Parameters
    ----------
    dataset : xarray.Dataset
        Of a kind that declares no figure.

    Raises
    ------
    InputError
        If nothing in it varies along the leading dim.
    """
    result = Result.of(dataset)
    kind = result.kind
    # states are no continuum
    style = curve_style if kind.leading in result.family.variables else marker_style
    names = [name for name in kind.names if _varies(dataset, name, kind.leading)]
    if not names:
        raise InputError(f"nothing in a result of kind '{dataset.attrs['method']}' varies along '{kind.leading}'")
    draw = partial(_plot_variable, along=kind.leading, style=style)
    panels: list[Panel] = [partial(draw, name=name) for name in names[:9]]  # more fit on no page
    return draw_panels(dataset, panels)


def _varies(dataset: xr.Dataset, name: str, along: str) -> bool:
    if name not in dataset or name == along or along not in dataset[name].dims or dataset[name].dtype.kind not in "fiu":
        return False
    return dataset[name].size <= 12 * dataset.sizes[along]  # some of many curves would say nothing


def _plot_variable(
    dataset: xr.Dataset, axes: Axes, name: str, along: str, style: Callable[[int], dict[str, Any]]
) -> Axes:
    """Plot one curve for each index of the other dims."""
    values = dataset[name].transpose(along, ...).values.reshape(dataset.sizes[along], -1)
    for i, curve in enumerate(values.T):
        axes.plot(dataset[along].values, curve, **style(i))
    axes.set(xlabel=ANY_TIME if along == "time" else along, ylabel=name)
    axes.set_title(fill(str(dataset[name].attrs.get("long_name", name)), TITLE_WIDTH), fontsize="small")
    return axes
