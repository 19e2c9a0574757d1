"""Probabilities that up to four centred Gaussian variables are all positive, and what they are made of.

Correlations near 1 decide how accurate they are, so that determinants of two rows are computed without cancellation,
and angles from them, never from 1 - q^2.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.polynomial.legendre import leggauss

NODES, WEIGHTS = leggauss(24)
"""Gauss-Legendre rule on [-1, 1]; in the probability of four variables it leaves errors of 1e-13, and of 1e-9 at most
where they are linearly dependent and pairs of them nearly equal."""

SPLITTER = 134217729.0
"""2^27 + 1, which splits a double into two halves whose products are exact (Dekker)."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def determinant(a, b, c, d):  # type: ignore[no-untyped-def]
    """Difference a b - c d of exact products, right to rounding of the result."""
    p, p_error = _exact_product(a, b)
    q, q_error = _exact_product(c, d)
    return (p - q) + (p_error - q_error)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _exact_product(a, b):  # type: ignore[no-untyped-def]
    """Product a b rounded, and its rounding error."""
    product = a * b
    wide, other = SPLITTER * a, SPLITTER * b
    a_high, b_high = wide - (wide - a), other - (other - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@numba.njit(cache=True, nogil=True, error_model="numpy")
def angle(C, a, b):  # type: ignore[no-untyped-def]
    """Arc sine of the correlation of two variables, 0 where one of them does not vary."""
    rest = max(determinant(C[a, a], C[b, b], C[a, b], C[a, b]), 0.0)
    if rest == 0.0 and C[a, b] == 0.0:
        return 0.0
    return math.atan2(C[a, b], math.sqrt(rest))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def condition(n, C, k, after):  # type: ignore[no-untyped-def]
    """Write the covariance of n variables given that variable k is 0."""
    for a in range(n):
        for b in range(a + 1):
            after[a, b] = after[b, a] = determinant(C[a, b], C[k, k], C[a, k], C[b, k]) / C[k, k]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def orthant(n, C):  # type: ignore[no-untyped-def]
    """P(all of n <= 4 variables > 0) of the covariance C; that of a variable that does not vary counts 1/2."""
    if n == 0:
        return 1.0
    angles = 0.0
    for a in range(n):
        for b in range(a):
            angles += angle(C, a, b)
    found = 0.5**n + angles / (2.0 ** (n - 1) * math.pi)
    return found if n < 4 else found + _of_four(C) / (4.0 * math.pi**2)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _of_four(C):  # type: ignore[no-untyped-def]
    """Sum over pairs of the integral, over the angle of a pair's correlation, of the angle of the other two given it.

    All correlations grow in proportion from 0 to their values (Plackett's path).
    """
    q, total = np.ones((4, 4)), 0.0
    for a in range(4):
        for b in range(a):
            q[a, b] = q[b, a] = math.sin(angle(C, a, b))
    for i in range(1, 4):
        for j in range(i):
            k = 0 if j > 0 else (1 if i > 1 else 2)
            other = 6 - i - j - k
            end = angle(C, i, j)
            if end != 0.0:
                total += _along_the_path(q, i, j, k, other, end)
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _along_the_path(q, i, j, k, m, end):  # type: ignore[no-untyped-def]
    total = 0.0
    for node in range(NODES.size):
        w = 0.5 * (1.0 + NODES[node])
        theta = end * (1.0 - w**4)  # the angle of the other two ends like a square root, or nearly
        sine, square = math.sin(theta), math.cos(theta) ** 2
        s = sine / q[i, j]
        both = s * q[k, m] - s * s * _explained(q, i, j, k, m, sine) / square
        first = 1.0 - s * s * _explained(q, i, j, k, k, sine) / square
        second = 1.0 - s * s * _explained(q, i, j, m, m, sine) / square
        rest = math.sqrt(max(first * second - both * both, 0.0))
        total += WEIGHTS[node] * w**3 * (math.atan2(both, rest) if both != 0.0 else 0.0)
    return 2.0 * end * total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _explained(q, i, j, k, m, sine):  # type: ignore[no-untyped-def]
    """Covariance of k and m that i and j explain, times 1 - sine^2."""
    return q[k, i] * q[m, i] + q[k, j] * q[m, j] - sine * (q[k, i] * q[m, j] + q[k, j] * q[m, i])
