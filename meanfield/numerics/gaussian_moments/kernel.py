"""Averages of compiled functions over Gaussian rows, by nodes for independent standard normal variables."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.numerics.compiled.array_operations import dot, sum_of
from meanfield.numerics.compiled.row_functions import call_rows
from meanfield.numerics.compiled.triangular import factorise
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

ROWS_AT_ONCE = 256
"""Number of rows that are evaluated together: what belongs to them stays in the fastest cache."""


class Nodes(NamedTuple):
    """Nodes for independent standard normal variables.

    Parameters
    ----------
    z : ndarray, shape (rank, count)
    weights : ndarray, shape (count,)
        They add up to 1.
    """

    z: FloatArray
    weights: FloatArray


class Law(NamedTuple):
    """Gaussian law of a row x = mean + factor z, with standard normal z.

    Parameters
    ----------
    mean : ndarray, shape (width,)
    factor : ndarray, shape (width, rank)
        From `semidefinite_factor`, whose order lets kinks be nested.
    """

    mean: FloatArray
    factor: FloatArray


class Moments(NamedTuple):
    """Averages of functions f of x = mean + A z over standard normal z.

    By the regression of x on z, the average of x_a f is mean_a <f> + sum_k Cov(x_a, z_k) <z_k f>, for what f does not
    read, too.

    Parameters
    ----------
    first : ndarray, shape (outputs,)
        <f>.
    along : ndarray, shape (rank, outputs)
        <z f>.
    products : ndarray, shape (outputs, outputs)
        <f f^T>.
    """

    first: FloatArray
    along: FloatArray
    products: FloatArray

    def of_parity(self, parity: FloatArray) -> Moments:
        """The same without what vanishes for even (1) and odd (-1) outputs, whose nodes may be of one half-space."""
        even, alike = 0.5 * (1.0 + parity), 0.5 * (1.0 + np.outer(parity, parity))
        return Moments(self.first * even, self.along * (1.0 - even), self.products * alike)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def semidefinite_factor(covariance):  # type: ignore[no-untyped-def]
    """Lower trapezoidal A with A A^T = covariance, whose rows are in the order of the variables.

    Variables that those before them determine, up to 1e-14 of their own variance, have no column: a covariance of the
    tested matrices of overlaps may have lost its smallest eigenvalues to rounding.

    Parameters
    ----------
    covariance : ndarray, shape (width, width)

    Returns
    -------
    ndarray, shape (width, rank)

    Raises
    ------
    ValueError
        If an element is not finite.
    """
    width = covariance.shape[0]
    whole = np.zeros((width, width))
    for a in range(width):
        for b in range(width):
            if not math.isfinite(covariance[a, b]):
                raise ValueError("a covariance is not finite")
    factorise(covariance, whole)
    rank = 0
    for b in range(width):
        if whole[b, b] > 0.0:
            for a in range(b, width):
                whole[a, rank] = whole[a, b]
            for a in range(b if b > rank else 0):
                whole[a, rank] = 0.0
            rank += 1
    return whole[:, :rank].copy()


@numba.njit(cache=True, nogil=True, error_model="numpy")
def sum_over_nodes(address, outputs, constants, mean, factor, z, weights):  # type: ignore[no-untyped-def]
    """The three arrays of `Moments` of a compiled row function.

    Parameters
    ----------
    address, outputs : int
        Of a `RowFunction`.
    constants : ndarray
        Numbers that all rows share.
    mean : ndarray, shape (width,)
    factor : ndarray, shape (width, rank)
    z : ndarray, shape (rank, count)
    weights : ndarray, shape (count,)
    """
    width, rank = factor.shape
    first, along, products = np.zeros(outputs), np.zeros((rank, outputs)), np.zeros((outputs, outputs))
    values, weighed = np.empty((outputs, ROWS_AT_ONCE)), np.empty(ROWS_AT_ONCE)
    rows, out = np.empty((ROWS_AT_ONCE, width)), np.empty((ROWS_AT_ONCE, outputs))
    for start in range(0, weights.size, ROWS_AT_ONCE):
        count = min(ROWS_AT_ONCE, weights.size - start)
        for a in range(width):
            for i in range(count):
                rows[i, a] = mean[a]
            for k in range(rank):
                loading = factor[a, k]
                if loading != 0.0:
                    for i in range(count):
                        rows[i, a] += loading * z[k, start + i]
        call_rows(address, rows[:count], constants, out[:count])
        for o in range(outputs):
            for i in range(count):
                values[o, i] = out[i, o]
        for o in range(outputs):
            for i in range(count):
                weighed[i] = weights[start + i] * values[o, i]
            first[o] += sum_of(weighed[:count])
            for k in range(rank):
                along[k, o] += dot(weighed[:count], z[k, start : start + count])
            for p in range(o + 1):
                products[o, p] += dot(weighed[:count], values[p, :count])
    for o in range(outputs):
        for p in range(o):
            products[p, o] = products[o, p]
    return first, along, products
