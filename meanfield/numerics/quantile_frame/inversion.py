"""Inverses: of a line with terms of psi (`frame`), which places points, and of the curves that points describe."""

from __future__ import annotations

import math

import numpy as np

from meanfield.numerics.quantile_frame.frame import BOUNDED
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _value(x, slope, shift, terms):  # type: ignore[no-untyped-def]
    """The function and its derivative."""
    value, derivative = slope * x + shift, slope
    for k in range(terms.shape[1]):
        z = terms[2, k] * (x - terms[1, k])
        inverse = 1.0 / math.sqrt(1.0 + z * z)
        if terms[3, k] == BOUNDED:
            value += terms[0, k] * z * inverse
            inverse = inverse**3
        else:
            value += terms[0, k] * math.asinh(z)
        derivative += terms[0, k] * terms[2, k] * inverse
    return value, derivative


@numba.njit(cache=True, nogil=True, error_model="numpy")
def invert(y, slope, shift, terms, x, derivatives):  # type: ignore[no-untyped-def]
    """Solve for x at increasing values y, by Newton's method within brackets; fill in the derivatives dy/dx, too.

    Parameters
    ----------
    y : ndarray, shape (points,)
    slope, shift : float
    terms : ndarray, shape (4, terms)
        Amplitudes, centres, inverse widths and kinds.
    x, derivatives : ndarray, shape (points,)
    """
    at = (y[0] - shift) / slope
    for i in range(y.size):
        low, high = -np.inf, np.inf
        scale = 1.0 + abs(y[i]) + abs(shift)
        for iteration in range(200):  # Newton steps and bisections; three or four are usual
            value, derivative = _value(at, slope, shift, terms)
            residual = y[i] - value
            if residual > 0.0:
                low = at
            else:
                high = at
            following = at + residual / derivative
            bounded = high - low < np.inf
            if abs(residual) <= 1e-15 * scale or following == at:  # one more step is the last one
                at = following
                break
            if bounded and (not low < following < high or iteration % 8 == 7):
                following = 0.5 * (low + high)
            at = following
        x[i], derivatives[i] = at, derivative
        if i + 1 < y.size:
            at += (y[i + 1] - y[i]) / derivative


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _quantiles_at(w, X, zeta, terms, result):  # type: ignore[no-untyped-def]
    """Fill in the quantiles at increasing weights w; see `crossings`."""
    curves, points = zeta.shape
    shifts = np.zeros(w.size)
    for k in range(terms.shape[1]):
        for j in range(w.size):
            z = terms[2, k] * (w[j] - terms[1, k])
            shifts[j] += terms[0, k] * (z / math.sqrt(1.0 + z * z) if terms[3, k] == BOUNDED else math.asinh(z))
    for row in range(X.shape[0]):
        x, y = X[row], zeta[row % curves]
        i, cubic = 0, -1
        a = b = c = 0.0
        for j in range(w.size):
            at = w[j]
            while i < points - 2 and x[i + 1] <= at:
                i += 1
            if at <= x[0] or at >= x[points - 1]:
                value = y[i] + (at - x[i]) / (x[i + 1] - x[i]) * (y[i + 1] - y[i])
            else:
                first = min(max(i - 1, 0), points - 4)
                p, q, r = x[first], x[first + 1], x[first + 2]
                if first != cubic:  # divided differences
                    s = x[first + 3]
                    cubic = first
                    a = (y[first + 1] - y[first]) / (q - p)
                    second, third = (y[first + 2] - y[first + 1]) / (r - q), (y[first + 3] - y[first + 2]) / (s - r)
                    b, last = (second - a) / (r - p), (third - second) / (s - q)
                    c = (last - b) / (s - p)
                value = y[first] + (at - p) * (a + (at - q) * (b + (at - r) * c))
                value = min(max(value, y[i]), y[i + 1])
            xi = value - shifts[j]
            result[row, j] = max(xi, result[row, j - 1]) if j > 0 else xi


def crossings(w: FloatArray, X: FloatArray, zeta: FloatArray, terms: FloatArray) -> FloatArray:
    """Quantiles xi at increasing weights w, on every curve.

    Between points zeta = xi + psi(w) is interpolated by the cubic in w through the four nearest, within the values of
    both neighbours: xi then increases with w. Beyond the last points zeta goes on along a line.

    Parameters
    ----------
    w : ndarray, shape (weights,)
    X : ndarray, shape (times, curves, points)
    zeta : ndarray, shape (curves, points)
    terms : ndarray, shape (4, terms)
        Amplitudes, centres, inverse widths and kinds of the terms of psi.

    Returns
    -------
    ndarray, shape (times, curves, weights)
        NaN where X is.
    """
    result = np.empty((*X.shape[:2], w.size))
    _quantiles_at(w, X.reshape(-1, X.shape[2]), zeta, terms, result.reshape(-1, w.size))
    result[~np.isfinite(X[:, :, 0])] = np.nan
    return result
