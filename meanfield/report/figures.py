"""Figures of results as data that an HTML page holds itself."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import (
    plot_branches,
    plot_comparison,
    plot_dynamics,
    plot_overlap,
    plot_phase_diagram,
    plot_portrait,
)
from meanfield.plotting.style import COLOURS, LINES

PAGE_BYTES = 2_400_000
"""Of all figures of a page together."""

LARGEST = 300_000
"""Bytes of one figure."""

RESOLUTIONS = (144, 100, 72, 50, 36)
"""Dots per inch of a bitmap, from which the first that is small enough is taken."""

MOST_STATES, VISIBLE = 9, 5.0
"""Stationary states that are drawn, and the largest |w|."""

STYLE: Any = {"font.size": 10.5, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "meanfield"}


@dataclass(frozen=True)
class Picture:
    """A figure on a page.

    Parameters
    ----------
    source : str
        A data URI.
    description : str
        What it shows, for those who do not see it.
    """

    source: str
    description: str


def pictures_of(dataset: xr.Dataset, share: int = 1) -> list[Picture]:
    """The figures of one result.

    Parameters
    ----------
    dataset : xarray.Dataset
    share : int
        Number of results that share the page.
    """
    # A title is not ours, and what matplotlib takes for mathematics would be an error; the page shows it.
    untitled = dataset.assign_attrs(title="")
    found = []
    with mpl.rc_context(STYLE):
        for make, description in ((_overview, "what the result holds"), (_conservation, "what should be constant")):
            figure = make(untitled)
            if figure is not None:
                found.append(Picture(_data(figure, share), f"{dataset.attrs['method']}: {description}"))
    return found


def picture_together(datasets: Mapping[str, xr.Dataset], share: int) -> Picture:
    """Results of one problem in one figure."""
    shown = {label.replace("$", r"\$"): dataset.assign_attrs(title="") for label, dataset in datasets.items()}
    with mpl.rc_context(STYLE):
        return Picture(_data(_in_time(shown), share), "all results of this problem together")


def _data(figure: Figure, share: int) -> str:
    """A vector figure where it is small, else a bitmap."""
    limit = min(LARGEST, PAGE_BYTES // max(2 * share + 1, 1))
    vector = _rendered(figure, "svg")
    if len(vector) <= limit:
        return "data:image/svg+xml;base64," + base64.b64encode(vector).decode()
    figure.set_layout_engine("none")  # it has been laid out
    for resolution in RESOLUTIONS:
        bitmap = _rendered(figure, "png", resolution)
        if len(bitmap) <= limit:
            break
    return "data:image/png;base64," + base64.b64encode(bitmap).decode()


def _rendered(figure: Figure, kind: str, resolution: int = 100) -> bytes:
    buffer = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {}
    figure.savefig(buffer, format=kind, dpi=resolution, metadata=metadata)
    return buffer.getvalue()


def _overview(dataset: xr.Dataset) -> Figure | None:
    """The figure of the method."""
    method = dataset.attrs["method"]
    if method in ("density", "order_parameters", "particles", "ensemble"):
        return _in_time({method.replace("_", " "): dataset})
    if method in ("continuation", "fixed_point_branches"):
        return plot_branches(dataset) if dataset.sizes["point"] else None
    if method == "dynamics":
        return plot_dynamics(dataset) if dataset.sizes["state"] else None
    if method == "portrait":
        figure = Figure(figsize=(8, 7), layout="constrained")
        plot_portrait(dataset, figure.subplots())
        return figure
    if method == "sweep" and "similarity" in dataset and dataset["status"].ndim == 2:
        figure = Figure(figsize=(8, 6), layout="constrained")
        plot_phase_diagram(dataset, figure.subplots())
        return figure
    return _states(dataset) if method == "stationary" and dataset.sizes["state"] else None


def _in_time(results: Mapping[str, xr.Dataset]) -> Figure:
    """Results side by side; without the panel of r where none has one."""
    if any("r" in dataset for dataset in results.values()):
        return plot_comparison(results)
    figure = Figure(figsize=(10, 4), layout="constrained")
    axes = figure.subplots()
    for (label, dataset), colour, line in zip(results.items(), cycle(COLOURS), cycle(LINES), strict=False):
        plot_overlap(dataset, axes, label, colour, line)
    axes.legend(frameon=False)
    return figure


def _states(dataset: xr.Dataset) -> Figure:
    """The density of the weights in each stationary state, stable ones solid."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    axes = figure.subplots()
    marginals = np.einsum("n,snw->sw", dataset["u_weight"].values, dataset["P"].values)
    for i, (P, colour) in enumerate(zip(marginals[:MOST_STATES], cycle(COLOURS), strict=False)):
        overlap = ", ".join(f"{value + 0.0:.3f}" for value in np.round(dataset["q"].values[i], 6))
        line = "-" if int(dataset["stability"][i]) > 0 else "--"
        axes.plot(dataset["w"], P, line, color=colour, label=f"q = {overlap}")
    axes.set(xlabel="weight $w$", ylabel="density", xlim=(-VISIBLE, VISIBLE))
    axes.legend(frameon=False)
    return figure


def _conservation(dataset: xr.Dataset) -> Figure | None:
    """Deviations of mass and norm in time, on a logarithmic scale."""
    if "norm" not in dataset or not np.isfinite(dataset["norm"].values).any():
        return None
    figure = Figure(figsize=(10, 2.8), layout="constrained")
    axes = figure.subplots()
    for name, label, colour in (("mass", "|mass - 1|", COLOURS[0]), ("norm", "|E[w²] - 1|", COLOURS[1])):
        deviation = np.maximum(np.abs(dataset[name].values - 1.0), np.finfo(float).eps)
        axes.semilogy(dataset["time"], deviation, color=colour, label=label)
    axes.set(xlabel="time $t$", ylabel="deviation")
    axes.legend(frameon=False)
    return figure
