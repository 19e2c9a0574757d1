"""Latent-tree results as figures, key numbers and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.numerics.growth_rates import VERDICTS
from meanfield.plotting.panels import Panel, draw_panels
from meanfield.plotting.plane import draw_on_sphere
from meanfield.plotting.style import curve_style, marker_style, time_styles
from meanfield.plotting.trajectories import say_shown
from meanfield.report.charts import Chart
from meanfield.results.text import last_values, plain
from meanfield.typing import FloatArray

TIME = "time $t$ of the flow"

MOST_LATENTS = 7
"""Largest number of latents in a panel of curves: the root and two levels below it in a binary tree."""

MOST_CHILDREN = 2
"""Largest number of latents whose densities are drawn."""

MOST_NODES = 8
"""Largest number of nodes of a latent in a tree."""

MOST_IN_TREE = 31
"""Largest number of latents in a tree: five levels of a binary one."""

IN_TIME = {
    "loss": "population loss $L$",
    "correlation": r"best |correlation| of a latent's nodes",
    "selectivity": "largest |selectivity| of a latent's nodes",
    "score": "sampled score of a latent",
}
"""Labels of the axes of variables in time."""

OF_LATENTS = {
    "operator_norm": r"operator norm $\Vert OP_\mu\Vert_F$",
    "growth_rate": "growth rate of gaps",
    "selectivity": "selectivity $s$",
}
"""Labels of the axes of variables of latents or their nodes."""


def plot_training(dataset: xr.Dataset) -> Figure:
    """Loss, best correlation or selectivity, and score in time; means over replicas.

    Parameters
    ----------
    dataset : xarray.Dataset
        Of the kind `population`, `particles` or `ensemble`.
    """
    shown = [name for name in ("loss", "correlation", "score") if _values(dataset, name) is not None]
    if "correlation" not in shown and _values(dataset, "selectivity") is not None:
        shown.insert(-1, "selectivity")
    panels: list[Panel] = [partial(_plot_in_time, name=name) for name in shown]
    return draw_panels(dataset, panels)


def _plot_in_time(dataset: xr.Dataset, axes: Axes, name: str) -> Axes:
    values = _values(dataset, name)
    assert values is not None
    columns = values.reshape(len(values), -1)
    shown = min(columns.shape[1], MOST_LATENTS)
    say_shown(axes, shown, columns.shape[1])
    for number in range(shown):
        label = None if values.ndim == 1 else "root" if number == 0 else f"latent {number}"
        axes.plot(dataset["time"], columns[:, number], label=label, **curve_style(number))
    axes.set(xlabel=TIME, ylabel=IN_TIME[name])
    return axes


def _values(dataset: xr.Dataset, name: str) -> FloatArray | None:
    """Values in time, of the best node of each latent, as means over replicas; None where there are none."""
    for key in (name, f"{name}_mean"):
        if key in dataset:
            values = dataset[key]
            if "node" in values.dims:
                values = xr.apply_ufunc(np.abs, values).max("node")
            return (values.mean("replica") if "replica" in values.dims else values).values
    return None


def plot_operator(dataset: xr.Dataset) -> Figure:
    """Norms of operators, growth rates and selectivities by latent, the root first."""
    panels: list[Panel] = [partial(_plot_by_latent, name=name) for name in OF_LATENTS]
    return draw_panels(dataset, panels)


def _plot_by_latent(dataset: xr.Dataset, axes: Axes, name: str) -> Axes:
    values = dataset[name].values.reshape(dataset.sizes["latent"], -1)
    latents, levels = dataset["latent"].values, dataset["latent_level"].values
    for number, level in enumerate(sorted(set(levels.tolist()), reverse=True)):
        there = levels == level
        places = np.repeat(latents[there], values.shape[1])
        color = curve_style(number)["color"]
        axes.plot(places, values[there].ravel(), "o", ms=4, color=color, label=f"level {level}")
    if values.min() < 0.0:
        axes.axhline(0.0, color="0.6", lw=0.8)
    axes.set(xlabel="latent, the root first", ylabel=OF_LATENTS[name])
    return axes


def plot_density(dataset: xr.Dataset) -> Figure:
    """Difference of the mean outputs, directions of the nodes of some latents, and the shares that stay at gates."""
    children = range(min(dataset.sizes["child"], MOST_CHILDREN))
    panels: list[Panel] = [_plot_Delta, *(partial(_plot_directions, child=k) for k in children), _plot_shares]
    return draw_panels(dataset, panels)


def _plot_Delta(dataset: xr.Dataset, axes: Axes) -> Axes:
    if "Delta_error" in dataset:
        axes.errorbar(dataset["time"], dataset["Delta"], dataset["Delta_error"], capsize=2, **curve_style(0))
    else:
        axes.plot(dataset["time"], dataset["Delta"], **curve_style(0))
    axes.set(xlabel=TIME, ylabel=r"difference $\Delta$ of mean outputs")
    return axes


def _plot_directions(dataset: xr.Dataset, axes: Axes, child: int) -> Axes:
    """Density of the nodes of a latent without those at gates, for both signs of outgoing weights together."""
    reached = np.flatnonzero(np.isfinite(dataset["Delta"].values))
    # Times whose densities are drawn.
    shown = reached[np.unique(np.linspace(0, len(reached) - 1, 5).round().astype(int))]
    edges = np.append(dataset["angle_bnds"].values[:, 0], dataset["angle_bnds"].values[-1, 1]) / np.pi
    for k, style in zip(shown, time_styles(dataset["time"].values[shown]), strict=True):
        rho = dataset["rho"].isel(time=int(k), child=child).sum("sign")
        axes.stairs(rho, edges, baseline=None, label=f"$t = {float(dataset['time'][k]):g}$", **style)
    number = int(dataset["child"][child])
    axes.set(xlabel=rf"angle $\theta/\pi$ of nodes of latent {number}", ylabel=r"density $\rho(\theta)$")
    return axes


def plot_sphere_density(dataset: xr.Dataset) -> Figure:
    """Difference of the mean outputs, directions of the nodes of some latents at the end, and shares at gates."""
    children = range(min(dataset.sizes["child"], MOST_CHILDREN))
    panels: list[Panel] = [_plot_Delta, *(partial(_plot_map, child=k) for k in children), _plot_shares]
    return draw_panels(dataset, panels)


def plot_node_particles(dataset: xr.Dataset) -> Figure:
    """Difference of the mean outputs with its error, and shares of nodes at gates."""
    panels: list[Panel] = [_plot_Delta, _plot_shares]
    return draw_panels(dataset, panels)


def _plot_map(dataset: xr.Dataset, axes: Axes, child: int) -> Axes:
    """Density of the nodes of a latent on the sphere at the last time that was reached, of both signs together."""
    last = int(np.flatnonzero(np.isfinite(dataset["Delta"].values))[-1])
    rho = dataset["rho_on_sphere"].isel(time=last, child=child).sum("sign").values
    of = f"nodes of latent {int(dataset['child'][child])}"
    return draw_on_sphere(axes, dataset, rho, float(dataset["time"][last]), of)


def _plot_shares(dataset: xr.Dataset, axes: Axes) -> Axes:
    shown = dataset["child"].values[:MOST_LATENTS]
    say_shown(axes, len(shown), dataset.sizes["child"])
    for number, child in enumerate(shown):
        share = (dataset["atom"].sum("gate", skipna=False) if "atom" in dataset else dataset["held"]).sel(child=child)
        share = share.sum("sign", skipna=False)
        axes.plot(dataset["time"], share, label=f"latent {child}", **curve_style(number))
    axes.set(xlabel=TIME, ylabel="share of nodes that stay at gates")
    axes.set_ylim(bottom=0.0)
    return axes


def plot_states(dataset: xr.Dataset) -> Figure:
    """Losses of networks at rest against the share of random networks that come to each, and their growth rates."""
    panels: list[Panel] = [_plot_shares_of_states, _plot_rates]
    return draw_panels(dataset, panels)


def _plot_shares_of_states(dataset: xr.Dataset, axes: Axes) -> Axes:
    _mark_states(axes, dataset["share"].values, dataset["loss"].values, dataset["stability"].values)
    axes.set(xlabel="share of random networks that come to it", ylabel="population loss $L$")
    return axes


def _plot_rates(dataset: xr.Dataset, axes: Axes) -> Axes:
    rates = dataset["rates"].values
    _mark_states(axes, rates[:, 0], dataset["loss"].values, dataset["stability"].values)
    axes.axvline(0.0, color="0.6", lw=0.8)
    axes.set(xlabel="largest growth rate of deviations", ylabel="population loss $L$")
    return axes


def _mark_states(axes: Axes, x: FloatArray, y: FloatArray, stability: FloatArray) -> None:
    for number, (code, word) in enumerate(VERDICTS.items()):
        chosen = stability == code
        if chosen.any():
            axes.plot(x[chosen], y[chosen], **(marker_style(number) | {"label": word}))


def of_states(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Numbers of networks at rest by stability, the lowest loss, and the share of random networks that come to it."""
    yield "networks at rest", f"{dataset.sizes['state']}"
    for code, word in VERDICTS.items():
        count = int((dataset["stability"] == code).sum())
        if count:
            yield f"of these {word}", f"{count}"
    if dataset.sizes["state"]:
        yield "lowest loss", plain(float(dataset["loss"][0]))
        yield "share of random networks that come to it", plain(float(dataset["share"][0]))
        yield "share of random networks that come to any", plain(float(dataset["share"].sum()))


def notes_on_states(dataset: xr.Dataset) -> Iterator[str]:
    """A line for each of the first networks at rest."""
    for number in range(min(dataset.sizes["state"], 20)):
        state = dataset.isel(state=number)
        yield (
            f"state {number + 1}: L = {float(state['loss']):.6g}, {VERDICTS[int(state['stability'])]}, "
            f"{int(state['growing'])} growing and {int(state['flat'])} flat directions of which {int(state['orbit'])} "
            f"are symmetries, {int(state['dead'])} node(s) never active, {int(state['kinks'])} at kinks, share "
            f"{float(state['share']):.3g}"
        )


def of_a_density(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Difference of mean outputs at the last time that was reached, and the share of nodes that rest at gates."""
    last = int(np.flatnonzero(np.isfinite(dataset["Delta"].values))[-1])
    when = f"at t = {float(dataset['time'][last]):g}"
    yield f"Delta {when}", plain(float(dataset["Delta"][last]))
    if "Delta_error" in dataset:
        yield f"error of Delta {when}", plain(float(dataset["Delta_error"][last]))
    for child in dataset["child"].values:
        share = float(dataset["atom" if "atom" in dataset else "held"].sel(child=child)[last].sum())
        yield f"share of the nodes of latent {child} at gates {when}", plain(share)


def of_an_operator(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Loss, norms of gradients and of the root's operator, and the share of gaps that grow."""
    yield "loss", plain(float(dataset["loss"]))
    for level, norm in zip(dataset["level"].values, dataset["gradient_norm"].values, strict=True):
        yield f"norm of the gradient at level {level}", plain(float(norm))
    yield "norm of the root's operator", plain(float(dataset["operator_norm"][0]))
    yield "share of gaps that grow", plain(float((dataset["growth_rate"] > 0.0).mean()))


def of_training(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Loss, and correlation or score of the root, at the last time that was reached."""
    words = {"loss": "loss", "correlation": "best |correlation| of the root", "score": "score of the root"}
    known = ((words[name], _values(dataset, name)) for name in words)
    return last_values(dataset, ((what, v.reshape(len(v), -1)[:, 0]) for what, v in known if v is not None))


def describe_operator(dataset: xr.Dataset) -> str:
    """Result of `find_operators` as a sentence."""
    growing = int((dataset["growth_rate"] > 0.0).sum())
    return (
        f"L = {float(dataset['loss']):.6g}; the gaps of {growing} of {dataset['growth_rate'].size} nodes grow; the "
        f"operator of the root has the norm {float(dataset['operator_norm'][0]):.4g}"
    )


def charts(dataset: xr.Dataset) -> Iterator[Chart]:
    """The tree with the correlations of nodes and their latents, of the first run if there are several.

    Levels next to the leaves are left out of large trees, and so are nodes but the first few of each latent.
    """
    if "correlation" not in dataset:
        return
    held = dataset["correlation"].isel(node=slice(MOST_NODES))
    several = held.sizes.get("replica", 1) > 1
    held = (held.isel(replica=0) if "replica" in held.dims else held).transpose("time", "latent", "node")
    levels, counts = np.unique(-dataset["latent_level"].values, return_counts=True)
    kept = counts[: np.searchsorted(np.cumsum(counts), MOST_IN_TREE, side="right")]
    title = "correlation of nodes with their latents"
    if len(kept) < len(levels):
        title += f", {len(kept)} of {len(levels)} levels"
    if held.sizes["node"] < dataset.sizes["node"]:
        title += f", {MOST_NODES} of {dataset.sizes['node']} nodes"
    places = {"levels": kept.tolist()}
    yield Chart("tree", title, held.isel(latent=slice(int(kept.sum()))), places, label="first run" if several else "")
