"""Products F^T C of which the sign alone matters, at twice the speed, with the signs that double precision gives.

All are computed in float32, and those again in float64 that are smaller than the largest error they may have: one of
some thousand.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from meanfield.ensembles.arrays import Array
from meanfield.ingredients.nonlinearities import NONLINEARITIES, Nonlinearity
from meanfield.numerics.compiled.matrix_products import TOGETHER, multiply, relative_error
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.vectors import WIDE
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.typing import FloatArray


class Signs(NamedTuple):
    """What the signs of products with a matrix take, for compiled code.

    Parameters
    ----------
    panels : ndarray of float32
        The packed matrix; no panels if products themselves are needed.
    error : ndarray
        Largest error of a product with each column, in units of the length of the vector.
    tiles, products : ndarray of float32
        Working arrays.
    """

    panels: Array
    error: FloatArray
    tiles: Array
    products: Array


def depends_on_sign(f: Nonlinearity) -> bool:
    """Whether a function depends on the sign of its argument alone."""
    return f in (NONLINEARITIES["sign"], NONLINEARITIES["step"])


def signs_for(f: Nonlinearity, panels: FloatArray, tiles: FloatArray, products: FloatArray) -> Signs:
    """For inputs f(products) of packed matrix and vectors, with working arrays as large as those of float64."""
    panels = panels if depends_on_sign(f) else panels[:0]
    lengths = np.sqrt(np.einsum("prl,prl->pl", panels, panels)).ravel()
    single = np.empty_like(products if len(panels) else products[:0], np.float32)
    return Signs(
        panels.astype(np.float32),
        lengths * relative_error(panels.shape[1]),
        np.zeros_like(tiles if len(panels) else tiles[:0], np.float32),
        single,
    )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def multiply_for_signs(signs, panels, tiles, vectors, out):  # type: ignore[no-untyped-def]
    """Write numbers with the signs of products to `out`; other arguments as those of `multiply`."""
    for t in range((vectors + TOGETHER - 1) // TOGETHER):
        for r in range(tiles.shape[1]):
            for k in range(TOGETHER):
                signs.tiles[t, r, k] = tiles[t, r, k]
    call(multiply, signs.panels, signs.tiles, vectors, signs.products)
    squares = np.empty(TOGETHER)
    for i in range(vectors):
        tile, place = tiles[i // TOGETHER], i % TOGETHER
        if place == 0:
            _square_lengths(tile, squares)
        _take_signs(signs.products[i], signs.error, math.sqrt(squares[place]), panels, tile, place, out[i])


@without_reference_counts()
def _square_lengths(tile, squares):  # type: ignore[no-untyped-def]
    """Write the squares of the lengths of all vectors of a tile."""
    for k in range(TOGETHER):
        squares[k] = 0.0
    for r in range(tile.shape[0]):
        for k in range(TOGETHER):
            squares[k] += tile[r, k] * tile[r, k]


@without_reference_counts()
def _take_signs(products, error, length, panels, tile, place, out):  # type: ignore[no-untyped-def]
    """Write numbers with the signs of the products with one vector; those of the columns that fill up panels are 0."""
    unsure = 0
    for j in range(out.size):  # a loop without branches vectorises
        out[j] = products[j]
        unsure += abs(products[j]) < length * error[j]
    if unsure == 0:
        return
    for j in range(out.size):
        if abs(out[j]) < length * error[j]:
            panel, lane, total = panels[j // WIDE], j % WIDE, 0.0
            for r in range(panel.shape[0]):
                total += panel[r, lane] * tile[r, place]
            out[j] = total
