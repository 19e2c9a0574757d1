"""Expectations for the activation max(x, 0) and centred fields, in closed form but for the orthants of four variables.

The expectation of g'_k g'_j g_a g_b is E[h_a h_b; h_i > 0 for all i in I], with the set I of its distinct indices.
Stein's lemma, applied to h_a and then to h_b, leaves densities of fields at 0 and orthants of what remains.

Orthants are the probabilities that up to four centred Gaussian variables are all positive. Correlations near 1 decide
how accurate they are, so that determinants of two rows are computed without cancellation, and angles from them, never
from 1 - q^2.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial.legendre import leggauss

from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba

SAME_FIELD = 1e-15
"""Variance of a field given another one, relative to its own, below which it is a multiple of it, to rounding."""

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
def relu_expectations(K, C, u, A, H, D):  # type: ignore[no-untyped-def]
    """Write the expectations that drive K students whose fields have no mean; see `erf_expectations`."""
    n, square = u.size, 0.0
    size = np.empty(n)
    q = np.empty((n, n))
    given = np.empty((n, n, n))
    for a in range(n):
        size[a] = math.sqrt(max(C[a, a], 0.0))
    call(correlate, n, C, q, given)
    for k in range(K):
        D[k] = curvature = 0.0
        for a in range(n):
            D[k] += u[a] * call(product_of_two, C, k, a)
            A[k, a] = u[k] * u[a] * (0.5 if a == k else 0.25 + angle(q, given, k, a) / (2.0 * math.pi))
            if a != k and C[k, k] > 0.0:
                curvature += u[a] * size[a] / size[k] * math.sqrt(given[k, a, a]) / (2.0 * math.pi)  # g'' is a delta
        A[k, k] += u[k] * curvature
    for a in range(n):
        for b in range(n):
            square += u[a] * u[b] * call(product_of_two, C, a, b)
    for k in range(K):
        for j in range(k, K):
            total = 0.0
            for a in range(n):
                for b in range(a + 1):
                    if k == j or a == b or a in (k, j) or b in (k, j):  # three units or less
                        found = call(_product_of_four, size, q, given, k, j, a, b)
                        total += (1.0 if a == b else 2.0) * u[a] * u[b] * found
            H[k, j] = u[k] * u[j] * total
    call(_add_four_units, K, u, size, q, given, H)
    for k in range(K):
        for j in range(k):
            H[k, j] = H[j, k]
    return 0.5 * square


@numba.njit(cache=True, nogil=True, error_model="numpy")
def product_of_two(C, a, b):  # type: ignore[no-untyped-def]
    """E[g_a g_b]."""
    if a == b:
        return 0.5 * C[a, a]
    root = math.sqrt(max(determinant(C[a, a], C[b, b], C[a, b], C[a, b]), 0.0))
    angle = math.atan2(C[a, b], root) if C[a, b] != 0.0 else 0.0
    return (root + C[a, b] * (0.5 * math.pi + angle)) / (2.0 * math.pi)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_four_units(K, u, size, q, given, H):  # type: ignore[no-untyped-def]
    """Add what four different units give to H[k, j], k < j: the integral in an orthant is one for all their pairs."""
    n = u.size
    chosen, density = np.empty(4, np.int64), np.empty((4, 4))
    for a in range(K):
        for b in range(a + 1, K):
            for c in range(b + 1, n):
                for d in range(c + 1, n):
                    chosen[0], chosen[1], chosen[2], chosen[3] = a, b, c, d
                    apart = _all_apart(size, given, chosen)
                    probability = 0.0
                    if apart:
                        probability = call(_corner, 4, q, given, chosen, density)
                    for y in range(1, 4):
                        for x in range(y if chosen[y] < K else 0):
                            first = 0 if x > 0 else (1 if y > 1 else 2)
                            second = 6 - x - y - first
                            k, j, e, f = chosen[x], chosen[y], chosen[first], chosen[second]
                            if apart:
                                found = _moment(4, q, given, chosen, probability, density, first, second)
                                found *= size[e] * size[f]
                            else:
                                found = call(_product_of_four, size, q, given, k, j, e, f)
                            H[k, j] += 2.0 * u[k] * u[j] * u[e] * u[f] * found


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _all_apart(size, given, chosen):  # type: ignore[no-untyped-def]
    """Whether no field is 0, and none a multiple of another one."""
    for x in range(chosen.size):
        if size[chosen[x]] == 0.0:
            return False
        for y in range(x):
            if given[chosen[x], chosen[y], chosen[y]] <= SAME_FIELD:
                return False
    return True


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _product_of_four(size, q, given, k, j, a, b):  # type: ignore[no-untyped-def]
    """E[g'_k g'_j g_a g_b]."""
    if size[a] == 0.0 or size[b] == 0.0:
        return 0.0
    factor = 1.0
    n = 0
    first = 0
    second = 0
    chosen, density = np.empty(4, np.int64), np.empty((4, 4))
    for place, index in enumerate((a, b, k, j)):
        if size[index] == 0.0:  # a field that is 0 is positive half of the time
            factor *= 0.5 if place < 3 or index != k else 1.0
            continue
        found = -1
        for i in range(n):
            known = chosen[i]
            if index == known or given[known, index, index] <= SAME_FIELD:
                if q[index, known] < 0.0:
                    return 0.0
                found = i
        if found < 0:
            found = n
            chosen[n] = index
            n = n + 1
        if place == 1:
            second = found
    probability = call(_corner, n, q, given, chosen, density)
    return factor * size[a] * size[b] * _moment(n, q, given, chosen, probability, density, first, second)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _corner(n, q, given, chosen, density):  # type: ignore[no-untyped-def]
    """Write densities of two of n fields at 0 where all others are positive; return P(all fields > 0)."""
    for x in range(n):
        for y in range(x):
            i, j = chosen[x], chosen[y]
            others = 0.5 ** (n - 2)
            if n == 4:
                first = 0 if y > 0 else (1 if x > 1 else 2)
                two = angle_given_two(given, i, j, chosen[first], chosen[6 - x - y - first])
                others += two / (2.0 * math.pi)
            density[x, y] = density[y, x] = others / (2.0 * math.pi * math.sqrt(given[i, j, j]))
    return call(orthant, n, q, given, chosen)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _moment(n, q, given, chosen, probability, density, a, b):  # type: ignore[no-untyped-def]
    """E[h_a h_b; all h > 0] of n fields in units of their standard deviations; no two are multiples of each other."""
    total = q[chosen[a], chosen[b]] * probability
    for x in range(n):
        if x == b:
            continue
        inner = 0.0
        for y in range(n):
            if y != x:
                inner += given[chosen[x], chosen[b], chosen[y]] * density[x, y]
        total += q[chosen[a], chosen[x]] * inner
    return total


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
    three = max(given_two(given, i, j, k, k), 0.0)
    explained = 0.0
    decided = 0.0
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
    half = 0.5 * (high - low)
    middle = 0.5 * (high + low)
    total = 0.0
    scale = 1.0 / math.sin(end)
    root_of_three = math.sqrt(three)
    correlation = np.empty(3)
    ends = np.empty((3, 2))
    rest = np.empty(3)
    for x in range(3):
        i = others[x]
        j = others[x - 1]
        k = others[x - 2]
        correlation[x], rest[x] = q[one, i], given[one, i, i]
        ends[x, 0] = given[i, j, k]
        ends[x, 1] = given_two(given, one, i, j, k)
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
