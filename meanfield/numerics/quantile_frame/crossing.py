"""Quantiles at given weights: the inverse of the curves that points describe."""

from __future__ import annotations

import math

import numba
import numpy as np

from meanfield.typing import FloatArray


@numba.njit(cache=True, nogil=True, error_model="numpy")
def quantiles_at(w, X, xi, terms, result):  # type: ignore[no-untyped-def]
    """Quantiles xi at increasing weights w, on every curve.

    Between points zeta = xi + psi(w) is interpolated by the cubic in w through the four nearest, within the values of
    both neighbours: xi then increases with w. Beyond the last points zeta goes on along a line.

    Parameters
    ----------
    w : ndarray, shape (weights,)
    X, xi : ndarray, shape (curves, points)
    terms : ndarray, shape (3, terms)
        Amplitudes, centres and inverse widths of the terms of psi.
    result : ndarray, shape (curves, weights)
    """
    points = X.shape[1]
    shifts = np.zeros(w.size)
    for k in range(terms.shape[1]):
        for j in range(w.size):
            shifts[j] += terms[0, k] * math.asinh(terms[2, k] * (w[j] - terms[1, k]))
    zeta = np.empty(points)
    for curve in range(X.shape[0]):
        x = X[curve]
        for i in range(points):
            zeta[i] = xi[curve, i]
            for k in range(terms.shape[1]):
                zeta[i] += terms[0, k] * math.asinh(terms[2, k] * (x[i] - terms[1, k]))
        i = 0
        for j in range(w.size):
            while i < points - 2 and x[i + 1] <= w[j]:
                i += 1
            if w[j] <= x[0] or w[j] >= x[points - 1]:
                part = (w[j] - x[i]) / (x[i + 1] - x[i])
                value = zeta[i] + part * (zeta[i + 1] - zeta[i])
            else:
                first = min(max(i - 1, 0), points - 4)
                value = 0.0
                for a in range(first, first + 4):
                    factor = 1.0
                    for b in range(first, first + 4):
                        if b != a:
                            factor *= (w[j] - x[b]) / (x[a] - x[b])
                    value += factor * zeta[a]
                value = min(max(value, zeta[i]), zeta[i + 1])
            at = value - shifts[j]
            result[curve, j] = max(at, result[curve, j - 1]) if j > 0 else at


def crossings(w: FloatArray, X: FloatArray, xi: FloatArray, terms: FloatArray) -> FloatArray:
    """Quantiles at increasing weights, shape (..., weights), on curves of shape (..., points); NaN where X is."""
    flat, known = X.reshape(-1, X.shape[-1]), np.all(np.isfinite(X.reshape(-1, X.shape[-1])), axis=1)
    result = np.full((len(flat), w.size), np.nan)
    inner = np.empty((int(known.sum()), w.size))
    quantiles_at(w, flat[known], xi.reshape(flat.shape)[known], terms, inner)
    result[known] = inner
    return result.reshape(*X.shape[:-1], w.size)
