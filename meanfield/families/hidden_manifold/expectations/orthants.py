"""Probabilities that up to four centred Gaussian variables are all positive, and what they are made of.

Correlations near 1 decide how accurate they are, so that determinants of two rows are computed without cancellation,
and angles from them, never from 1 - q^2.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial.legendre import leggauss

from meanfield.process import own_numba as numba

NODES, WEIGHTS = leggauss(16)
FEW_NODES, FEW_WEIGHTS = leggauss(8)
"""Gauss-Legendre rules on [-1, 1]."""

LONG, SHORT = 2.0, 0.5
"""Lengths of a panel, in units of the distance of the next singularity from its end, up to which rules of many and of
few nodes leave 1e-14."""

SHORTEST_PANEL = 1e-14
"""Length of a panel that adds nothing to an integral of numbers up to pi/2."""

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
def correlate(n, C, q, given):  # type: ignore[no-untyped-def]
    """Write correlations of n variables and, for each variable i, their covariances given that it is 0.

    `given[i, a, b]` is in units of the standard deviations of a and b. A variable that does not vary has no
    correlations.
    """
    for a in range(n):
        for b in range(a + 1):
            scale = math.sqrt(C[a, a] * C[b, b])
            q[a, b] = q[b, a] = 1.0 if a == b else (C[a, b] / scale if scale > 0.0 else 0.0)
            for i in range(n):
                rest = q[a, b]
                if C[i, i] > 0.0 and scale > 0.0:
                    rest = determinant(C[a, b], C[i, i], C[a, i], C[b, i]) / (C[i, i] * scale)
                given[i, a, b] = given[i, b, a] = max(rest, 0.0) if a == b else rest


@numba.njit(cache=True, nogil=True, error_model="numpy")
def angle(q, given, a, b):  # type: ignore[no-untyped-def]
    """Arc sine of the correlation of two variables."""
    return math.atan2(q[a, b], math.sqrt(given[a, b, b])) if q[a, b] != 0.0 else 0.0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def given_two(given, i, j, a, b):  # type: ignore[no-untyped-def]
    """Covariance of a and b given that i and j are 0, times the variance of j given i."""
    return determinant(given[i, a, b], given[i, j, j], given[i, j, a], given[i, j, b])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def angle_given_two(given, i, j, a, b):  # type: ignore[no-untyped-def]
    """Arc sine of the correlation of a and b given that i and j are 0."""
    both = given_two(given, i, j, a, b)
    first, second = given_two(given, i, j, a, a), given_two(given, i, j, b, b)
    return math.atan2(both, math.sqrt(max(determinant(first, second, both, both), 0.0))) if both != 0.0 else 0.0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def orthant(n, q, given, chosen):  # type: ignore[no-untyped-def]
    """P(all > 0) of the first n <= 4 of the chosen variables; one that does not vary counts 1/2."""
    angles = 0.0
    for x in range(n):
        for y in range(x):
            angles += angle(q, given, chosen[x], chosen[y])
    found = 0.5**n * (1.0 + 2.0 * angles / math.pi)
    return found if n < 4 else found + _of_four(q, given, chosen) / (4.0 * math.pi**2)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _of_four(q, given, chosen):  # type: ignore[no-untyped-def]
    """Integral of the angle of two variables given two others, along a path to the correlations of four.

    Along it the correlations of one variable with the others grow in proportion, as s from 0 to 1 (Plackett). Of the
    determinant of all correlations is left a share cos^2 phi, with sin phi in proportion to s: what is integrated over
    phi is smooth, up to where a variable is decided by the one and another.
    """
    one = _least_correlated(q, chosen)
    others = np.empty(3, np.int64)
    n = 0
    for x in chosen[:4]:
        if x != one:
            others[n], n = x, n + 1
    i, j, k = others
    three, explained, decided = max(given_two(given, i, j, k, k), 0.0), 0.0, 0.0
    for x, y, z in ((i, j, k), (j, k, i), (k, i, j)):
        explained += q[one, x] * (q[one, x] * given[y, z, z] - 2.0 * q[one, y] * given[z, x, y])
        rest = given_two(given, one, x, y, y)
        decided = max(decided, 1.0 - rest / given[x, y, y] if given[x, y, y] > 0.0 else 1.0)
    if decided <= 0.0:
        return 0.0
    end = math.atan2(math.sqrt(explained), math.sqrt(max(three - explained, 0.0))) if explained > 0.0 else 0.5 * math.pi
    sine = math.sin(end) / math.sqrt(decided)  # of the singularity
    real = math.asin(min(sine, 1.0))
    imaginary = math.acosh(max(sine, 1.0))
    total, high = 0.0, end
    while high > SHORTEST_PANEL:
        distance = math.hypot(real - high, imaginary)
        low = max(high - max(LONG * distance, SHORTEST_PANEL), 0.0)
        if high - low <= SHORT * distance:
            total += _panel(q, given, one, others, three, end, low, high, FEW_NODES, FEW_WEIGHTS)
        else:
            total += _panel(q, given, one, others, three, end, low, high, NODES, WEIGHTS)
        high = low
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _least_correlated(q, chosen):  # type: ignore[no-untyped-def]
    """One of four variables whose largest correlation with the others is least."""
    least, one = 2.0, chosen[0]
    for x in chosen[:4]:
        size = 0.0
        for y in chosen[:4]:
            if y != x:
                size = max(size, abs(q[x, y]))
        if size < least:
            least, one = size, x
    return one


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _panel(q, given, one, others, three, end, low, high, nodes, weights):  # type: ignore[no-untyped-def]
    """Integral over angles phi from `low` to `high`, of which `end` is the last of the path."""
    half, middle, total, scale = 0.5 * (high - low), 0.5 * (high + low), 0.0, 1.0 / math.sin(end)
    root_of_three, correlation, ends, rest = math.sqrt(three), np.empty(3), np.empty((3, 2)), np.empty(3)
    for x in range(3):
        i, j, k = others[x], others[x - 1], others[x - 2]
        correlation[x], rest[x] = q[one, i], given[one, i, i]
        ends[x, 0], ends[x, 1] = given[i, j, k], given_two(given, one, i, j, k)
    for node in range(nodes.size):
        phi = middle + half * nodes[node]
        cosine, s = math.cos(phi), math.sin(phi) * scale
        left = (1.0 - s) * (1.0 + s)
        for x in range(3):
            root = math.sqrt(rest[x] + correlation[x] * correlation[x] * left)
            covariance = ends[x, 1] + (ends[x, 0] - ends[x, 1]) * left
            turn = math.atan2(covariance, root_of_three * cosine * root) if covariance != 0.0 else 0.0
            total += weights[node] * cosine * correlation[x] / root * turn
    return half * scale * total
