"""Curves of the entries of vectors and matrices that vary in time, with their indices as labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

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
