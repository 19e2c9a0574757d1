"""Expectations for the activation max(x, 0) and centred fields, in closed form but for the orthants of four variables.

The expectation of g'_k g'_j g_a g_b is E[h_a h_b; h_i > 0 for all i in I], with the set I of its distinct indices.
Stein's lemma, applied to h_a and then to h_b, leaves densities of fields at 0 and orthants of what remains.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from meanfield.families.hidden_manifold.expectations.orthants import angle, condition, determinant, orthant
from meanfield.numerics.compiled.separate_calls import call

SAME = 1e-15
"""Variance of a field given another one, relative to its own, below which it is a multiple of it, to rounding."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def relu_expectations(K, C, u, A, H, D):  # type: ignore[no-untyped-def]
    """Write the expectations that drive K students whose fields have no mean; see `erf_expectations`."""
    n, square = u.size, 0.0
    for k in range(K):
        D[k] = curvature = 0.0
        for a in range(n):
            D[k] += u[a] * call(product_of_two, C, k, a)
            A[k, a] = u[k] * u[a] * (0.5 if a == k else 0.25 + angle(C, k, a) / (2.0 * math.pi))
            if a != k and C[k, k] > 0.0:
                curvature += u[a] * _root(C, k, a) / (2.0 * math.pi * C[k, k])  # g'' is Dirac's delta
        A[k, k] += u[k] * curvature
    for a in range(n):
        for b in range(n):
            square += u[a] * u[b] * call(product_of_two, C, a, b)
    for k in range(K):
        for j in range(k, K):
            total = 0.0
            for a in range(n):
                total += u[a] * u[a] * call(_product_of_four, C, k, j, a, a)
                for b in range(a):
                    total += 2.0 * u[a] * u[b] * call(_product_of_four, C, k, j, a, b)
            H[k, j] = H[j, k] = u[k] * u[j] * total
    return 0.5 * square


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _root(C, a, b):  # type: ignore[no-untyped-def]
    """Root of the determinant of the covariance of two fields."""
    return math.sqrt(max(determinant(C[a, a], C[b, b], C[a, b], C[a, b]), 0.0))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def product_of_two(C, a, b):  # type: ignore[no-untyped-def]
    """E[g_a g_b]."""
    return 0.5 * C[a, a] if a == b else (_root(C, a, b) + C[a, b] * (0.5 * math.pi + angle(C, a, b))) / (2.0 * math.pi)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _product_of_four(C, k, j, a, b):  # type: ignore[no-untyped-def]
    """E[g'_k g'_j g_a g_b]."""
    if C[a, a] <= 0.0 or C[b, b] <= 0.0:
        return 0.0
    factor, n, first, second = 1.0, 0, 0, 0
    chosen = np.empty(4, np.int64)
    for place, index in enumerate((a, b, k, j)):
        if C[index, index] <= 0.0:  # a field that is 0 is positive half of the time
            factor *= 0.5 if place < 3 or index != k else 1.0
            continue
        found = -1
        for i in range(n):
            known = chosen[i]
            if index == known or _merged(C, index, known):
                if C[index, known] < 0.0:
                    return 0.0
                found = i
                if place == 1:
                    factor *= math.sqrt(C[index, index] / C[known, known])
        if found < 0:
            found, chosen[n], n = n, index, n + 1
        if place == 1:
            second = found
    S = np.empty((n, n))
    for x in range(n):
        for y in range(n):
            S[x, y] = C[chosen[x], chosen[y]]
    return factor * call(_positive_moment, n, S, first, second)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _merged(C, a, b):  # type: ignore[no-untyped-def]
    """Whether one field is a multiple of the other, to rounding."""
    return determinant(C[a, a], C[b, b], C[a, b], C[a, b]) <= SAME * C[a, a] * C[b, b]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _positive_moment(n, S, a, b):  # type: ignore[no-untyped-def]
    """E[h_a h_b; all h > 0] of n fields, no two of which are multiples of each other."""
    total = S[a, b] * call(orthant, n, S)
    once, twice, rest = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    for i in range(n):
        if i == b:
            continue
        call(condition, n, S, i, once)
        inner = 0.0
        for j in range(n):
            if j == i or once[j, j] <= 0.0:
                continue
            m = 0
            if n > 2:
                call(condition, n, once, j, twice)
                m = call(_without, n, twice, i, j, rest)
            inner += once[b, j] / math.sqrt(2.0 * math.pi * once[j, j]) * call(orthant, m, rest)
        total += S[a, i] / math.sqrt(2.0 * math.pi * S[i, i]) * inner
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _without(n, S, i, j, rest):  # type: ignore[no-untyped-def]
    """Write the covariance of all variables but two, and return how many they are."""
    row = 0
    for x in range(n):
        if x in (i, j):
            continue
        column = 0
        for y in range(n):
            if y in (i, j):
                continue
            rest[row, column] = S[x, y]
            column += 1
        row += 1
    return row
