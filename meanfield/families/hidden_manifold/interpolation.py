"""Polynomials through values at the nodes of a Gauss rule: order parameters are entire functions of the eigenvalue."""

from __future__ import annotations

import numpy as np

from meanfield.typing import FloatArray


def interpolated(nodes: FloatArray, values: FloatArray, x: FloatArray) -> FloatArray:
    """Values at x of the polynomial through values at nodes, by the barycentric formula.

    Parameters
    ----------
    nodes : ndarray, shape (nodes,)
    values : ndarray, shape (nodes, ...)
    x : ndarray, any shape

    Returns
    -------
    ndarray, shape (*x.shape, ...)
    """
    capacity = max(0.25 * float(np.ptp(nodes)), np.finfo(float).tiny)
    apart = (nodes[:, None] - nodes) / capacity
    np.fill_diagonal(apart, 1.0)
    weight = 1.0 / apart.prod(axis=1)
    away = x[..., None] - nodes
    there = away == 0.0
    share = np.where(there.any(axis=-1, keepdims=True), there, weight / np.where(there, 1.0, away))
    return np.asarray(np.tensordot(share / share.sum(axis=-1, keepdims=True), values, axes=1))
