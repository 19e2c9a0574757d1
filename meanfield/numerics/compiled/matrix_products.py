"""Products of one matrix with many vectors, in which every number is the same however the vectors are cut into calls.

A matrix that does not fit into the caches takes as long to read for one vector as for many: a product with some hundred
vectors at once runs at the speed of the arithmetic. A library's product rounds an entry differently at different places
of its blocks and with different numbers of threads; here each entry is one sum in the order of the rows.
"""

from __future__ import annotations

import numpy as np

from meanfield.numerics.compiled.vectors import WIDE_LANES, load, spread, store
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

VECTORS_PER_TILE = 6
"""Number of vectors in a tile: 6 sums of `WIDE_LANES` lanes are in flight, enough to hide the latency of additions, and
few enough for the registers of AVX2 (8 would gain 3 % with AVX-512)."""

AT_ONCE = 128
"""Number of rows whose products are added up before they are added to others: errors of long sums stay small."""

HALF_A_DIGIT = 2.0**-24
"""Largest relative error of rounding to float32."""


def pack(matrix: FloatArray) -> FloatArray:
    """Panels of `WIDE_LANES` columns of a matrix, filled up with zeros, shape (panels, rows, WIDE_LANES)."""
    rows, columns = matrix.shape
    panels = np.zeros((-(-columns // WIDE_LANES), rows, WIDE_LANES))
    for p in range(len(panels)):
        part = matrix[:, p * WIDE_LANES : (p + 1) * WIDE_LANES]
        panels[p, :, : part.shape[1]] = part
    return panels


def unpack(panels: FloatArray, columns: int) -> FloatArray:
    """Matrix of shape (rows, columns) from its panels."""
    return np.ascontiguousarray(panels.transpose(1, 0, 2).reshape(panels.shape[1], -1)[:, :columns])


def tiles_for(vectors: int, rows: int) -> FloatArray:
    """Tiles of `VECTORS_PER_TILE` vectors, filled with zeros, shape (tiles, rows, VECTORS_PER_TILE)."""
    return np.zeros((-(-vectors // VECTORS_PER_TILE), rows, VECTORS_PER_TILE))


def relative_error(rows: int) -> float:
    """Largest error of a product in float32, in units of the lengths of column and vector; both are rounded before.

    It is that of sums of `AT_ONCE` products and of the sums of these.
    """
    depth = min(AT_ONCE, rows) + -(-rows // AT_ONCE) + 3
    return depth * HALF_A_DIGIT / (1.0 - depth * HALF_A_DIGIT)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def multiply(panels, tiles, vectors, out):  # type: ignore[no-untyped-def]
    """Write the products of the transposed matrix with vectors to `out`.

    Parameters
    ----------
    panels : ndarray, shape (panels, rows, WIDE_LANES)
        From `pack`; all arrays are of float64, or all of float32.
    tiles : ndarray, shape (tiles, rows, VECTORS_PER_TILE)
        Vector i is `tiles[i // VECTORS_PER_TILE, :, i % VECTORS_PER_TILE]`.
    vectors : int
        Number of vectors; products with what else is in the last tile are written, too.
    out : ndarray, shape (at least vectors, rounded up to whole tiles, WIDE_LANES panels)
    """
    rows = panels.shape[1]
    for p in range(panels.shape[0]):  # one panel stays in the caches while all vectors go by
        for t in range((vectors + VECTORS_PER_TILE - 1) // VECTORS_PER_TILE):
            for first in range(0, rows, AT_ONCE):
                _multiply_tile(panels, p, tiles[t], t, first, min(first + AT_ONCE, rows), out)


@without_reference_counts()
def _multiply_tile(panels, p, tile, t, first, end, out):  # type: ignore[no-untyped-def]
    """Add the products of some rows of one panel and one tile to those of the rows before; `load` takes flat places."""
    a = b = c = d = e = f = spread(panels.dtype.type(0.0), WIDE_LANES)
    panel = p * panels.shape[1] * WIDE_LANES
    for r in range(first, end):
        columns = load(panels, np.uint64(panel + r * WIDE_LANES), WIDE_LANES)
        a = a + columns * tile[r, 0]
        b = b + columns * tile[r, 1]
        c = c + columns * tile[r, 2]
        d = d + columns * tile[r, 3]
        e = e + columns * tile[r, 4]
        f = f + columns * tile[r, 5]
    for i, sums in enumerate((a, b, c, d, e, f)):
        place = np.uint64((t * VECTORS_PER_TILE + i) * out.shape[1] + p * WIDE_LANES)
        store(out, place, load(out, place, WIDE_LANES) + sums if first > 0 else sums)
