"""Products F^T C in single precision, at twice the speed of double precision.

They are those of features and latents that differ in the eighth digit, which the law of SGD does not notice. Where the
sign alone matters, it is that of double precision: products that are smaller than the largest error that they may have
are computed again, one of some thousand.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.ensembles.arrays import Array
from meanfield.ingredients.nonlinearities import NONLINEARITIES, Nonlinearity
from meanfield.numerics.compiled.matrix_products import TOGETHER, multiply, relative_error
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.vectors import WIDE
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray


class SinglePrecision(NamedTuple):
    """A matrix in single precision, for compiled code.

    Parameters
    ----------
    panels : ndarray of float32
        The packed matrix.
    error : ndarray
        Largest error of a product with each column, in units of the length of the vector; empty where signs may err.
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


def single_precision_for(
    f: Nonlinearity, panels: FloatArray, tiles: FloatArray, products: FloatArray
) -> SinglePrecision:
    """For inputs f(products) of packed matrix and vectors, with working arrays as large as those of float64."""
    signs = panels if depends_on_sign(f) else panels[:0]
    lengths = np.sqrt(np.einsum("prl,prl->pl", signs, signs)).ravel()
    return SinglePrecision(
        panels.astype(np.float32),
        lengths * relative_error(panels.shape[1]),
        np.zeros_like(tiles, np.float32),
        np.empty_like(products, np.float32),
    )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def multiply_in_single(single, panels, tiles, vectors, out):  # type: ignore[no-untyped-def]
    """Write products to `out`; other arguments as those of `multiply`."""
    for t in range((vectors + TOGETHER - 1) // TOGETHER):
        for r in range(tiles.shape[1]):
            for k in range(TOGETHER):
                single.tiles[t, r, k] = tiles[t, r, k]
    call(multiply, single.panels, single.tiles, vectors, single.products)
    squares = np.empty(TOGETHER)
    for i in range(vectors):
        tile, place, products = tiles[i // TOGETHER], i % TOGETHER, single.products[i]
        for j in range(out.shape[1]):
            out[i, j] = products[j]
        if single.error.size > 0:
            if place == 0:
                _square_lengths(tile, squares)
            _correct_signs(single.error, math.sqrt(squares[place]), panels, tile, place, out[i])


@without_reference_counts()
def _square_lengths(tile, squares):  # type: ignore[no-untyped-def]
    """Write the squares of the lengths of all vectors of a tile."""
    for k in range(TOGETHER):
        squares[k] = 0.0
    for r in range(tile.shape[0]):
        for k in range(TOGETHER):
            squares[k] += tile[r, k] * tile[r, k]


@without_reference_counts()
def _correct_signs(error, length, panels, tile, place, out):  # type: ignore[no-untyped-def]
    """Compute products with one vector again whose signs may err; those of the columns that fill up panels are 0."""
    unsure = 0
    for j in range(out.size):  # a loop without branches vectorises
        unsure += abs(out[j]) < length * error[j]
    if unsure == 0:
        return
    for j in range(out.size):
        if abs(out[j]) < length * error[j]:
            panel, lane, total = panels[j // WIDE], j % WIDE, 0.0
            for r in range(panel.shape[0]):
                total += panel[r, lane] * tile[r, place]
            out[j] = total
