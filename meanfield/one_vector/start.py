"""Features U and weights w at t = 0, with exactly the overlap that is asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from meanfield.ingredients.laws import CoordinateLaw
from meanfield.typing import FloatArray


def orthogonal_columns(
    coordinates: Sequence[CoordinateLaw], N: int, rng: Generator, square: FloatArray | None = None
) -> FloatArray:
    """U with rows of independent coordinates, made orthogonal: U^T U = N I, shape (N, d1).

    The symmetric orthogonalisation Z (Z^T Z / N)^(-1/2) moves coordinates by O(1/sqrt(N)) only. Rows may have mean
    squares `square`, shape (N,), whose mean is 1.
    """
    values = np.zeros(1)
    while values.min() < 1e-8:  # dependent columns, such as two Rademacher ones of a small N, are drawn again
        Z = np.stack([law.sample(rng, (N,)) for law in coordinates], axis=1)
        Z = Z if square is None else np.sqrt(square)[:, None] * Z
        values, vectors = np.linalg.eigh(Z.T @ Z / N)
    return np.ascontiguousarray(Z @ (vectors / np.sqrt(values)) @ vectors.T)


def weights_with_overlap(U: FloatArray, q: FloatArray, xi: FloatArray) -> FloatArray:
    """Weights w = U q + sqrt(1 - |q|^2) xi with xi made orthogonal to U, and |xi|^2 = N."""
    N = len(U)
    xi = xi - U @ (U.T @ xi) / N
    xi *= np.sqrt(N / (xi @ xi))
    return U @ q + np.sqrt(1 - q @ q) * xi
