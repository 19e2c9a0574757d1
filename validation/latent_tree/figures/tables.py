"""Printed tables against networks on many trees: means, standard errors, verdicts, figures and tables of the page."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import COLOURS, MARKERS
from validation.hidden_manifold.figures.discrepancy import written
from validation.latent_tree.figures.printed import COLUMNS, LOWS, NODES, printed
from validation.latent_tree.figures.runs import NUMBERS
from validation.latent_tree.figures.trees import READINGS
from validation.pages import markdown_table
from validation.study import Statement

ALLOWED = 3.0
"""Combined standard errors that a printed mean may be off. A mean of ten trials is, by chance, once in 70 looks."""


def theory() -> xr.Dataset:
    """Printed means and standard errors."""
    return printed()


def simulate() -> xr.Dataset:
    """Means of networks on many trees, and their standard errors; NaN for cases that were not run."""
    runs, wanted = xr.load_dataset(NUMBERS), printed()
    readings = list(dict.fromkeys(runs.reading.values.tolist()))
    shape = (len(readings), *wanted["mean"].shape)
    mean, error, last = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape[:1] + shape[2:4], np.nan)
    trees = np.zeros(last.shape, dtype=int)
    for case in range(runs.sizes["case"]):
        one = runs.isel(case=case)
        place = readings.index(one.reading.item()), LOWS.index(one.low.item()), NODES.index(one.nodes.item())
        score = one.score.dropna("epoch", how="all").dropna("tree", how="all")
        last[place], trees[place] = score.epoch[-1], score.sizes["tree"]
        for column, values in enumerate((one.initial_score.dropna("start"), score.sel(epoch=1), score.isel(epoch=-1))):
            over = "start" if column == 0 else "tree"
            where = (place[0], slice(None), place[1], place[2], column)
            mean[where] = values.mean(over)
            error[where] = values.std(over, ddof=1) / np.sqrt(values.sizes[over])
    over_ = ("reading", *wanted["mean"].dims)
    places = ("reading", "low", "nodes")
    return xr.Dataset(
        {
            "sgd_mean": (over_, mean),
            "sgd_error": (over_, error),
            "sgd_epochs": (places, last),
            "sgd_trees": (places, trees),
        },
        {"reading": readings, **wanted.coords},
    )


def away(numbers: xr.Dataset) -> xr.DataArray:
    """Difference from print, in combined standard errors."""
    return (numbers.sgd_mean - numbers["mean"]) / np.hypot(numbers.sgd_error, numbers["error"])


def agreement(numbers: xr.Dataset, reading: str, nodes: int, column: str) -> Statement:
    """Whether the printed means of a column are those of a reading."""
    some = numbers.sel(nodes=nodes, column=column)
    off = away(some).sel(reading=reading).stack(entry=("latent", "low")).dropna("entry")
    far = off[abs(off) > ALLOWED]
    wrong = [
        f"{name} at {low:g} ({value:+.1f})" for (name, low), value in zip(far.entry.values, far.values, strict=True)
    ]
    number = f"off by {float(abs(off).max()):.1f} standard errors at most, {float((off**2).mean() ** 0.5):.1f} in the "
    number += "root mean square" + (f"; not {', '.join(wrong)}" if wrong else "")
    text = f"{nodes} nodes, {column}: {off.size} printed means, {reading}"
    return Statement(text, "paper, table 6" if len(some.latent) > 1 else "paper, table 4", not wrong, number)


def judge(numbers: xr.Dataset, columns: tuple[str, ...]) -> list[Statement]:
    """All columns in the two readings."""
    return [agreement(numbers, reading, nodes, column) for nodes in NODES for column in columns for reading in READINGS]


def draw(numbers: xr.Dataset, columns: tuple[str, ...]) -> Figure:
    """Differences from print with three combined standard errors, by reading and number of nodes."""
    figure, grid = plt.subplots(2, 2, figsize=(9.0, 6.0), layout="constrained", sharex=True, sharey="col")
    for row, reading in zip(grid, READINGS, strict=True):
        for axes, nodes in zip(row, NODES, strict=True):
            axes.axhline(0.0, color="0.5", lw=0.8)
            for place, column in enumerate(columns):
                some = numbers.sel(nodes=nodes, column=column).stack(entry=("latent", "low"))
                ours = some.sel(reading=reading)
                style = {"color": COLOURS[place], "marker": MARKERS[place], "ls": "none", "ms": 5, "capsize": 2}
                error = ALLOWED * np.hypot(ours.sgd_error, some["error"])
                axes.errorbar(some["mean"], ours.sgd_mean - some["mean"], error, label=column, lw=0.8, **style)
            axes.set_title(f"{reading}, {nodes} nodes", fontsize=10)
        row[0].set_ylabel("here minus printed")
    for axes in grid[-1]:
        axes.set_xlabel("printed mean of the correlation")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(columns), frameon=False)
    return figure


def table_page(numbers: xr.Dataset) -> str:
    """Printed and measured means side by side, as Markdown."""
    used = [column for column in COLUMNS if column in numbers.column.values]
    header = ["latent", "polarities", "", *(f"{nodes} nodes, {column}" for nodes in NODES for column in used)]
    rows = []
    for latent in numbers.latent.values:
        for low in LOWS:
            one = numbers.sel(latent=latent, low=low)
            cells = _cells(one["mean"], one["error"], used)
            rows.append([latent, f"U[{low:g}, 1]", "printed", *cells])
            for reading in numbers.reading.values:
                ours = one.sel(reading=reading)
                cells = _cells(ours.sgd_mean, ours.sgd_error, used)
                if any(cells):
                    rows.append(["", "", reading, *cells])
    return markdown_table(header, rows)


def _cells(mean: xr.DataArray, error: xr.DataArray, columns: list[str]) -> list[str]:
    found = []
    for nodes in NODES:
        for column in columns:
            place = {"nodes": nodes, "column": column}
            value, off = float(mean.sel(place)), float(error.sel(place))
            found.append("" if np.isnan(value) else written(value, off))
    return found
