"""Vectors with exactly the products that are asked for, as combinations of given ones."""

from __future__ import annotations

import numpy as np

from meanfield.typing import FloatArray


def with_products(columns: FloatArray, products: FloatArray) -> FloatArray:
    """Combinations of columns that have the given products: orthonormal ones, moved as little as can be, and a root."""
    values, vectors = np.linalg.eigh(columns.T @ columns)
    return np.asarray(columns @ (vectors / np.sqrt(values)) @ vectors.T @ root(products))


def orthogonal_part(columns: FloatArray, known: FloatArray) -> FloatArray:
    """Columns without their components in the span of others, which need not be independent."""
    return np.asarray(columns - known @ np.linalg.lstsq(known, columns, rcond=None)[0])


def root(products: FloatArray) -> FloatArray:
    """Symmetric root of a covariance, which may be singular."""
    values, vectors = np.linalg.eigh(products)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)
