"""Figures of results as data that an HTML page embeds."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from meanfield.errors import InputError
from meanfield.plotting import plot_comparison, plot_result
from meanfield.plotting.legends import place_legend
from meanfield.plotting.style import ANY_TIME, curve_style
from meanfield.results.figure_files import laid_out
from meanfield.results.result import Result

RESOLUTIONS = (144, 100, 72, 50, 36)
"""Resolutions of a bitmap in dots per inch, of which the first that is small enough is taken."""

STYLE: Any = {"font.size": 10.5, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "meanfield"}


@dataclass(frozen=True)
class Picture:
    """Figure on a page.

    Parameters
    ----------
    source : str
        A data URI.
    description : str
        Text that stands for the figure, for people who do not see it.
    """

    source: str
    description: str


def pictures_of(result: Result, share: int = 1) -> list[Picture]:
    """Pictures of one result.

    Parameters
    ----------
    share : int
        Number of results that share the page.
    """
    # A title is not ours, and what matplotlib takes for mathematics would be an error; the page shows it.
    untitled = result.part(result.dataset.assign_attrs(title=""))
    found = []
    with mpl.rc_context(STYLE):
        for make, description in ((_overview, "what the result holds"), (_conservation, "what should be constant")):
            figure = make(untitled)
            if figure is not None:
                found.append(Picture(_data(figure, share), f"{result.method}: {description}"))
    return found


def picture_together(results: Mapping[str, Result], share: int) -> Picture:
    """Picture of all results of one problem in one figure."""
    shown = {label.replace("$", r"\$"): result.dataset.assign_attrs(title="") for label, result in results.items()}
    with mpl.rc_context(STYLE):
        return Picture(_data(plot_comparison(shown), share), "all results of this problem together")


def _data(figure: Figure, share: int) -> str:
    """Data of a figure: a vector graphic if it is small, else a bitmap."""
    # bytes of one figure, and its share of the bytes of all figures of a page
    limit = min(300_000, 2_400_000 // max(2 * share + 1, 1))
    with laid_out(figure, "svg", RESOLUTIONS[0]):
        vector = _rendered(figure, "svg")
        if len(vector) <= limit:
            return "data:image/svg+xml;base64," + base64.b64encode(vector).decode()
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


def _overview(result: Result) -> Figure | None:
    """Figure of the method, as far as the run came; none of one that ended where it began."""
    dataset = result.dataset
    if "time" in dataset.dims and result.status != "complete":
        dataset = dataset.isel(time=slice(_reached(result)))
        if dataset.sizes["time"] < 2:
            return None
    if 0 in dataset.sizes.values():
        return None
    try:
        return plot_result(dataset)
    except InputError:  # sweeps over many axes
        return None


def _reached(result: Result) -> int:
    """Number of output times that the run has reached."""
    dataset = result.dataset
    name = next(word for name in result.family.compared for word in (f"{name}_mean", name) if word in dataset)
    values = dataset[name].transpose("time", ...).values
    return int(np.isfinite(values.reshape(len(values), -1)).any(axis=1).sum())


def _conservation(result: Result) -> Figure | None:
    """Figure of the deviations of mass and norm in time, on a logarithmic scale."""
    dataset = result.dataset
    if "norm" not in dataset or not np.isfinite(dataset["norm"].values).any():
        return None
    figure = Figure(figsize=(10, 2.8), layout="constrained")
    axes = figure.subplots()
    for number, (name, label) in enumerate((("mass", "|probability $-$ 1|"), ("norm", "$|E[w^2] - 1|$"))):
        deviation = np.maximum(np.abs(dataset[name].values - 1.0), np.finfo(float).eps)
        axes.semilogy(dataset["time"], deviation, label=label, **curve_style(number))
    axes.set(xlabel=ANY_TIME, ylabel="deviation")
    place_legend(axes)
    return figure
