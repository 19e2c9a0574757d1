"""Inverse of a line with terms of psi (`meanfield.numerics.quantile_frame.frame`), which places points."""

from __future__ import annotations

import math

import numpy as np

from meanfield.numerics.quantile_frame.frame import BOUNDED
from meanfield.process import own_numba as numba


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
