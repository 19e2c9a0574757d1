"""Curves of the entries of vectors and matrices that vary in time, with their indices as labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from meanfield.results.numbers import index_text

MOST_ENTRIES = 12
"""Largest number of entries that are drawn in a panel."""


def entries_of(values: xr.DataArray, *along: str) -> Iterator[tuple[str, xr.DataArray]]:
    """Indices, counted from 1, and curves of the first entries; see `entries`."""
    for index, place in entries(values, *along):
        yield index, values.isel(place)


def entries(values: xr.DataArray, *along: str) -> Iterator[tuple[str, dict[str, int]]]:
    """Indices, counted from 1, and places of the first entries; of a symmetric matrix those on and above its diagonal.

    Parameters
    ----------
    values : xarray.DataArray
        Its dims besides `along` are those of the entries; a matrix is symmetric if one has the other's name and "_".
    *along : str
        Dims that curves keep; time and replicas, if nothing is said.
    """
    along = along or ("time", "replica")
    dims = [str(dim) for dim in values.dims if dim not in along]
    symmetric = len(dims) == 2 and dims[1] == f"{dims[0]}_"
    places = [p for p in np.ndindex(*(values.sizes[dim] for dim in dims)) if not symmetric or p[0] <= p[1]]
    for place in places[:MOST_ENTRIES]:
        yield index_text(place, (values.sizes[dim] for dim in dims)), dict(zip(dims, place, strict=True))
