"""Inverse of functions slope x + shift + sum_k amplitude_k asinh((x - centre_k)/width_k), which place points."""

from __future__ import annotations

import math

import numba

MOST_ITERATIONS = 200
"""Largest number of Newton steps and bisections for a point; some ten are usual."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _value(x, slope, shift, terms):  # type: ignore[no-untyped-def]
    """The function and its derivative."""
    value, derivative = slope * x + shift, slope
    for k in range(terms.shape[1]):
        z = terms[2, k] * (x - terms[1, k])
        value += terms[0, k] * math.asinh(z)
        derivative += terms[0, k] * terms[2, k] / math.sqrt(1.0 + z * z)
    return value, derivative


@numba.njit(cache=True, nogil=True, error_model="numpy")
def invert(y, slope, shift, terms, x, derivatives):  # type: ignore[no-untyped-def]
    """Solve for x at increasing values y, by Newton's method within brackets; fill in the derivatives dy/dx, too.

    Parameters
    ----------
    y : ndarray, shape (points,)
    slope, shift : float
    terms : ndarray, shape (3, terms)
        Amplitudes, centres and inverse widths.
    x, derivatives : ndarray, shape (points,)
    """
    guess = (y[0] - shift) / slope
    for i in range(y.size):
        reach = 1.0 + abs(guess)
        low, high = guess, guess
        while _value(low, slope, shift, terms)[0] > y[i]:
            low -= reach
            reach *= 2.0
        while _value(high, slope, shift, terms)[0] < y[i]:
            high += reach
            reach *= 2.0
        at = guess
        for iteration in range(MOST_ITERATIONS):
            value, derivative = _value(at, slope, shift, terms)
            if value < y[i]:
                low = at
            else:
                high = at
            step = (y[i] - value) / derivative
            following = at + step
            if not low < following < high or iteration % 8 == 7:
                following = 0.5 * (low + high)
            if abs(following - at) <= 1e-15 * abs(at) or following == at:
                at = following
                break
            at = following
        x[i] = at
        derivatives[i] = _value(at, slope, shift, terms)[1]
        guess = at
