"""Plots of order parameters, their fluctuations and errors, and of coefficients against time, entry by entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield.plotting.arguments import draws
from meanfield.plotting.style import COLOURS, LINES, MARKERS, TIME, curve_style, entry_label, feature_label, symbol
from meanfield.results.result import Result
from meanfield.results.text import index_text

MOST_ENTRIES = 12
"""Largest number of entries that are drawn in a panel."""


def say_shown(axes: Axes, shown: int, known: int) -> None:
    """Say below the title of a panel that it shows some curves of more, once."""
    note, title = f"{shown} of {known} shown", axes.get_title()
    if shown < known and note not in title.splitlines():
        axes.set_title("\n".join(filter(None, [title, note])), fontsize="small")


def entries_of(values: xr.DataArray, *along: str, axes: Axes | None = None) -> Iterator[tuple[str, xr.DataArray]]:
    """Indices, counted from 1, and curves of the first entries; see `entries`."""
    for index, place in entries(values, *along, axes=axes):
        yield index, values.isel(place)


def entries(values: xr.DataArray, *along: str, axes: Axes | None = None) -> Iterator[tuple[str, dict[str, int]]]:
    """Indices, counted from 1, and places of the first entries; of a symmetric matrix those on and above its diagonal.

    Parameters
    ----------
    values : xarray.DataArray
        Its dims besides `along` are those of the entries; a matrix is symmetric if one has the other's name and "_".
    *along : str
        Dims that curves keep; time and replicas, if nothing is said.
    axes : Axes, optional
        The panel in which they are drawn, whose title then says how many of them are not.
    """
    found = all_entries(values, *along)
    if axes is not None:
        say_shown(axes, min(len(found), MOST_ENTRIES), len(found))
    yield from found[:MOST_ENTRIES]


def all_entries(values: xr.DataArray, *along: str) -> list[tuple[str, dict[str, int]]]:
    """Indices and places of all entries; see `entries`."""
    along = along or ("time", "replica")
    dims = [str(dim) for dim in values.dims if dim not in along]
    symmetric = len(dims) == 2 and dims[1] == f"{dims[0]}_"
    sizes = [values.sizes[dim] for dim in dims]
    places = [place for place in np.ndindex(*sizes) if not symmetric or place[0] <= place[1]]
    return [(index_text(place, sizes), dict(zip(dims, place, strict=True))) for place in places]


DEVIATIONS = 2.0
"""Half-width of bands in standard deviations."""

OVERLAP = "overlap $q_t = E[u w]$"
PRIOR_WORK = r"prior work $r_t = E[w\,\phi(w)]$"


@draws(dataset="q|q_mean time")
def plot_overlap(dataset: xr.Dataset, axes: Axes, label: str = "", colour: str = COLOURS[0], line: str = "-") -> Axes:
    """Overlap q against time: a line; for replicas mean and bars of two standard errors; for statistics quantiles.

    `colour` and `line` are those of the first feature and channel; the others take what follows in the common style.
    """
    first = COLOURS.index(colour) if colour in COLOURS else 0
    several = "channel" in dataset.dims or dataset.sizes["feature"] > 1
    for k, (index, place) in enumerate(entries(dataset["q_mean" if "q_mean" in dataset else "q"], axes=axes)):
        name = entry_label("q", index, label) if several else label
        style = curve_style(first + k) if k else {"color": colour, "linestyle": line}
        if "q_mean" in dataset:
            _plot_band(dataset.isel(place), axes, name, style)
        else:
            plot_in_time(dataset["q"].isel(place), axes, name, style)
    axes.set(xlabel=TIME, ylabel=OVERLAP)
    return axes


@draws(dataset="r|r_mean time")
def plot_prior_work(
    dataset: xr.Dataset, axes: Axes, label: str = "", colour: str = COLOURS[0], line: str = "-"
) -> Axes:
    """Prior work r against time: a line; for replicas bars of two standard errors; for statistics two deviations."""
    if "r_mean" in dataset:
        spread = DEVIATIONS * (dataset["r_variance"].clip(min=0.0) / Result.of(dataset).label("dimension")) ** 0.5
        style = {"color": colour, "linestyle": line}
        for index, place in entries(dataset["r_mean"], axes=axes):
            name = ", ".join(filter(None, (label or r"mean $\pm$ 2 deviations", index)))
            _plot_around(dataset["r_mean"].isel(place), spread.isel(place), axes, name, style)
    else:
        first = COLOURS.index(colour) if colour in COLOURS else 0
        for k, (index, place) in enumerate(entries(dataset["r"], axes=axes)):
            name = entry_label("r", index, label) if index else label
            style = curve_style(first + k) if k else {"color": colour, "linestyle": line}
            plot_in_time(dataset["r"].isel(place), axes, name, style)
    axes.set(xlabel=TIME, ylabel=PRIOR_WORK)
    return axes


@draws(particles="{quantity} replica time")
def plot_replicas(particles: xr.Dataset, axes: Axes, quantity: str = "q") -> Axes:
    """Paths of replicas one by one, at most thirty of them, with the mean and two standard deviations of all.

    Parameters
    ----------
    particles : xarray.Dataset
        From `meanfield.simulate_sgd`, with records of replicas.
    quantity : {"q", "r"}
    """
    values = particles[quantity]
    several = "channel" in particles.dims or (quantity == "q" and particles.sizes["feature"] > 1)
    for k, (index, place) in enumerate(entries(values, axes=axes)):
        of_feature, style = values.isel(place), curve_style(k)
        paths = of_feature.isel(replica=slice(30)).transpose("time", "replica")  # thirty replicas are drawn one by one
        axes.plot(particles["time"], paths, lw=0.5, alpha=0.6, **style)
        name = entry_label(quantity, index if several else "")
        label = rf"{name}: mean $\pm$ 2 deviations" + f"\nof {particles.sizes['replica']} replicas"
        spread = DEVIATIONS * _deviation(of_feature)
        _plot_around(of_feature.mean("replica"), spread, axes, label, style)
    axes.set(xlabel=TIME, ylabel=OVERLAP if quantity == "q" else PRIOR_WORK)
    return axes


@draws(ensemble="q_mean q_quantile")
def plot_quantiles(ensemble: xr.Dataset, axes: Axes) -> Axes:
    """Nested bands between the quantiles of the overlaps of an ensemble, and the medians.

    Parameters
    ----------
    ensemble : xarray.Dataset
        From `meanfield.simulate_sgd` with `particles.record = 'statistics'`.
    """
    quantile = ensemble["quantile"].values
    several = "channel" in ensemble.dims or ensemble.sizes["feature"] > 1
    for k, (index, place) in enumerate(entries(ensemble["q_mean"], axes=axes)):
        style = curve_style(k)
        values = ensemble["q_quantile"].isel(place)
        for outer in range(len(quantile) // 2):
            low, high = values.isel(quantile=outer), values.isel(quantile=-1 - outer)
            label = f"{quantile[outer]:.0%} to {quantile[-1 - outer]:.0%}" if k == 0 else None
            shade = 0.12 + 0.09 * outer
            axes.fill_between(ensemble["time"], low, high, color=style["color"], alpha=shade, lw=0, label=label)
        median = values.isel(quantile=len(quantile) // 2)
        axes.plot(ensemble["time"], median, label=entry_label("q", index, "median") if several else "median", **style)
    axes.set(xlabel=TIME, ylabel=OVERLAP)
    return axes


def plot_channel_overlap(
    dataset: xr.Dataset, axes: Axes, label: str = "", colour: str = COLOURS[0], line: str = "-"
) -> Axes:
    """Overlaps M of each two channels against time; see `plot_overlap`."""
    first = COLOURS.index(colour) if colour in COLOURS else 0
    M = dataset["M_mean" if "M_mean" in dataset else "M"]
    pairs = [(index, place) for index, place in entries(M) if place["channel"] != place["channel_"]]
    say_shown(axes, len(pairs), M.sizes["channel"] * (M.sizes["channel"] - 1) // 2)
    for k, (index, place) in enumerate(pairs):
        style = curve_style(first + k) if k else {"color": colour, "linestyle": line}
        plot_in_time(M.isel(place), axes, entry_label("M", index, label), style)
    axes.axhline(0.0, color="0.6", lw=0.8)
    axes.set(xlabel=TIME, ylabel="overlap of channels $M_t = E[w w^T]$")
    return axes


def plot_diffusion(dataset: xr.Dataset, axes: Axes) -> Axes:
    """Diffusion matrix Lambda of several channels against time."""
    for k, (index, place) in enumerate(entries(dataset["Lambda"], axes=axes)):
        axes.plot(
            dataset["time"], dataset["Lambda"].isel(place), label=entry_label(r"\Lambda", index), **curve_style(k)
        )
    axes.axhline(0.0, color="0.6", lw=0.8)
    axes.set(xlabel=TIME, ylabel=r"diffusion $\Lambda_t$")
    return axes


@draws(dataset="g Lambda time")
def plot_coefficients(dataset: xr.Dataset, axes: Axes) -> Axes:
    """Drift gains g and diffusion coefficient Lambda against time, of a density or of order parameters."""
    for k in range(dataset.sizes["feature"]):
        label = f"drift gain {symbol('g', k, dataset.sizes['feature'])}"
        axes.plot(dataset["time"], dataset["g"].isel(feature=k), label=label, **curve_style(k))
    style = {"color": COLOURS[-1], "linestyle": LINES[-1], "label": r"diffusion $\Lambda$"}
    axes.plot(dataset["time"], dataset["Lambda"], **style)
    axes.axhline(0.0, color="0.6", lw=0.8)
    axes.set(xlabel=TIME, ylabel=r"drift gain $g_t$, diffusion $\Lambda_t$")
    return axes


def _plot_around(middle: xr.DataArray, spread: xr.DataArray, axes: Axes, label: str, style: Mapping[str, Any]) -> None:
    """Plot a line in the middle of a band."""
    axes.plot(middle["time"], middle, label=label, **style)
    axes.fill_between(middle["time"], middle - spread, middle + spread, color=style["color"], alpha=0.2, lw=0)


def _plot_band(ensemble: xr.Dataset, axes: Axes, label: str, style: Mapping[str, Any]) -> None:
    """Plot mean and outermost quantiles of one overlap over an ensemble."""
    axes.plot(ensemble["time"], ensemble["q_mean"], label=label, **style)
    low, high = ensemble["q_quantile"].isel(quantile=0), ensemble["q_quantile"].isel(quantile=-1)
    axes.fill_between(ensemble["time"], low, high, color=style["color"], alpha=0.2, lw=0)


def plot_in_time(values: xr.DataArray, axes: Axes, label: str, style: Mapping[str, Any]) -> None:
    """Plot a line, or the mean of replicas with bars and the marker that belongs to the line."""
    if "replica" not in values.dims:
        axes.plot(values["time"], values, label=label, **style)
        return
    thinned = values.isel(time=slice(None, None, max(1, values.sizes["time"] // 20)))
    replicas = thinned.sizes["replica"]
    axes.errorbar(
        thinned["time"],
        thinned.mean("replica"),
        yerr=2 * _deviation(thinned) / np.sqrt(replicas),
        fmt=MARKERS[LINES.index(style["linestyle"])] if style["linestyle"] in LINES else MARKERS[0],
        markersize=3,
        capsize=2,
        color=style["color"],
        label=label,
    )


def _deviation(values: xr.DataArray) -> xr.DataArray:
    """Standard deviation over replicas, 0 for a single one."""
    return values.std("replica", ddof=1) if values.sizes["replica"] > 1 else 0 * values.isel(replica=0)


@draws(prediction="q_covariance", ensemble="q_covariance")
def plot_fluctuations(
    prediction: xr.Dataset, axes: Axes, ensemble: xr.Dataset | None = None, dimension: int | None = None
) -> Axes:
    """Limit of q with the band of two standard deviations at finite N, and the same of an ensemble as bars.

    Parameters
    ----------
    prediction : xarray.Dataset
        From `meanfield.solve_order_parameters`, with `q_covariance`.
    ensemble : xarray.Dataset, optional
        From `meanfield.simulate_sgd` with `particles.record = 'statistics'`.
    dimension : int, optional
        N of the band; by default that of the ensemble, or else `particles.dimension` of the prediction's problem.
    """
    source = prediction if ensemble is None else ensemble
    N = dimension or Result.of(source).label("dimension")
    for k in range(prediction.sizes["feature"]):
        style = curve_style(k)
        q = prediction["q"].isel(feature=k)
        spread = _half_width(prediction, k, N)
        label = rf"{feature_label(prediction, 'q', k)}: limit $\pm$ 2 deviations" + "\n" + f"at $N = {N}$"
        axes.plot(q["time"], q, label=label, **style)
        axes.fill_between(q["time"], q - spread, q + spread, color=style["color"], alpha=0.25, lw=0)
        if ensemble is not None:
            _plot_bars(ensemble, axes, k, "" if k else r"SGD $\pm$ 2 deviations")
    axes.set(xlabel=TIME, ylabel=OVERLAP)
    return axes


def _half_width(dataset: xr.Dataset, feature: int, dimension: float) -> xr.DataArray:
    """Half-width of a band: rounding may leave variances a little below 0."""
    variance = dataset["q_covariance"].isel(feature=feature, feature_=feature)
    return DEVIATIONS * (variance.clip(min=0.0) / dimension) ** 0.5


def _plot_bars(ensemble: xr.Dataset, axes: Axes, feature: int, label: str) -> None:
    shown = ensemble.isel(time=slice(None, None, max(1, -(-ensemble.sizes["time"] // 15))))  # more bars hide the band
    axes.errorbar(
        shown["time"],
        shown["q_mean"].isel(feature=feature),
        yerr=_half_width(shown, feature, Result.of(ensemble).label("dimension")),
        fmt=MARKERS[feature % len(MARKERS)],
        markersize=2.5,
        capsize=2,
        lw=1,
        color="0.2",
        label=label,
    )


@draws(density="norm|mass|q_error|P_error time")
def plot_errors(density: xr.Dataset, axes: Axes) -> Axes:
    """Deviations of E[w^2] and of the total probability from 1, and the estimated errors of q, M, r and P, where known.

    Parameters
    ----------
    density : xarray.Dataset
        From `meanfield.solve_density`; it holds estimates if it was solved to a tolerance.
    axes : Axes
        Its scale becomes logarithmic; errors that are mere rounding are left out.
    """
    conserved = {"norm": "$|E[w^2] - 1|$", "mass": "|probability $-$ 1|"}
    curves = {label: _largest(abs(density[name] - 1.0)) for name, label in conserved.items() if name in density}
    if "q_error" in density and "channel" not in density.dims:
        for k in range(density.sizes["feature"]):
            curves[f"estimate for {feature_label(density, 'q', k)}"] = density["q_error"].isel(feature=k)
    for name in ("q", "M", "r", "P") if "channel" in density.dims else ("r", "P"):
        if f"{name}_error" in density:
            error = density[f"{name}_error"]
            several = "largest " if error.ndim > 1 else ""
            curves[f"{several}estimate for ${name}$"] = _largest(error)
    for i, (label, values) in enumerate(curves.items()):
        # errors up to this size are rounding in sums over cells, and would add empty decades to the scale
        size = abs(values).where(abs(values) > 1e-14)
        if size.notnull().any():
            axes.plot(density["time"], size, label=label, **curve_style(i))
    axes.set(xlabel=TIME, ylabel="error", yscale="log")
    return axes


def _largest(error: xr.DataArray) -> xr.DataArray:
    """Largest error of all components at each time."""
    return error.max([dim for dim in error.dims if dim != "time"])
