"""Expectations for the activation max(x, 0) and centred fields, in closed form but for the orthants of four variables.

The expectation of g'_k g'_j g_a g_b is E[h_a h_b; h_i > 0 for all i in I], with the set I of its distinct indices.
Stein's lemma, applied to h_a and then to h_b, leaves densities of fields at 0 and orthants of what remains.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.families.hidden_manifold.expectations.orthants import (
    angle,
    angle_given_two,
    correlate,
    determinant,
    orthant,
)
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba

SAME_FIELD = 1e-15
"""Variance of a field given another one, relative to its own, below which it is a multiple of it, to rounding."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def relu_expectations(K, C, u, A, H, D):  # type: ignore[no-untyped-def]
    """Write the expectations that drive K students whose fields have no mean; see `erf_expectations`."""
    n, square = u.size, 0.0
    size, q, given = np.empty(n), np.empty((n, n)), np.empty((n, n, n))
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
                    apart, probability = _all_apart(size, given, chosen), 0.0
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
    factor, n, first, second = 1.0, 0, 0, 0
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
            found, chosen[n], n = n, index, n + 1
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
