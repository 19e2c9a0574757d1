"""Expectations for any activation, by nested quadrature over up to four fields at a time.

Fields are sums of independent normal variables, by Cholesky's factor of their covariance. The variable of each field
is integrated at given ones of the fields before it: by the trapezoidal rule where the activation is smooth, and between
its kinks by Gauss-Legendre rules, so that what is integrated next is smooth again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.polynomial.legendre import leggauss

from meanfield.ingredients.activations import Activation
from meanfield.numerics.compiled.scalar_functions import call_scalar
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.quadrature import gaussian_trapezoid
from meanfield.typing import FloatArray, IntArray

FARTHEST = 8.5
"""Largest size of a normal variable, beyond which 2e-17 of the probability lies."""

FIXED = 1e-14
"""Variance of a field given those before it, relative to its own, below which they decide it, to rounding."""


class Rule(NamedTuple):
    """Activations of students and teachers, and rules for a normal variable.

    Parameters
    ----------
    functions : ndarray of int, shape (4,)
        Addresses of g and g' of the student, and of the teacher.
    kinks, teacher_kinks : ndarray
        Where g or a derivative of it jumps.
    x, weight : ndarray, shape (order,)
        Trapezoidal rule, with weights that add up to 1.
    node, node_weight : ndarray, shape (order,)
        Gauss-Legendre rule on [-1, 1].
    """

    functions: IntArray
    kinks: FloatArray
    teacher_kinks: FloatArray
    x: FloatArray
    weight: FloatArray
    node: FloatArray
    node_weight: FloatArray


def make_rule(student: Activation, teacher: Activation, order: int) -> Rule:
    """Rule with `order` points for a variable, or for each piece of it between kinks."""
    addresses = np.array([*student.addresses, *teacher.addresses], dtype=np.int64)
    kinks = [np.array(sorted(activation.kinks), dtype=float) for activation in (student, teacher)]
    x, weight = gaussian_trapezoid(order, FARTHEST)
    node, node_weight = leggauss(order)
    return Rule(addresses, kinks[0], kinks[1], x, weight, node, node_weight)


def no_rule() -> Rule:
    """Rule for activations whose expectations need none."""
    nothing = np.empty(0)
    return Rule(np.zeros(4, dtype=np.int64), nothing, nothing, nothing, nothing, nothing, nothing)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def quadrature_expectations(K, C, m, u, rule, A, H, G, D):  # type: ignore[no-untyped-def]
    """Write the expectations that drive K students; see `erf_expectations`."""
    n, square = u.size, 0.0
    for k in range(K):
        G[k] = D[k] = curvature = 0.0
        for a in range(n):
            slopes = call(average, k, a, -1, -1, False, K, C, m, rule)
            A[k, a] = u[k] * u[a] * slopes
            G[k] += u[k] * u[a] * call(average, k, -1, a, -1, False, K, C, m, rule)
            D[k] += u[a] * call(average, -1, -1, k, a, False, K, C, m, rule)
            if C[k, k] > 0.0:  # Stein's lemma in place of a second derivative
                moment = math.sqrt(C[k, k]) * call(average, k, -1, a, -1, True, K, C, m, rule)
                curvature += u[a] * (moment - C[k, a] * slopes) / C[k, k]
        A[k, k] += u[k] * curvature
        for j in range(k, K):
            total = 0.0
            for a in range(n):
                total += u[a] * u[a] * call(average, k, j, a, a, False, K, C, m, rule)
                for b in range(a):
                    total += 2.0 * u[a] * u[b] * call(average, k, j, a, b, False, K, C, m, rule)
            H[k, j] = H[j, k] = u[k] * u[j] * total
    for a in range(n):
        square += u[a] * u[a] * call(average, -1, -1, a, a, False, K, C, m, rule)
        for b in range(a):
            square += 2.0 * u[a] * u[b] * call(average, -1, -1, a, b, False, K, C, m, rule)
    return 0.5 * square


@numba.njit(cache=True, nogil=True, error_model="numpy")
def average(k, j, a, b, standardised, K, C, m, rule):  # type: ignore[no-untyped-def]
    """E[g'_k g'_j g_a g_b], without the factors whose index is -1.

    `standardised` adds the factor (h_k - m_k)/sqrt(C_kk).
    """
    numbers, n = np.zeros((5, 4), np.int64), 0
    field, slopes, values = numbers[0], numbers[1], numbers[2]
    for place, index in enumerate((k, j, a, b)):
        if index < 0:
            continue
        at = 0
        while at < n and field[at] != index:
            at += 1
        if at == n:
            field[n], n = index, n + 1
        if place < 2:
            slopes[at] += 1
        else:
            values[at] += 1
    factor = call(_factor, n, field, C)
    return call(_nested, n, standardised, numbers, factor, m, K, rule)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _factor(n, field, C):  # type: ignore[no-untyped-def]
    """Cholesky's factor of the covariance of some fields; its diagonal is 0 where those before decide a field."""
    L = np.zeros((n, n))
    for i in range(n):
        variance = C[field[i], field[i]]
        rest = variance
        for j in range(i):
            covariance = C[field[i], field[j]]
            for x in range(j):
                covariance -= L[i, x] * L[j, x]
            if L[j, j] > 0.0:
                L[i, j] = covariance / L[j, j]
            rest -= L[i, j] * L[i, j]
        if rest > FIXED * variance:
            L[i, i] = math.sqrt(rest)
    return L


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _nested(n, standardised, numbers, L, m, K, rule):  # type: ignore[no-untyped-def]
    """Average of the factors of n fields: an outer variable takes its next point once the inner ones have had all."""
    field, slopes, values, piece, point = numbers
    z, total, factor, centre, low, high = np.zeros((6, 5))
    level, entered = 0, True
    while level >= 0:
        student, width = field[level] < K, L[level, level]
        kinks = rule.kinks if student else rule.teacher_kinks
        if entered:
            total[level], piece[level], point[level], centre[level] = 0.0, 0, 0, m[field[level]]
            for i in range(level):
                centre[level] += L[level, i] * z[i]
            low[level] = -FARTHEST
            high[level] = _end(0, kinks, centre[level], width, -FARTHEST)
        points = 1 if width == 0.0 else rule.x.size
        while point[level] == points and width > 0.0 and piece[level] < kinks.size:
            piece[level], point[level], low[level] = piece[level] + 1, 0, high[level]
            high[level] = _end(piece[level], kinks, centre[level], width, low[level])
        if point[level] == points:
            level, entered = level - 1, False
            if level >= 0:
                total[level] += factor[level] * total[level + 1]
            continue
        i = point[level]
        point[level] += 1
        if width == 0.0:
            z[level], weight = 0.0, 1.0
        elif kinks.size == 0:
            z[level], weight = rule.x[i], rule.weight[i]
        else:
            half = 0.5 * (high[level] - low[level])
            z[level] = 0.5 * (high[level] + low[level]) + half * rule.node[i]
            weight = half * rule.node_weight[i] * math.exp(-0.5 * z[level] ** 2) / math.sqrt(2.0 * math.pi)
        weight *= _value(centre[level] + width * z[level], slopes[level], values[level], student, rule)
        if standardised and level == 0:
            weight *= z[0]
        entered = level + 1 < n
        if entered:
            factor[level] = weight
            level += 1
        else:
            total[level] += weight
    return total[0]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _end(piece, kinks, centre, width, low):  # type: ignore[no-untyped-def]
    """Upper end of a piece between kinks, in units of the normal variable."""
    if piece < kinks.size and width > 0.0:
        return min(max((kinks[piece] - centre) / width, low), FARTHEST)
    return FARTHEST


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _value(h, slopes, values, student, rule):  # type: ignore[no-untyped-def]
    """g'(h)^slopes g(h)^values."""
    functions = rule.functions
    result = 1.0
    if slopes > 0:
        slope = call_scalar(functions[1 if student else 3], h)
        result *= slope if slopes == 1 else slope * slope
    if values > 0:
        value = call_scalar(functions[0 if student else 2], h)
        result *= value if values == 1 else value * value
    return result
