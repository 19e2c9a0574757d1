"""Expectations for the activation max(x, 0), from moments of fields that are all positive.

The expectation of g'_k g'_j g_a g_b is E[h_a h_b; h_i > 0 for all i in I], with the set I of its distinct indices.
Stein's lemma, applied to h_a and then to h_b, leaves densities of fields at 0 and orthants of what remains: all moments
in a set of fields come from the same few of them.

Fields that are multiples of each other, such as those of a teacher that has been learnt, are merged. Elsewhere nothing
is singular where some fields decide another one: given them it has its sign for certain, or either where it is 0.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.families.hidden_manifold.expectations.orthants import (
    SAME_FIELD,
    centred,
    condition,
    determinant,
    given_two,
    orthant,
    orthant_of_one,
    orthant_of_two,
    standardise,
)
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba


@numba.njit(cache=True, nogil=True, error_model="numpy")
def relu_expectations(K, C, m, u, label_noise, A, H, G, D):  # type: ignore[no-untyped-def]
    """Write the expectations that drive K students; see `erf_expectations`."""
    n = u.size
    size, p = np.empty((2, n))
    q, given = np.empty((n, n)), np.empty((n, n, n))
    call(standardise, n, C, m, 0.0, size, p, q, given)
    kept, place = np.empty((2, n), np.int64)
    fields = _merge(n, p, q, given, kept, place)
    students = 0
    weight = np.zeros(n)
    for a in range(n):
        weight[place[a]] += u[a] * size[a]
        students = max(students, place[a] + 1) if a < K else students
    law = p, q, given, kept
    A_kept, H_kept = np.zeros((2, students, fields))
    G_kept, D_kept, curvature = np.zeros((3, students))
    sums = A_kept, H_kept, G_kept, D_kept, curvature
    error, chosen = 0.0, np.empty(4, np.int64)
    for a in range(fields):
        chosen[0] = a
        error += call(_add_set, law, weight, label_noise, chosen[:1], sums)
        for b in range(a + 1, fields):
            chosen[1] = b
            error += call(_add_set, law, weight, label_noise, chosen[:2], sums)
            for c in range(b + 1, fields if a < students else 0):  # a term has a student, of four different fields two
                chosen[2] = c
                call(_add_set, law, weight, label_noise, chosen[:3], sums)
                for d in range(c + 1, fields if b < students else 0):
                    chosen[3] = d
                    call(_add_set, law, weight, label_noise, chosen, sums)
    for k in range(K):
        x = place[k]
        G[k], D[k] = u[k] * G_kept[x], size[k] * D_kept[x]
        for a in range(n):
            A[k, a] = u[k] * u[a] * A_kept[x, place[a]]
        if size[k] > 0.0:
            A[k, k] += u[k] / size[k] * curvature[x]
        for j in range(K):
            H[k, j] = u[k] * u[j] * H_kept[min(x, place[j]), max(x, place[j])]
    return error


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _merge(n, p, q, given, kept, place):  # type: ignore[no-untyped-def]
    """Write which fields are kept, and the place among these of each field or of the one that it is a multiple of."""
    fields = 0
    for a in range(n):
        place[a] = fields
        for x in range(fields):
            b = kept[x]
            if q[a, b] > 0.0 and given[b, a, a] <= SAME_FIELD and abs(p[a] - p[b]) <= math.sqrt(SAME_FIELD):
                place[a] = x
                break
        if place[a] == fields:
            kept[fields], fields = a, fields + 1
    return fields


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_set(law, weight, label_noise, chosen, sums):  # type: ignore[no-untyped-def]
    """Add all terms whose different fields are those chosen, and return what these add to the generalisation error."""
    p, q, given, kept = law
    A, H, G, D, curvature = sums
    n, students = chosen.size, G.size
    own_p, own_q, own_given = np.empty(n), np.empty((n, n)), np.empty((n, n, n))
    for x in range(n):
        i = kept[chosen[x]]
        own_p[x] = p[i]
        for y in range(n):
            j = kept[chosen[y]]
            own_q[x, y] = q[i, j]
            for z in range(n):
                own_given[x, y, z] = given[i, j, kept[chosen[z]]]
    first, edge, second = np.empty(4), np.empty((4, 4)), np.empty((4, 4))
    probability = call(_moments, n, own_p, own_q, own_given, first, edge, second)
    for x in range(n):
        k, other = chosen[x], n - 1 - x
        if n <= 2 and k < students:
            scale = weight[chosen[other]]
            A[k, chosen[other]] = probability
            G[k] += scale * first[other]
            D[k] += scale * second[x, other]
            curvature[k] += scale * edge[x, other]  # g'' is a delta function
        for y in range(x, n):
            for z in range(n if chosen[y] < students else 0):
                for w in range(z + 1):
                    if (1 << x | 1 << y | 1 << z | 1 << w) == (1 << n) - 1:
                        twice = 1.0 if z == w else 2.0
                        H[k, chosen[y]] += twice * weight[chosen[z]] * weight[chosen[w]] * second[z, w]
    if n > 2:
        return 0.0
    if chosen[n - 1] < students:
        H[chosen[0], chosen[n - 1]] += label_noise * probability
    return (0.5 if n == 1 else 1.0) * weight[chosen[0]] * weight[chosen[n - 1]] * second[0, n - 1]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _moments(n, p, q, given, first, edge, second):  # type: ignore[no-untyped-def]
    """Write moments of n <= 4 fields h where all are positive, and return the probability of that.

    Parameters
    ----------
    n : int
    p, q, given : ndarray
        Law of the fields, as `standardise` writes it.
    first, second : ndarray, shape (4,) and (4, 4)
        Where E[h_a; all h > 0] and E[h_a h_b; all h > 0] go.
    edge : ndarray, shape (4, 4)
        Where E[delta(h_x) h_b; all other h > 0] goes.
    """
    single, density = np.zeros(4), np.zeros((4, 4))
    probability = call(orthant, n, p, q, given)
    if n < 3 or not centred(p):  # else their factors are 0
        _densities_of_one(n, p, q, given, single)
    for x in range(n):
        for y in range(x):
            density[x, y] = density[y, x] = _density_of_two(n, p, q, given, x, y)
    for x in range(n):
        for b in range(n):
            edge[x, b] = (p[b] - q[x, b] * p[x]) * single[x] if b != x else 0.0
            for y in range(n):
                edge[x, b] += given[x, b, y] * density[x, y]
    for a in range(n):
        first[a] = p[a] * probability
        for x in range(n):
            first[a] += q[a, x] * single[x]
    for a in range(n):
        for b in range(a + 1):
            second[a, b] = p[a] * first[b] + q[a, b] * probability
            for x in range(n):
                second[a, b] += q[a, x] * edge[x, b]
            second[b, a] = second[a, b]
    return probability


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _densities_of_one(n, p, q, given, single):  # type: ignore[no-untyped-def]
    """Write densities of each of n <= 4 fields at 0 where all others are positive."""
    size, means = np.empty((2, 3))
    q_given, given_more = np.empty((3, 3)), np.empty((3, 3, 3))
    for x in range(n):
        single[x] = _normal_density(p[x])
        if n == 2:
            y = 1 - x
            single[x] *= orthant_of_one(_in_deviations(p[y] - q[x, y] * p[x], given[x, y, y]))
        elif n > 2:
            call(condition, n, p, q, given, x, size, means, q_given, given_more)
            single[x] *= call(orthant, n - 1, means, q_given, given_more)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _density_of_two(n, p, q, given, x, y):  # type: ignore[no-untyped-def]
    """Density of two of n <= 4 fields at 0, x > y, where all others are positive."""
    left = given[x, y, y]
    if left <= SAME_FIELD:  # both are 0 at once, or never
        return 0.0
    mean = p[y] - q[x, y] * p[x]
    density = _normal_density(p[x]) * _normal_density(mean / math.sqrt(left)) / math.sqrt(left)
    if n == 2:
        return density
    i = 0 if y > 0 else (1 if x > 1 else 2)
    variance = given_two(given, x, y, i, i)
    first = determinant(p[i] - q[x, i] * p[x], left, given[x, y, i], mean)
    first = _in_deviations(first / left, variance / left)
    if n == 3:
        return density * orthant_of_one(first)
    j = 6 - x - y - i
    other, both = given_two(given, x, y, j, j), given_two(given, x, y, i, j)
    second = determinant(p[j] - q[x, j] * p[x], left, given[x, y, j], mean)
    second = _in_deviations(second / left, other / left)
    if max(variance, other) <= 10.0 * SAME_FIELD * left:  # rounded twice
        # Four fields in a plane: what noise of one size in all of them would do decides at their common zero.
        variance, other, both = 1.0, 1.0, 0.0
        for a, b in ((x, y), (y, x)):
            first_slope, second_slope = given[b, a, i] / given[b, a, a], given[b, a, j] / given[b, a, a]
            variance, other = variance + first_slope**2, other + second_slope**2
            both += first_slope * second_slope
    elif min(variance, other) <= SAME_FIELD * left:
        return density * orthant_of_one(first) * orthant_of_one(second)
    root = math.sqrt(max(determinant(variance, other, both, both), 0.0))
    return density * call(orthant_of_two, first, second, both, root)


@numba.njit(inline="always", error_model="numpy")
def _in_deviations(mean, variance):  # type: ignore[no-untyped-def]
    return mean / math.sqrt(max(variance, SAME_FIELD)) if mean != 0.0 else 0.0


@numba.njit(inline="always", error_model="numpy")
def _normal_density(x):  # type: ignore[no-untyped-def]
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) if x != 0.0 else 1.0 / math.sqrt(2.0 * math.pi)
