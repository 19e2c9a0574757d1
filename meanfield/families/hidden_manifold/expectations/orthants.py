"""Probabilities that up to four Gaussian variables are all positive.

That of two variables is a sum of two of Owen's integrals. One more variable comes along a path on which its
correlations with the others grow from 0 (Plackett): three variables take one integral, four take two. Correlations near
1 decide how accurate this is, so that determinants of two rows are computed without cancellation, and angles from them,
never from 1 - q^2.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial.legendre import leggauss

from meanfield.numerics.compiled.exponential import exp_minus
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba

SAME_FIELD = 1e-15
"""Variance of a variable given another one, relative to its own, below which it is a multiple of it, to rounding."""

NODES, WEIGHTS = leggauss(16)

FEW_NODES, FEW_WEIGHTS = leggauss(8)
"""Gauss-Legendre rules on [-1, 1]."""

HALF_NODES, HALF_WEIGHTS = (half[10:] for half in leggauss(20))
"""Upper half of a rule for even functions: for those of Owen it leaves 1e-15."""

LONG, SHORT = 2.0, 0.5
"""Lengths of a panel, in units of the distance of the next singularity from its end, up to which rules of many and of
few nodes leave 1e-14, and 1e-12 where there are means."""

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
def standardise(n, C, m, least, size, p, q, given):  # type: ignore[no-untyped-def]
    """Write the law of n variables in units of their standard deviations.

    Parameters
    ----------
    n : int
    C, m : ndarray, shape (n, n) and (n,)
        Covariance and mean.
    least : float
        Largest variance that is 0 to rounding: such a variable has its sign for certain, unless its mean is 0, too.
    size, p : ndarray, shape (n,)
        Where standard deviations and means go.
    q, given : ndarray, shape (n, n) and (n, n, n)
        Where correlations go, and for each variable i covariances given that it is 0. A variable that does not vary has
        no correlations.
    """
    for a in range(n):
        size[a] = max(math.sqrt(max(C[a, a], least)), 1e-8 * abs(m[a]))  # less is rounding
        p[a] = m[a] / size[a] if m[a] != 0.0 else 0.0
        for b in range(a + 1):
            scale = math.sqrt(C[a, a] * C[b, b]) if min(C[a, a], C[b, b]) > least else 0.0
            q[a, b] = q[b, a] = 1.0 if a == b else (C[a, b] / scale if scale > 0.0 else 0.0)
            for i in range(n):
                rest = q[a, b]
                if C[i, i] > least and scale > 0.0:
                    rest = determinant(C[a, b], C[i, i], C[a, i], C[b, i]) / (C[i, i] * scale)
                given[i, a, b] = given[i, b, a] = max(rest, 0.0) if a == b else rest


@numba.njit(cache=True, nogil=True, error_model="numpy")
def condition(n, p, q, given, x, size, p_given, q_given, given_more):  # type: ignore[no-untyped-def]
    """Write the law of all other variables given that x is 0; see `standardise`."""
    C, m = np.empty((n - 1, n - 1)), np.empty(n - 1)
    for a in range(n - 1):
        y = a + (a >= x)
        m[a] = p[y] - q[x, y] * p[x]
        for b in range(n - 1):
            C[a, b] = given[x, y, b + (b >= x)]
    standardise(n - 1, C, m, SAME_FIELD, size, p_given, q_given, given_more)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def given_two(given, i, j, a, b):  # type: ignore[no-untyped-def]
    """Covariance of a and b given i and j, times the variance of j given i."""
    return determinant(given[i, a, b], given[i, j, j], given[i, j, a], given[i, j, b])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def orthant_of_one(p):  # type: ignore[no-untyped-def]
    """P(z > -p) of a standard normal variable."""
    return 0.5 * math.erfc(-math.sqrt(0.5) * p) if p != 0.0 else 0.5


@numba.njit(inline="always", error_model="numpy")
def _of_two_centred(covariance, root):  # type: ignore[no-untyped-def]
    """P(x > 0, y > 0); see `orthant_of_two`."""
    return 0.25 + (math.atan2(covariance, root) / (2.0 * math.pi) if covariance != 0.0 else 0.0)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def orthant_of_two(p, q, covariance, root):  # type: ignore[no-untyped-def]
    """P(x > -p, y > -q) of two standard normal variables.

    Their correlation is the sine of an angle, whose tangent is `covariance` over the root of the determinant.
    """
    if p == 0.0 and q == 0.0:
        return _of_two_centred(covariance, root)
    length = max(math.hypot(covariance, root), 1e-300)
    cosine, sine = max(root / length, 1e-300), covariance / length
    sign = 1.0 if covariance > 0.0 else -1.0
    versine = cosine / (1.0 + abs(sine))
    total = 0.5 * (orthant_of_one(p) + orthant_of_one(q)) - (0.5 if (p < 0.0) != (q < 0.0) else 0.0)
    total -= _owen(p, (q - sign * p) / cosine + sign * p * versine)
    return total - _owen(q, (p - sign * q) / cosine + sign * q * versine)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _owen(h, k):  # type: ignore[no-untyped-def]
    """Owen's T(h, k/h), where h = 0 is taken as small and positive."""
    sign = -1.0 if (h < 0.0) != (k < 0.0) else 1.0
    h, k, beyond = abs(h), abs(k), 0.0
    if k > h:
        beyond = 0.25 - 0.25 * math.erf(math.sqrt(0.5) * h) * math.erf(math.sqrt(0.5) * k)
        h, k = k, h
    total = 0.0
    if h > 0.0 and h < 9.0:  # T < 1e-18 beyond
        slope = k / h
        for i in range(HALF_NODES.size):
            square = 1.0 + (slope * HALF_NODES[i]) ** 2
            total += HALF_WEIGHTS[i] * exp_minus(0.5 * h * h * square) / square
        total *= slope / (2.0 * math.pi)
    return sign * (beyond - total if beyond > 0.0 else total)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def orthant(n, p, q, given):  # type: ignore[no-untyped-def]
    """P(all > 0) of n <= 4 variables, from what `standardise` writes."""
    if n == 1:
        return orthant_of_one(p[0])
    if n == 2:
        return call(orthant_of_two, p[0], p[1], q[0, 1], math.sqrt(given[0, 1, 1]))
    places = np.arange(n)
    total = 0.0
    factor = 1.0
    while n > 2:
        if n == 3 and centred(p[places[:n]]):
            i, j, k = places[:3]
            angles = _angle(q, given, i, j) + _angle(q, given, j, k) + _angle(q, given, k, i)
            return total + factor * (0.125 + angles / (4.0 * math.pi))
        _least_correlated_last(q, places[:n])
        total += factor * call(_along_path, p, q, given, places[:n])
        n -= 1
        factor *= orthant_of_one(p[places[n]])
    i, j = places[0], places[1]
    return total + factor * call(orthant_of_two, p[i], p[j], q[i, j], math.sqrt(given[i, j, j]))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def centred(p):  # type: ignore[no-untyped-def]
    """Whether no variable has a mean."""
    means = False
    for x in p:
        means = means or x != 0.0
    return not means


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _angle(q, given, a, b):  # type: ignore[no-untyped-def]
    """Arc sine of the correlation of two variables."""
    return math.atan2(q[a, b], math.sqrt(given[a, b, b])) if q[a, b] != 0.0 else 0.0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _least_correlated_last(q, places):  # type: ignore[no-untyped-def]
    """Move that variable to the end whose largest correlation with the others is least."""
    least, at = 2.0, 0
    for x in range(places.size):
        size = 0.0
        for y in range(places.size):
            if y != x:
                size = max(size, abs(q[places[x], places[y]]))
        if size < least:
            least, at = size, x
    last = places.size - 1
    places[at], places[last] = places[last], places[at]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _along_path(p, q, given, places):  # type: ignore[no-untyped-def]
    """What the correlations of the last of three or four variables with the others add to P(all > 0).

    Along a path they grow in proportion, as s from 0 to 1. Of the determinant of all correlations is left a share
    cos^2 phi, with sin phi in proportion to s: what is integrated over phi is smooth, up to where a variable is decided
    by the last one and another, or, if there are means, by all others.
    """
    n = places.size - 1
    one = places[n]
    largest, left_by_few = 0.0, 1.0
    for x in range(n):
        i, j = places[x], places[(x + 1) % n]
        largest = max(largest, abs(q[one, i]))
        left_by_few = min(left_by_few, given[i, one, one] if n == 2 else _left_by_two(given, i, j, one))
    if largest == 0.0:
        return 0.0
    by_all = _left_by_two(given, places[0], places[1], one) if n == 2 else _left_by_three(given, places)
    left = min(left_by_few, by_all)
    end = math.atan2(math.sqrt(max(1.0 - left, largest * largest)), math.sqrt(left))
    # Imaginary part of the next singularity but that at pi/2, which is where there are means alone.
    imaginary = math.acosh(max(math.sin(end) / math.sqrt(max(1.0 - left_by_few, largest * largest)), 1.0))
    no_means = centred(p[places])
    total, high = 0.0, end
    while high > SHORTEST_PANEL:
        distance = math.hypot(0.5 * math.pi - high, imaginary if no_means else 0.0)
        low = max(high - max(LONG * distance, SHORTEST_PANEL), 0.0)
        if high - low <= SHORT * distance:
            total += _panel(p, q, given, places, end, low, high, FEW_NODES, FEW_WEIGHTS)
        else:
            total += _panel(p, q, given, places, end, low, high, NODES, WEIGHTS)
        high = low
    return total / (2.0 * math.pi)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _left_by_two(given, i, j, one):  # type: ignore[no-untyped-def]
    """Variance of one given i and j."""
    first = min(given[i, one, one], given[j, one, one])
    if given[i, j, j] <= SAME_FIELD:
        return first
    return min(first, max(given_two(given, i, j, one, one), 0.0) / given[i, j, j])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _left_by_three(given, places):  # type: ignore[no-untyped-def]
    """Variance of the last variable given the others."""
    i, j, k, one = places
    first, other, both = given_two(given, i, j, one, one), given_two(given, i, j, k, k), given_two(given, i, j, one, k)
    if given[i, j, j] <= SAME_FIELD or other <= SAME_FIELD * given[i, j, j]:
        return 1.0  # what pairs leave is less
    return max(determinant(first, other, both, both), 0.0) / (other * given[i, j, j])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _panel(p, q, given, places, end, low, high, nodes, weights):  # type: ignore[no-untyped-def]
    """Integral over angles phi from `low` to `high`, of which `end` is the last of the path."""
    half = 0.5 * (high - low)
    middle = 0.5 * (high + low)
    scale = 1.0 / math.sin(end)
    points = np.empty((4, nodes.size))
    for node in range(nodes.size):
        phi = middle + half * nodes[node]
        points[0, node] = math.sin(phi) * scale
        points[1, node] = max(math.sin(end - phi) * math.sin(end + phi), 0.0) * scale * scale
        points[2, node] = math.cos(phi)
        points[3, node] = weights[node] * half * scale * points[2, node]
    total = 0.0
    n = places.size - 1
    for x in range(n):
        i, j, k = places[x], places[(x + 1) % n], places[(x + 2) % n]
        total += _of_a_correlation(n, p, q, given, places[n], i, j, k, points)
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _of_a_correlation(n, p, q, given, one, i, j, k, points):  # type: ignore[no-untyped-def]
    """Integral of what the correlation of i with the last variable adds, while those of the others grow, too.

    A derivative by it is the density of both at 0, times the probability that the others are positive then.
    """
    c, left = q[one, i], given[one, i, i]
    sign = 1.0 if c > 0.0 else -1.0
    apart, together = 0.5 * (p[one] - sign * p[i]) ** 2, sign * p[one] * p[i]
    first = _moments_along_path(p, q, given, one, i, j)
    second = _moments_along_path(p, q, given, one, i, k)
    covariance = given_two(given, one, i, j, k)
    change = given[i, j, k] - covariance
    whole = math.sqrt(max(given_two(given, i, j, k, k), 0.0))
    total = 0.0
    for node in range(points.shape[1]):
        s, rest, cosine, weight = points[0, node], points[1, node], points[2, node], points[3, node]
        variance = max(left + c * c * rest, SHORTEST_PANEL * SHORTEST_PANEL)
        root = math.sqrt(variance)
        density = weight / root
        if apart != 0.0 or together != 0.0:
            density *= exp_minus(max(apart / variance + together / (1.0 + s * abs(c)), 0.0))
        x = _mean_along_path(first, s, rest, variance)
        if n == 2:
            total += density * orthant_of_one(x)
            continue
        y = _mean_along_path(second, s, rest, variance)
        both, along = covariance + change * rest, whole * cosine * root
        if min(first[3] + rest * first[4], second[3] + rest * second[4]) <= SAME_FIELD * variance:
            both, along = 0.0, 1.0  # one of the two has its sign for certain
        if x == 0.0 and y == 0.0:
            total += density * _of_two_centred(both, along)
        else:
            total += density * call(orthant_of_two, x, y, both, along)
    return c * total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _moments_along_path(p, q, given, one, i, j):  # type: ignore[no-untyped-def]
    """Coefficients in 1 - s and 1 - s^2 of mean and variance of j given that i and the last variable are 0.

    Both are times the variance of i given the last variable.
    """
    c = q[one, i]
    mean, other = p[j] - q[one, j] * p[one], p[i] - c * p[one]
    variance = given_two(given, one, i, j, j)
    return (
        determinant(mean, given[one, i, i], given[one, i, j], other),
        given[i, one, j] * p[one],
        c * (c * p[j] - q[one, j] * p[i]),
        variance,
        given[i, j, j] - variance,
    )


@numba.njit(inline="always", error_model="numpy")
def _mean_along_path(moments, s, rest, variance):  # type: ignore[no-untyped-def]
    """Mean in standard deviations; see `_moments_along_path`."""
    mean = moments[0] + rest / (1.0 + s) * moments[1] + rest * moments[2]
    if mean == 0.0:
        return 0.0
    return mean / math.sqrt(variance * max(moments[3] + rest * moments[4], SAME_FIELD * variance))
