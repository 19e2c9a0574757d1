"""Scores chi+ and chi- of trained networks: comparisons over cells and seeds, and figures of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.plotting import COLOURS, LINES, MARKERS
from validation.alpha_contrastive.figures.runs import load_runs
from validation.hidden_manifold.figures.discrepancy import above, with_error
from validation.study import Statement

NAMES = {"relu": "ReLU", "linear": "linear", "leaky_relu": "leaky ReLU", "quadratic": "$x^2$", "sigmoid": "sigmoid"}
"""Activations as figures and statements name them."""

Curves = dict[str, xr.DataArray]
"""Scores along beta and P, by the names of curves."""


def sgd_runs(group: str) -> xr.Dataset:
    """Runs of a group as a study has them: what is measured on SGD has a name that begins with sgd."""
    runs = load_runs(group)
    return runs.rename({name: f"sgd_{name}" for name in runs.data_vars})


def nothing() -> xr.Dataset:
    """Empty prediction, where all numbers are of SGD."""
    return xr.Dataset()


def over_cells(values: xr.DataArray) -> xr.DataArray:
    """Numbers of cells of a grid and of seeds in a row, along which standard errors are taken."""
    return values.stack(start=list(values.dims)).reset_index("start", drop=True)


def better(text: str, source: str, gain: xr.DataArray, level: float = 0.0) -> Statement:
    """A claim that a gain, averaged over cells and seeds, is above a level; undecided within three standard errors."""
    each = over_cells(gain)
    number = f"by {with_error(each)} on average, in {int((each > level).sum())} of {each.size} pairs of runs"
    return Statement(text, source, above(each, level), number)


def listed(values: xr.DataArray, dim: str) -> str:
    """Means along a dim, with its labels."""
    means = values.mean([other for other in values.dims if other != dim])
    return ", ".join(
        f"{float(mean):.3f} at {dim} = {label:g}" for label, mean in zip(values[dim].values, means.values, strict=True)
    )


def seeds_of(numbers: xr.Dataset) -> str:
    """Number of seeds in words."""
    count = numbers.sizes["seed"]
    return f"{count} seed" + "s" * (count > 1)


def draw_scores(rows: Sequence[tuple[str, Curves]]) -> Figure:
    """Scores against beta: a column of panels for each P, a row for each label, a curve for each name."""
    first = next(iter(rows[0][1].values()))
    figure = Figure(figsize=(9.5, 0.6 + 2.25 * len(rows)), layout="constrained")
    panels = figure.subplots(len(rows), first.sizes["P"], sharex=True, sharey="row", squeeze=False)
    for row, (label, curves) in enumerate(rows):
        for axes, P in zip(panels[row], first["P"].values, strict=True):
            _draw_panel(axes, {name: values.sel(P=P) for name, values in curves.items()})
            if row == 0:
                axes.set_title(f"$P = {P}$")
            if row == len(rows) - 1:
                axes.set_xlabel(r"$\beta$")
        panels[row, 0].set_ylabel(label)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=6, fontsize="small")
    return figure


def _draw_panel(axes: Axes, curves: Curves) -> None:
    for k, (name, values) in enumerate(curves.items()):
        style: dict[str, Any] = {"color": COLOURS[k], "linestyle": LINES[k], "marker": MARKERS[k], "markersize": 4}
        places = np.arange(values.sizes["beta"])
        axes.errorbar(places, values.mean("seed"), values.std("seed"), label=name, **style)
        axes.set_xticks(places, [str(beta) for beta in values["beta"].values])
    axes.grid(alpha=0.3)
