"""Phase diagrams: a quantity over the two axes of a sweep, and the lines at which states appear and lose stability."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from meanfield.errors import InputError
from meanfield.plotting.arguments import draws
from meanfield.plotting.style import COLOURS, key_words
from meanfield.results.result import family_of_result
from meanfield.typing import FloatArray

LEARNT = 1e-6
"""Largest similarity that counts as 0."""

REGIONS = ("nothing is learnt", "learnt from a hint", "learnt from nothing")
"""Names of the regions of a phase diagram: none, one or both of the least and the largest similarity differ from 0."""


@draws(sweep="status")
def plot_phase_diagram(sweep: xr.Dataset, axes: Axes, variable: str = "similarity") -> Axes:
    """A variable in colours over the two axes of a sweep, the first one to the right.

    Where the sweep keeps similarities, lines separate three regions: there is no state but q = 0; there are others
    beside it, which a start with enough information reaches; q = 0 is unstable. Points without a number are grey.

    Parameters
    ----------
    sweep : xarray.Dataset
        From `meanfield.run_sweep`, over two axes.
    variable : str
        What to show; it must have no dims but those of the axes. Where the sweep has several methods, and one of them
        keeps it, the name of that method may be left out.

    Raises
    ------
    InputError
        If there is no such variable, or it is no number over two axes.
    """
    dims, variable = sweep["status"].dims, named_in(sweep, variable)
    if variable not in sweep or sweep[variable].dims != dims or len(dims) != 2 or sweep[variable].dtype.kind != "f":
        fitting = [str(name) for name, v in sweep.data_vars.items() if v.dims == dims and v.dtype.kind == "f"]
        raise InputError(f"'{variable}' is no number over two axes; the sweep has {', '.join(fitting) or 'none'}")
    x, y = (_positions(sweep[dim]) for dim in dims)
    edges = [_edges(sweep[dim], at) for dim, at in zip(dims, (x, y), strict=True)]
    low, high = (0.0, 1.0) if variable.endswith("similarity") else (None, None)
    axes.set_facecolor("0.8")
    values = np.ma.masked_invalid(sweep[variable].values.T)
    mesh = axes.pcolormesh(*edges, values, cmap="cividis", rasterized=True, vmin=low, vmax=high)
    bar = axes.figure.colorbar(mesh, ax=axes, label=_wrapped(sweep[variable].attrs["long_name"]))
    if np.all(values == np.round(values)):
        bar.locator = MaxNLocator(integer=True)
    for prefix in ("", *_prefixes(sweep)):
        if variable.startswith(prefix) and {f"{prefix}similarity", f"{prefix}least_similarity"} <= set(sweep.data_vars):
            _draw_regions(sweep, prefix, x, y, axes)
    _label(sweep, dims[0], axes.xaxis)
    _label(sweep, dims[1], axes.yaxis)
    axes.set(xlim=edges[0][[0, -1]], ylim=edges[1][[0, -1]])
    return axes


@draws(sweep="status {variable}")
def plot_along(sweep: xr.Dataset, axes: Axes, variable: str) -> Axes:
    """A variable against the single axis of a sweep, with a dot for each point that has a number.

    Parameters
    ----------
    sweep : xarray.Dataset
        From `meanfield.run_sweep`, over one axis, or with all others selected.
    variable : str
        What to show; it must have no dims but that of the axis.
    """
    dim = sweep["status"].dims[0]
    along = sweep[dim]
    axes.plot(_positions(along), sweep[variable], "o-", color=COLOURS[0], markersize=4)
    _label(sweep, dim, axes.xaxis)
    axes.set_ylabel(_wrapped(sweep[variable].attrs["long_name"]))
    return axes


def named_in(sweep: xr.Dataset, variable: str) -> str:
    """Name of a variable in a sweep: with that of its method before it where there are several, and one has it."""
    found = [prefix + variable for prefix in _prefixes(sweep) if prefix + variable in sweep]
    return found[0] if variable not in sweep and len(found) == 1 else variable


def _prefixes(sweep: xr.Dataset) -> list[str]:
    """Prefixes that names of variables may have where a sweep has several methods."""
    return [f"{method}_" for method in family_of_result(sweep).methods]


def region_of(sweep: xr.Dataset, prefix: str = "") -> xr.DataArray:
    """Index in `REGIONS` of the region of each point: 0, 1 or 2, NaN where no state is known.

    Parameters
    ----------
    sweep : xarray.Dataset
        That keeps `similarity` and `least_similarity`.
    prefix : str
        What their names begin with.
    """
    best, least = sweep[f"{prefix}similarity"], sweep[f"{prefix}least_similarity"]
    return ((best > LEARNT).astype(float) + (least > LEARNT)).where(best.notnull())


def _draw_regions(sweep: xr.Dataset, prefix: str, x: FloatArray, y: FloatArray, axes: Axes) -> None:
    """Lines between the regions, and their names."""
    region = region_of(sweep, prefix).values.T
    lines = [(region - 0.5, "--"), (region - 1.5, "-")]
    if f"{prefix}uninformed_rate" in sweep:  # which is smooth, so that its zero lies between points
        lines[1] = sweep[f"{prefix}uninformed_rate"].max("mode").values.T, "-"
    for values, style in lines:
        if min(values.shape) > 1 and np.nanmin(values) < 0 < np.nanmax(values):
            shown = np.ma.masked_invalid(values)
            line = axes.contour(x, y, shown, levels=[0.0], colors="white", linewidths=1.8, linestyles=style)
            line.set(path_effects=[withStroke(linewidth=3.5, foreground="black")])  # to be seen on bright colours
    for number, name in enumerate(REGIONS):
        rows, columns = np.nonzero(region == number)
        if len(rows) > 0.02 * region.size:  # a smaller region has no room for a label
            middle = np.argmin((rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2)
            box = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "boxstyle": "round,pad=0.2"}
            place: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "small", "bbox": box}
            axes.text(x[columns[middle]], y[rows[middle]], name, **place)


def _positions(coordinate: xr.DataArray) -> FloatArray:
    """Positions of points along an axis; words are put one after the other."""
    return (
        coordinate.values.astype(float) if coordinate.dtype.kind in "iuf" else np.arange(coordinate.size, dtype=float)
    )


def _edges(coordinate: xr.DataArray, at: FloatArray) -> FloatArray:
    """Edges of cells around the points, which are half way between them, shape (n + 1,)."""
    x = np.log(at) if coordinate.attrs["scale"] == "log" else at
    if len(x) == 1:
        return at + np.array([-0.5, 0.5]) * (abs(at[0]) or 1.0)
    middle = 0.5 * (x[1:] + x[:-1])
    edges = np.concatenate([[2 * x[0] - middle[0]], middle, [2 * x[-1] - middle[-1]]])
    return np.exp(edges) if coordinate.attrs["scale"] == "log" else edges


def _wrapped(text: str) -> str:
    """Text in lines that are not longer than a panel is high."""
    # letters in a line of the name of a variable, which may be a sentence
    return textwrap.fill(text, 36, break_long_words=False)


def _label(sweep: xr.Dataset, dim: Hashable, axis: Any) -> None:
    coordinate = sweep[dim]
    words = key_words(sweep, coordinate.attrs["key"])
    axis.set_label_text(words if axis.axis_name == "x" else _wrapped(words))
    if coordinate.dtype.kind not in "iuf":
        axis.set_ticks(range(coordinate.size), coordinate.values)
    elif coordinate.attrs["scale"] == "log":
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
