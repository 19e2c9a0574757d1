"""Gauss rules of discrete laws: few values in place of many, with the same averages of polynomials."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh_tridiagonal

from meanfield.typing import FloatArray


def gauss_rule(values: FloatArray, probability: FloatArray, degree: int) -> tuple[FloatArray, FloatArray]:
    """Law of as few values as have the moments of a law up to a degree; the law itself if it has no more.

    Parameters
    ----------
    values, probability : ndarray, shape (A,)
        Values of a variable, and their probabilities.
    degree : int

    Returns
    -------
    values, probability : ndarray
        At most degree/2 + 1 of them.

    Notes
    -----
    The rule of n nodes is exact to the degree 2n - 1. Its nodes are the eigenvalues of the n x n block of the operator
    that multiplies by the variable, in orthonormal polynomials, which the Lanczos process finds. Source: G. H. Golub
    and J. H. Welsch, Math. Comp. 23 (1969) 221.
    """
    different, place = np.unique(values[probability > 0.0], return_inverse=True)
    count = degree // 2 + 1
    if count >= len(different):
        return values, probability
    values, probability = different, np.asarray(np.bincount(place, probability[probability > 0.0]), dtype=float)
    scale = np.abs(values).max()
    x, basis = values / scale, [np.sqrt(probability)]
    diagonal, beside = np.empty(count), np.empty(count - 1)
    for n in range(count):
        moved = x * basis[-1]
        diagonal[n] = moved @ basis[-1]
        if n == count - 1:
            break
        for _ in range(2):  # once more, against rounding
            moved = moved - sum((moved @ before) * before for before in basis)
        beside[n] = np.sqrt(moved @ moved)
        basis.append(moved / beside[n])
    nodes, vectors = eigh_tridiagonal(diagonal, beside)
    weights = vectors[0] ** 2
    return scale * nodes, weights / weights.sum()
