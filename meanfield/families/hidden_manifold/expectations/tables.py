"""Tables of a smooth function of one number: polynomials through equidistant points, one for each cell between two."""

from __future__ import annotations

import numpy as np
from numpy.polynomial.polynomial import polyfromroots

from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.typing import FloatArray

TABLE_POINTS = 12
"""Number of points of a polynomial, half of them on either side of its cell. At spacing h it is off by 26,000 h^12
f^(12)/12! at most: 1e-10 for tanh at h = 0.1."""


def _lagrange() -> FloatArray:
    """Coefficients of Lagrange's polynomials, a row each, for points at unit distances about 0."""
    points = np.arange(TABLE_POINTS) - 0.5 * (TABLE_POINTS - 1)
    others = [np.delete(points, i) for i in range(TABLE_POINTS)]
    return np.array([polyfromroots(x) / np.prod(point - x) for point, x in zip(points, others, strict=True)])


LAGRANGE = _lagrange()


@without_reference_counts()
def fill_table(values, table):  # type: ignore[no-untyped-def]
    """Write the coefficients of polynomials.

    Parameters
    ----------
    values : ndarray, shape (cells + TABLE_POINTS - 1,)
        The function at points of which the first cell has the sixth and the seventh as its ends.
    table : ndarray, shape (cells, TABLE_POINTS)
    """
    for cell in range(table.shape[0]):
        for k in range(TABLE_POINTS):
            table[cell, k] = 0.0
        for i in range(TABLE_POINTS):
            for k in range(TABLE_POINTS):
                table[cell, k] += LAGRANGE[i, k] * values[cell + i]


@without_reference_counts()
def multiply_by_table(place, step, z, table, products):  # type: ignore[no-untyped-def]
    """Multiply numbers by the function at `place` + `step` z, in cells from the beginning of the first one."""
    last = table.shape[0] - 1
    for i in range(products.size):
        x = place + step * z[i]
        cell = min(max(int(x), 0), last)
        t, value = x - cell - 0.5, 0.0
        for k in range(TABLE_POINTS):
            value = value * t + table[cell, TABLE_POINTS - 1 - k]
        products[i] *= value
