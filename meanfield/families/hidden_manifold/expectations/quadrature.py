"""Expectations for any activation, by nested quadrature over up to four fields at a time.

Fields are sums of independent normal variables, by Cholesky's factor of their covariance. The variable of each field
is integrated at given ones of the fields before it: by the trapezoidal rule where the activation is smooth, and between
its kinks by Gauss-Legendre rules, so that what is integrated next is smooth again. Smooth averages over the last of
three or four fields come from a table.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.polynomial.polynomial import polyfromroots

from meanfield.ingredients.activations import Activation
from meanfield.numerics.compiled.array_operations import sum_of
from meanfield.numerics.compiled.exponential import exp_between
from meanfield.numerics.compiled.scalar_functions import call_loop, compile_loop
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.numerics.quadrature import gaussian_trapezoid
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray

FARTHEST_NORMAL = 8.5
"""Largest size of a normal variable, beyond which 2e-17 of the probability lies."""

LANES = 8
"""Functions are evaluated at a multiple of so many points: what is left over by a loop over vectors takes longest."""

TABLE_POINTS = 12
"""Number of points of a polynomial, half of them on either side of its cell. At spacing h it is off by 26,000 h^12
f^(12)/12! at most: 1e-10 for tanh at h = 0.1."""


class Rule(NamedTuple):
    """Activations of students and teachers, and rules for a normal variable.

    Parameters
    ----------
    loops : ndarray of int, shape (4,)
        Addresses of loops of g and g' of the student, and of the teacher.
    kinks, teacher_kinks : ndarray
        Where g or a derivative of it jumps.
    x, weight : ndarray, shape (order,)
        Trapezoidal rule, with weights that add up to 1.
    node, node_weight : ndarray, shape (order,)
        Gauss-Legendre rule on [-1, 1].
    """

    loops: IntArray
    kinks: FloatArray
    teacher_kinks: FloatArray
    x: FloatArray
    weight: FloatArray
    node: FloatArray
    node_weight: FloatArray


def make_rule(student: Activation, teacher: Activation, order: int) -> Rule:
    """Rule with `order` points for a variable, or for each piece of it between kinks."""
    functions = student.value, student.slope, teacher.value, teacher.slope
    addresses = np.array([compile_loop(function) for function in functions], dtype=np.int64)
    kinks = [np.array(sorted(activation.kinks), dtype=float) for activation in (student, teacher)]
    # Tanh has its poles 10/(2 pi) from the real axis: cutting exp(-x^2/2) there costs what the spacing does.
    x, weight = gaussian_trapezoid(order, min(FARTHEST_NORMAL, (10.0 * (order - 1)) ** (1.0 / 3.0)))
    node, node_weight = leggauss(order)
    return Rule(addresses, kinks[0], kinks[1], x, weight, node, node_weight)


def no_rule() -> Rule:
    """Rule for activations whose expectations need none."""
    nothing = np.empty(0)
    return Rule(np.zeros(4, dtype=np.int64), nothing, nothing, nothing, nothing, nothing, nothing)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def quadrature_expectations(K, C, m, u, label_noise, rule, A, H, G, D):  # type: ignore[no-untyped-def]
    """Write the expectations that drive K students; see `erf_expectations`."""
    n = u.size
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
            total = label_noise
            if label_noise > 0.0:
                total *= call(average, k, j, -1, -1, False, K, C, m, rule)
            for a in range(n):
                total += u[a] * u[a] * call(average, k, j, a, a, False, K, C, m, rule)
                for b in range(a):
                    total += 2.0 * u[a] * u[b] * call(average, k, j, a, b, False, K, C, m, rule)
            H[k, j] = H[j, k] = u[k] * u[j] * total
    return quadrature_error(K, C, m, u, rule)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def quadrature_error(K, C, m, u, rule):  # type: ignore[no-untyped-def]
    """Generalisation error E[Delta^2]/2; see `erf_expectations`."""
    square = 0.0
    for a in range(u.size):
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
        if rest > 1e-14 * variance:  # else the fields before it decide it, to rounding
            L[i, i] = math.sqrt(rest)
    return L


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _nested(n, standardised, numbers, L, m, K, rule):  # type: ignore[no-untyped-def]
    """Average of the factors of n fields.

    That over the last field alone is a function of its mean given the fields before. Where it is smooth and needed at
    many points, a table of it saves an integral.
    """
    most = rule.x.size * (1 + max(rule.kinks.size, rule.teacher_kinks.size)) + LANES
    z = np.empty((4, most))
    weight = np.empty((4, most))
    work = np.empty((2, most))
    total = np.empty(4)
    cells = 0
    if n > 2 and rule.kinks.size == 0 and rule.teacher_kinks.size == 0:
        reach = size = 0.0
        for i in range(n):
            size += L[n - 1, i] * L[n - 1, i]
            reach += abs(L[n - 1, i]) * rule.x[rule.x.size - 1] if i < n - 1 else 0.0
        # At a sixth of the spacing of the trapezoidal rule errors of polynomials are below those of it.
        spacing = max((1.0 / 6.0) * (rule.x[1] - rule.x[0]) * math.sqrt(size), 1e-300)
        cells = 2 * (int(reach / spacing) + 1)
    table = np.empty((cells, TABLE_POINTS))
    if cells > 0:
        averages = np.empty(cells + TABLE_POINTS - 1)
        _tabulate(n, numbers, L, m, K, rule, z[0], weight[0], work, spacing, averages, table)
        return _average(n - 1, standardised, numbers, L, m, K, rule, z, weight, work, total, spacing, table)
    return _average(n, standardised, numbers, L, m, K, rule, z, weight, work, total, 1.0, table)


@without_reference_counts()
def _tabulate(n, numbers, L, m, K, rule, z, weight, work, spacing, averages, table):  # type: ignore[no-untyped-def]
    """Write polynomials of the average over the last field, one for each cell of its mean about that of the law."""
    field = numbers[0, n - 1]
    for i in range(averages.size):
        centre = m[field] + (i - 0.5 * (averages.size - 1)) * spacing
        count = call(
            _weigh, centre, L[n - 1, n - 1], field < K, numbers[1, n - 1], numbers[2, n - 1], rule, z, weight, work
        )
        averages[i] = sum_of(weight[:count])
    fill_table(averages, table)


@without_reference_counts()
def _average(n, standardised, numbers, L, m, K, rule, z, weight, work, total, spacing, table):  # type: ignore[no-untyped-def]
    """Average of the factors of n fields, and of what a table says about another one if it is not empty.

    An outer variable takes its next point once the inner ones have had all.
    """
    field, count, point = numbers[0], numbers[3], numbers[4]
    level = 0
    while True:
        centre, width = m[field[level]], L[level, level]
        for i in range(level):
            centre += L[level, i] * z[i, point[i]]
        slopes, values = numbers[1, level], numbers[2, level]
        whole = call(_weigh, centre, width, field[level] < K, slopes, values, rule, z[level], weight[level], work)
        count[level], products = whole, weight[level, :whole]
        while count[level] > 1 and products[count[level] - 1] == 0.0:  # what fills up lanes
            count[level] -= 1
        if standardised and level == 0:
            for i in range(count[level]):
                products[i] *= z[level, i]
        point[level], total[level] = 0, 0.0
        if level < n - 1:
            level += 1
            continue
        if table.shape[0] > 0:
            place = 0.5 * table.shape[0]
            for i in range(level):
                place += L[n, i] * z[i, point[i]] / spacing
            multiply_by_table(place, L[n, level] / spacing, z[level], table, products)
        average = sum_of(products)
        while True:  # the average at this level is known: return to the next outer variable that has points left
            level -= 1
            if level < 0:
                return average
            total[level] += weight[level, point[level]] * average
            point[level] += 1
            if point[level] < count[level]:
                break
            average = total[level]
        level += 1


@without_reference_counts()
def _weigh(centre, width, student, slopes, values, rule, z, weight, work):  # type: ignore[no-untyped-def]
    """Write points and weights of a normal variable, times the factors of its field; return how many fill up lanes."""
    count = _points(centre, width, rule.kinks if student else rule.teacher_kinks, rule, z, weight)
    whole = (count + LANES - 1) // LANES * LANES
    places = work[0, :whole]
    results = work[1, :whole]
    products = weight[:whole]
    for i in range(count, whole):
        z[i], products[i] = 0.0, 0.0
    for i in range(whole):
        places[i] = centre + width * z[i]
    _multiply(rule.loops[1 if student else 3], slopes, places, results, products)
    _multiply(rule.loops[0 if student else 2], values, places, results, products)
    return whole


@without_reference_counts()
def _points(centre, width, kinks, rule, z, weight):  # type: ignore[no-untyped-def]
    """Write points and weights of a normal variable, and return how many they are."""
    if width == 0.0:
        z[0], weight[0] = 0.0, 1.0
        return 1
    if kinks.size == 0:
        for i in range(rule.x.size):
            z[i], weight[i] = rule.x[i], rule.weight[i]
        return rule.x.size
    low, count = -FARTHEST_NORMAL, 0
    for piece in range(kinks.size + 1):
        high = FARTHEST_NORMAL
        if piece < kinks.size:
            high = min(max((kinks[piece] - centre) / width, low), FARTHEST_NORMAL)
        half, middle = 0.5 * (high - low), 0.5 * (high + low)
        for i in range(rule.node.size if half > 0.0 else 0):
            x = middle + half * rule.node[i]
            z[count] = x
            weight[count] = half * rule.node_weight[i] * exp_between(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
            count += 1
        low = high
    return count


@without_reference_counts(inline="always")
def _multiply(loop, power, x, values, products):  # type: ignore[no-untyped-def]
    """Multiply numbers by a power 0, 1 or 2 of a function at places x."""
    if power > 0:
        call_loop(loop, x, values)
        for i in range(x.size):
            products[i] *= values[i] if power == 1 else values[i] * values[i]


def _lagrange() -> FloatArray:
    """Coefficients of Lagrange's polynomials, a row each, for points at unit distances about 0."""
    points = np.arange(TABLE_POINTS) - 0.5 * (TABLE_POINTS - 1)
    others = [np.delete(points, i) for i in range(TABLE_POINTS)]
    return np.array([polyfromroots(x) / np.prod(point - x) for point, x in zip(points, others, strict=True)])


LAGRANGE = _lagrange()


@without_reference_counts()
def fill_table(values, table):  # type: ignore[no-untyped-def]
    """Write the coefficients of polynomials.

    Parameters
    ----------
    values : ndarray, shape (cells + TABLE_POINTS - 1,)
        The function at points of which the first cell has the sixth and the seventh as its ends.
    table : ndarray, shape (cells, TABLE_POINTS)
    """
    for cell in range(table.shape[0]):
        for k in range(TABLE_POINTS):
            table[cell, k] = 0.0
        for i in range(TABLE_POINTS):
            for k in range(TABLE_POINTS):
                table[cell, k] += LAGRANGE[i, k] * values[cell + i]


@without_reference_counts()
def multiply_by_table(place, step, z, table, products):  # type: ignore[no-untyped-def]
    """Multiply numbers by the function at `place` + `step` z, in cells from the beginning of the first one."""
    last = table.shape[0] - 1
    for i in range(products.size):
        x = place + step * z[i]
        cell = min(max(int(x), 0), last)
        t, value = x - cell - 0.5, 0.0
        for k in range(TABLE_POINTS):
            value = value * t + table[cell, TABLE_POINTS - 1 - k]
        products[i] *= value
