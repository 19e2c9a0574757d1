"""Charts of results: what a page draws at each time besides curves; a family says which its kinds of results have.

A chart is values in time, and where they lie: cells of a map, points along an axis, cells of a circle, nodes of a tree.
Charts of several results with one title share a figure, side by side or over each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import xarray as xr

from meanfield.plotting.order_parameters import mean_of
from meanfield.plotting.trajectories import all_entries
from meanfield.typing import FloatArray

MOST_CURVES = 6
"""Largest number of entries of a variable that are drawn of each result."""

MOST_CELLS = 256
"""Largest number of entries of a matrix that is drawn as a map."""

GROUPS = 16
"""Largest number of groups of coordinates of runs whose eigenvalues are alike."""

CHANCE = 1.96
"""Half-width of bands of 95 % in standard deviations."""


@dataclass(frozen=True)
class Chart:
    """Values of a result at each time, and where they lie.

    Parameters
    ----------
    kind : {"map", "profile", "ring", "tree"}
        A map has cells in rows and columns, between edges `x` and `y` if these are no numbers of entries; a profile has
        points at `x` of each of several `curves`; a ring has a density between angles `x`, or angles if it has none; a
        tree has nodes of latents, with the numbers of latents in `levels` from the root on.
    title : str
        Charts of one title are drawn together.
    values : DataArray, shape (times, ...)
        With the times as the coordinate of the first dim.
    places : mapping of str to Any
        What is the same at all times.
    half : ndarray, optional
        Half-widths of the intervals in which runs have 95 % of such values.
    label : str
        The part of a result that is shown, if that is not all.
    tab : str
        Of charts of one title, those of one tab are shown at once, and the page has a button for each tab.
    """

    kind: Literal["map", "profile", "ring", "tree"]
    title: str
    values: xr.DataArray
    places: Mapping[str, Any] = field(default_factory=dict)
    half: FloatArray | None = None
    label: str = ""
    tab: str = ""


def matrices(dataset: xr.Dataset, *names: str) -> Iterator[Chart]:
    """Maps of order parameters that are matrices, means over replicas; of one row, curves in time say as much.

    Parameters
    ----------
    dataset : xarray.Dataset
        In time: values, of replicas too, or means over them.
    *names : str
        Variables, of which those are drawn that are there.
    """
    for name in names:
        held = dataset.get(name, dataset.get(f"{name}_mean"))
        if held is None:
            continue
        row, column = (str(dim) for dim in held.dims if dim not in ("replica", "time"))
        if held.sizes[row] > 1 and held.sizes[row] * held.sizes[column] <= MOST_CELLS:
            values = xr.DataArray(mean_of(dataset, name), {"time": dataset["time"]}, ("time", row, column))
            yield Chart("map", f"matrix {name}", values, {"xlabel": column.rstrip("_"), "ylabel": row})


def profile(title: str, values: xr.DataArray) -> Iterator[Chart]:
    """Curves over eigenvalues, one for each entry; nothing where there is one eigenvalue.

    Parameters
    ----------
    title : str
    values : DataArray, shape (time, rho, ...)
        Order parameters where the eigenvalue is rho, with that as a coordinate.
    """
    if values.sizes["rho"] > 1:
        yield _profile(title, values)


def profile_of_runs(title: str, first: xr.DataArray, second: xr.DataArray, rho: xr.DataArray) -> Iterator[Chart]:
    """The same of runs: means of products over coordinates with eigenvalues that are alike.

    Parameters
    ----------
    title : str
    first, second : DataArray, shape (replica, snapshot_time, coordinate, vector)
        Weights along eigenvectors; of what does not change, such as features, without times. Vectors have dims of
        their own.
    rho : DataArray, shape (replica, coordinate)
        Eigenvalues of coordinates.
    """
    eigenvalues = rho.values.ravel()
    known = np.unique(eigenvalues)
    if len(known) < 2:
        return
    inner = 0.5 * (known[1:] + known[:-1])
    if len(known) > GROUPS:
        # groups are as narrow as they are drawn: means over wide ones would lie off a curve that bends
        inner = (np.geomspace if known[0] > 0.0 else np.linspace)(known[0], known[-1], GROUPS + 1)[1:-1]
    group = np.searchsorted(inner, eigenvalues)
    products = (first * second).stack(point=("replica", "coordinate")).transpose("snapshot_time", "point", ...)
    held = [(k, products.values[:, group == k]) for k in np.unique(group) if (group == k).sum() > 1]
    half = np.stack([CHANCE * each.std(axis=1, ddof=1) / each.shape[1] ** 0.5 for _, each in held], axis=1)
    places = {"snapshot_time": products["snapshot_time"], "rho": [eigenvalues[group == k].mean() for k, _ in held]}
    dims = ("snapshot_time", "rho", *products.dims[2:])
    yield _profile(title, xr.DataArray(np.stack([each.mean(axis=1) for _, each in held], axis=1), places, dims), half)


def _profile(title: str, values: xr.DataArray, half: FloatArray | None = None) -> Chart:
    time = str(values.dims[0])
    entries = all_entries(values, time, "rho")[:MOST_CURVES]

    def curves(of: xr.DataArray) -> xr.DataArray:
        return xr.concat([of.isel(place, drop=True) for _, place in entries], "curve").transpose(time, "curve", "rho")

    places = {
        "x": values["rho"].values,
        "xlabel": "eigenvalue",
        "curves": [index if len(entries) > 1 else "" for index, _ in entries],
    }
    return Chart(
        "profile", title, curves(values), places, None if half is None else curves(values.copy(data=half)).values
    )
