"""Law of a row at a Gram matrix, which the limit and compiled SGD share (update_rules.md, eq-rule-fields).

Rows are linear in Z: a field is a combination of what a row without noise has in the place of fields, the coefficients
of the vectors in its input.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.numerics.compiled.array_operations import add, dot
from meanfield.numerics.gaussian_moments.kernel import semidefinite_factor
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray


class Laws(NamedTuple):
    """Law of a row: a mixture of Gaussians.

    Parameters
    ----------
    probability : ndarray, shape (components,)
    mean : ndarray, shape (components, width)
    covariance : ndarray, shape (components, width, width)
    signal, noise : ndarray, shape (components,)
        Factors of the signal, and of the variance of the noise.
    """

    probability: FloatArray
    mean: FloatArray
    covariance: FloatArray
    signal: FloatArray
    noise: FloatArray


@numba.njit(cache=True, nogil=True, error_model="numpy")
def laws_at(mean, covariance, noise, white, beside, G, weighted, rest):  # type: ignore[no-untyped-def]
    """Means and covariances of rows, shapes (components, width) and (components, width, width).

    Parameters
    ----------
    mean, covariance : ndarray, shapes (components, width), (components, width, width)
        Of rows without noise, with coefficients of vectors in the place of fields.
    noise : ndarray, shape (components,)
        Factors of the variance of the noise.
    white, beside : ndarray, shape (inputs, inputs)
        Covariances of the noise of inputs, white and beside the features.
    G, weighted, rest : ndarray, shape (vectors, vectors)
        Gram matrix, that weighted with the variances of coordinates, and that of what is beside the features.
    """
    H, width = mean.shape
    n = len(G)
    first = width - len(white) * n
    means, covariances = mean.copy(), np.empty((H, width, width))
    half, of_noise = np.empty((width, width)), np.zeros((width, width))
    for i in range(first, width):
        for j in range(first, i + 1):
            a, b, v, w = (i - first) // n, (j - first) // n, (i - first) % n, (j - first) % n
            of_noise[i, j] = white[a, b] * weighted[v, w] + beside[a, b] * rest[v, w]
    for h in range(H):
        half[:first] = covariance[h, :first]
        for i in range(first, width):
            start = i - (i - first) % n
            means[h, i] = dot(G[i - start], mean[h, start : start + n])
            half[i] = 0.0
            for v in range(n):
                add(half[i], G[i - start, v], covariance[h, start + v])
        for i in range(width):
            for j in range(i + 1):
                start = j - (j - first) % n
                found = half[i, j] if j < first else dot(half[i, start : start + n], G[j - start])
                covariances[h, i, j] = covariances[h, j, i] = found + noise[h] * of_noise[i, j]
    return means, covariances


@numba.njit(cache=True, nogil=True, error_model="numpy")
def factor_of(covariance, columns):  # type: ignore[no-untyped-def]
    """Factor of the covariance of some columns of a row, shape (width, rank), 0 in the other rows.

    Parameters
    ----------
    covariance : ndarray, shape (width, width)
    columns : ndarray of int, shape (columns,)
    """
    inner = np.empty((columns.size, columns.size))
    for i in range(columns.size):
        for j in range(columns.size):
            inner[i, j] = covariance[columns[i], columns[j]]
    inner = semidefinite_factor(inner)
    factor = np.zeros((len(covariance), inner.shape[1]))
    for i in range(columns.size):
        factor[columns[i]] = inner[i]
    return factor


@numba.njit(cache=True, nogil=True, error_model="numpy")
def regression_on(factor, covariance):  # type: ignore[no-untyped-def]
    """Covariance with z of variables whose covariance with all columns x = mean + factor z is known.

    Parameters
    ----------
    factor : ndarray, shape (width, rank)
        From `factor_of`.
    covariance : ndarray, shape (variables, width)

    Returns
    -------
    ndarray, shape (variables, rank)
    """
    found = np.empty((len(covariance), factor.shape[1]))
    pivot = 0
    for k in range(factor.shape[1]):
        while factor[pivot, k] == 0.0:  # the first of the columns that direction k adds to
            pivot += 1
        for i in range(len(covariance)):
            found[i, k] = (covariance[i, pivot] - dot(factor[pivot, :k], found[i, :k])) / factor[pivot, k]
    return found
