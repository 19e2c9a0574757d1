"""Printed tables against networks on the same trees: means, standard errors, verdicts, figures, tables of the page."""

from __future__ import annotations

from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import t as student

from meanfield.plotting import COLOURS, MARKERS
from validation.hidden_manifold.figures.discrepancy import written
from validation.latent_tree.figures.printed import COLUMNS, LOWS, NODES, ROUNDING_ERROR, TRIALS, printed
from validation.latent_tree.figures.runs import NUMBERS
from validation.latent_tree.figures.trees import CROSSED, READINGS
from validation.pages import markdown_table
from validation.study import Statement

MOST_SIGMAS = 3.0
"""Combined standard errors that a printed mean may be off."""

EPOCHS = dict(zip(COLUMNS, (0, 1, 50), strict=True))
"""Epochs of the printed columns."""


class Way(NamedTuple):
    """Networks that print is held against.

    Parameters
    ----------
    reading : str
        A key of READINGS.
    arithmetic : str
        That of the scores.
    repeats : bool
        Whether print is one more run of the same trials, which differs by its samples alone.
    """

    reading: str
    arithmetic: str
    repeats: bool


WAYS = {
    "as printed": Way("as printed", "exact", False),
    "public code": Way("public code", "exact", False),
    "public code, single precision": Way("public code", "single precision", True),
}


def scores(reading: str, arithmetic: str) -> xr.DataArray:
    """Scores of a reading by CROSSED: dims low, nodes, repeat, trial, epoch and latent; NaN where there was no run."""
    runs = xr.load_dataset(NUMBERS)
    return (
        runs.score.isel(case=runs.name == reading)
        .sel(arithmetic=arithmetic)
        .set_index(case=("low", "nodes", "repeat"))
        .unstack("case")
    )


def theory() -> xr.Dataset:
    """Printed means and standard errors."""
    return printed()


def simulate() -> xr.Dataset:
    """Scores of the ten trials in the three ways, their means and standard errors, and those to compare with print."""
    wanted, parts = printed(), []
    for way in WAYS.values():
        found = scores(CROSSED[READINGS[way.reading]], way.arithmetic).sel(epoch=list(EPOCHS.values()))
        found = found.rename(epoch="column").assign_coords(column=list(EPOCHS))
        each, runs = found.mean("repeat"), found.count("repeat")
        error = each.std("trial", ddof=1) / np.sqrt(TRIALS)
        between = (found.var("repeat", ddof=1) * (1.0 + 1.0 / runs)).mean("trial") / TRIALS
        combined = np.hypot(error, wanted["error"])
        if way.repeats:
            combined = xr.where(runs.min("trial") > 1, np.hypot(np.sqrt(between), ROUNDING_ERROR), combined)
        parts.append(
            xr.Dataset(
                {"sgd_score": each, "sgd_mean": each.mean("trial"), "sgd_error": error, "sgd_combined": combined}
            )
        )
    joined = xr.concat(parts, "reading").assign_coords(reading=list(WAYS)).drop_vars("arithmetic", errors="ignore")
    return joined.transpose("reading", *wanted["mean"].dims, ...).sel(wanted.coords)


def away(numbers: xr.Dataset) -> xr.DataArray:
    """Difference from print, in combined standard errors."""
    return (numbers.sgd_mean - numbers["mean"]) / numbers.sgd_combined


def agreement(numbers: xr.Dataset, reading: str, nodes: int, column: str) -> Statement:
    """Whether the printed means of a column are those of a reading."""
    some = numbers.sel(nodes=nodes, column=column)
    off = away(some).sel(reading=reading).stack(entry=("latent", "low")).dropna("entry")
    far = off[abs(off) > MOST_SIGMAS]
    wrong = [
        f"{name} at {low:g} ({value:+.1f})" for (name, low), value in zip(far.entry.values, far.values, strict=True)
    ]
    number = f"off by {float(abs(off).max()):.1f} standard errors at most, {float((off**2).mean() ** 0.5):.1f} in the "
    number += "root mean square" + (f"; not {', '.join(wrong)}" if wrong else "")
    text = f"{nodes} nodes, {column}: {off.size} printed means, {reading}"
    return Statement(text, source(numbers), not wrong, number)


def source(numbers: xr.Dataset) -> str:
    """Table that the numbers are of."""
    return "paper, table 6" if len(numbers.latent) > 1 else "paper, table 4"


def largest(numbers: xr.Dataset, reading: str) -> Statement:
    """Whether the largest of all deviations is one to expect from so many."""
    off = abs(away(numbers).sel(reading=reading).values.ravel())
    off = off[np.isfinite(off)]
    one = 2.0 * float(student.sf(off.max(), TRIALS - 1))
    chance = -np.expm1(off.size * np.log1p(-one))
    above = int((off > MOST_SIGMAS).sum())
    expected = off.size * 2.0 * float(student.sf(MOST_SIGMAS, TRIALS - 1))
    return Statement(
        f"the largest of all {off.size} deviations is one to expect if all agree, {reading}",
        source(numbers),
        chance > 0.01,
        f"{above} are above {MOST_SIGMAS:g} standard errors; by Student's law with {TRIALS - 1} degrees of freedom "
        f"{expected:.1f} are expected, and the largest, {off.max():.1f}, is reached with a chance of {chance:.2g} by "
        "independent ones",
    )


def judge(numbers: xr.Dataset, columns: tuple[str, ...]) -> list[Statement]:
    """All columns in all ways, and the largest deviation of each."""
    found = [agreement(numbers, reading, nodes, column) for nodes in NODES for column in columns for reading in WAYS]
    return found + [largest(numbers, reading) for reading in WAYS]


def draw(numbers: xr.Dataset, columns: tuple[str, ...]) -> Figure:
    """Differences from print with three combined standard errors, by reading and number of nodes."""
    figure, grid = plt.subplots(len(WAYS), 2, figsize=(9.0, 8.0), layout="constrained", sharex=True, sharey="col")
    for row, reading in zip(grid, WAYS, strict=True):
        for axes, nodes in zip(row, NODES, strict=True):
            axes.axhline(0.0, color="0.5", lw=0.8)
            for place, column in enumerate(columns):
                some = numbers.sel(nodes=nodes, column=column, reading=reading).stack(entry=("latent", "low"))
                style = {"color": COLOURS[place], "marker": MARKERS[place], "ls": "none", "ms": 5, "capsize": 2}
                difference = some.sgd_mean - some["mean"]
                axes.errorbar(some["mean"], difference, MOST_SIGMAS * some.sgd_combined, label=column, lw=0.8, **style)
            axes.set_title(f"{reading}, {nodes} nodes", fontsize=10)
        row[0].set_ylabel("here minus printed")
    for axes in grid[-1]:
        axes.set_xlabel("printed mean of the correlation")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(columns), frameon=False)
    return figure


def table_page(numbers: xr.Dataset) -> str:
    """Printed and measured means side by side, and where they disagree, as Markdown."""
    used = [column for column in COLUMNS if column in numbers.column.values]
    header = ["latent", "polarities", "", *(f"{nodes} nodes, {column}" for nodes in NODES for column in used), "off"]
    rows, off = [], away(numbers)
    for latent in numbers.latent.values:
        for low in LOWS:
            one = numbers.sel(latent=latent, low=low)
            rows.append([latent, f"U[{low:g}, 1]", "printed", *_cells(one["mean"], one["error"], used), ""])
            for reading in numbers.reading.values:
                ours = one.sel(reading=reading)
                far = off.sel(latent=latent, low=low, reading=reading)
                rows.append(["", "", reading, *_cells(ours.sgd_mean, ours.sgd_error, used), _far(far, used)])
    return markdown_table(header, rows)


def _cells(mean: xr.DataArray, error: xr.DataArray, columns: list[str]) -> list[str]:
    places = [{"nodes": nodes, "column": column} for nodes in NODES for column in columns]
    return [written(float(mean.sel(place)), float(error.sel(place))) for place in places]


def _far(off: xr.DataArray, columns: list[str]) -> str:
    """Columns that disagree, with their deviations in combined standard errors."""
    values = {(nodes, column): float(off.sel(nodes=nodes, column=column)) for nodes in NODES for column in columns}
    return ", ".join(
        f"{nodes} nodes, {column} ({value:+.1f})"
        for (nodes, column), value in values.items()
        if abs(value) > MOST_SIGMAS
    )
