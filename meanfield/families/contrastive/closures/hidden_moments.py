"""Averages of functions of B with first and second moments of X = c - q B, the part of c that changes q.

In a component of the `Mixture` c_k has mean m_k and a Gaussian part of variance v_k, so that (c, B) is Gaussian. With
M = m.q, D^2 = 1 - q.q + sum_k q_k^2 v_k and y = (B - M)/D,

    E[X_f | B] = (m_f - q_f M) + y (q_f v_f/D - q_f D)
    Cov[X_f, X_g | B] = v_f delta_fg - q_f q_g v_f v_g/D^2

which makes density times moment a Gaussian times a polynomial in y. Its coefficients are linear in the second moments
of z = (1, m, v), so that components which lie close together can share nodes, as they do in `mixture`. Nothing is
divided by 1 - q.q, and X is small where |q| -> 1 without cancellation between averages.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from meanfield.families.contrastive.closures.averages import refined
from meanfield.families.contrastive.closures.densities import PIECE, TAIL
from meanfield.families.contrastive.closures.mixture import (
    LEAST_VARIANCE,
    box_nodes,
    fewer_means,
    fewer_variances,
    random_variance,
    widest_first,
)
from meanfield.numerics.compiled.array_operations import copy, largest_of, least_of
from meanfield.numerics.compiled.exponential import LAST_EXPONENT, exp_minus
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.piecewise import NODES, ORDER, WEIGHTS, interpolate, panel_of
from meanfield.typing import FloatArray

MOST_FURTHER = 8.0
"""Largest number of pieces of a box beside a wider one, which smooths what they miss: more would make sums of boxes too
many."""

LEAST_SHARE = 0.02
"""Least standard deviation, relative to the widest box, for which nodes of sums of boxes are resolved: narrower
Gaussians would need too many."""

LEAST_OVERLAP = 1e-300
"""Overlap that replaces 0 for a uniform variable, which then does not change B."""

_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


class GaussianParts(NamedTuple):
    """Law of (c, B) at one q as Gaussian parts.

    Parameters
    ----------
    centre, deviation : ndarray, shape (parts,)
        M and D.
    moments : ndarray, shape (parts, (1 + 2 d1)^2)
        Probability times E[z z^T], flattened.
    """

    centre: FloatArray
    deviation: FloatArray
    moments: FloatArray


@numba.njit(cache=True, nogil=True, error_model="numpy")
def averages_with_hidden(table, mixture, q):  # type: ignore[no-untyped-def]
    """Averages of the rows f of a table, alone and with moments of X.

    Parameters
    ----------
    table : Table
    mixture : Mixture
    q : ndarray, shape (d1,)
        Overlaps, inside the unit ball or on its boundary.

    Returns
    -------
    ndarray, shape (rows, 1 + d1 + d1^2)
        <f>, then <X_f f>, then <X_f X_g f>.
    """
    parts = call(gaussian_parts, mixture, q)
    table = call(refined, table, parts.centre, parts.deviation, np.zeros(1))
    columns = 1 + q.size + q.size * q.size
    at_nodes = np.zeros((columns, table.nodes.size))
    direct = np.zeros((table.values.shape[0], columns))
    for a in range(parts.centre.size):
        _add_part(table, parts.centre[a], parts.deviation[a], _polynomials(parts, a, q), at_nodes, direct)
    return direct + table.values @ at_nodes.T


@numba.njit(cache=True, nogil=True, error_model="numpy")
def gaussian_parts(mixture, q):  # type: ignore[no-untyped-def]
    """Gaussian parts of (c, B), no more than averages at this q need; uniform variables become nodes."""
    squared = q * q
    rest = 1.0 - squared.sum()
    own = mixture.variance @ squared
    least = max(rest + least_of(own), LEAST_VARIANCE)
    deviation = math.sqrt(least)
    centre, moments = mixture.mean @ q, _listed(mixture)
    if largest_of(own) - least_of(own) <= 1e-15 * least:
        centre, moments = fewer_means(centre, moments, deviation / mixture.fineness)
        own = own[: centre.size]  # all the same
    shift, shift_moments = _sum_of_boxes(mixture, q, deviation)
    random, random_moments = _sum_of_variances(mixture, squared, least)
    count = centre.size * shift.size * random.size
    parts = GaussianParts(np.empty(count), np.empty(count), np.empty((count, moments.shape[1])))
    of_means = np.empty(moments.shape[1])
    new = 0
    for a in range(centre.size):
        for b in range(shift.size):
            _combine(moments[a], shift_moments[b], of_means)
            for v in range(random.size):
                parts.centre[new] = centre[a] + shift[b]
                parts.deviation[new] = math.sqrt(max(rest + own[a] + random[v], LEAST_VARIANCE))
                _combine(of_means, random_moments[v], parts.moments[new])
                new += 1
    return parts


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _listed(mixture):  # type: ignore[no-untyped-def]
    """Moments of the components in a list."""
    count, d1 = mixture.mean.shape
    size = 1 + 2 * d1
    moments, z = np.empty((count, size * size)), np.ones(size)
    for a in range(count):
        copy(mixture.mean[a], z[1 : 1 + d1])
        copy(mixture.variance[a], z[1 + d1 :])
        for i in range(size):
            for j in range(size):
                moments[a, i * size + j] = mixture.probability[a] * z[i] * z[j]
    return moments


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _single(place, size, probability, values):  # type: ignore[no-untyped-def]
    """Moments of a vector z of which only the entry `place` differs from 0, without the first moment, which is 1."""
    moments = np.zeros((values.size, size * size))
    for i in range(values.size):
        moments[i, 0] = probability[i]
        moments[i, place] = moments[i, place * size] = probability[i] * values[i]
        moments[i, place * size + place] = probability[i] * values[i] * values[i]
    return moments


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _combine(left, right, total):  # type: ignore[no-untyped-def]
    """Write the moments of the sum of two independent variables, whose means and variances are added, to `total`."""
    n = round(math.sqrt(left.size))
    total[0] = left[0] * right[0]
    for i in range(1, n):
        total[i] = total[i * n] = left[i] * right[0] + left[0] * right[i]
        for j in range(1, n):
            total[i * n + j] = left[i * n + j] * right[0] + left[0] * right[i * n + j]
            total[i * n + j] += left[i] * right[j] + left[j] * right[i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sums(left, left_moments, right, right_moments):  # type: ignore[no-untyped-def]
    """All sums of two variables, with their moments."""
    total = np.empty(left.size * right.size)
    moments = np.empty((total.size, left_moments.shape[1]))
    for a in range(left.size):
        for b in range(right.size):
            total[a * right.size + b] = left[a] + right[b]
            _combine(left_moments[a], right_moments[b], moments[a * right.size + b])
    return total, moments


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sum_of_boxes(mixture, q, deviation):  # type: ignore[no-untyped-def]
    """Nodes of the sum of all uniform variables, the widest first, with their moments."""
    size = 1 + 2 * q.size
    total, moments = np.zeros(1), _single(0, size, np.ones(1), np.ones(1))
    # One that does not move B has moments all the same.
    reach = np.maximum(np.abs(q), LEAST_OVERLAP) * mixture.half_width
    for k in widest_first(reach):
        pieces, shared = 2.0 * reach[k] / (PIECE * deviation), deviation
        if total.size > 1:
            pieces = min(pieces, MOST_FURTHER * mixture.fineness)
            shared = max(deviation, LEAST_SHARE * largest_of(reach))
        nodes, probability = box_nodes(0.5 * PIECE * pieces, mixture.fineness)
        values = mixture.half_width[k] * nodes
        total, moments = _sums(total, moments, q[k] * values, _single(1 + k, size, probability, values))
        total, moments = fewer_means(total, moments, shared / mixture.fineness)
    return total, moments


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sum_of_variances(mixture, squared, least):  # type: ignore[no-untyped-def]
    """Values of sum_k q_k^2 v_k with their moments, for averages over Gaussians of variance `least` more."""
    d1 = squared.size
    size = 1 + 2 * d1
    total, moments = np.zeros(1), _single(0, size, np.ones(1), np.ones(1))
    for k in range(d1):
        values, probability = random_variance(mixture, k)
        if values.size == 0:
            continue
        own = _single(1 + d1 + k, size, probability, values)
        reduced, own = fewer_variances(squared[k] * values, own, least, mixture.fineness)
        total, moments = _sums(total, moments, reduced, own)
        total, moments = fewer_variances(total, moments, least, mixture.fineness)
    return total, moments


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _polynomials(parts, a, q):  # type: ignore[no-untyped-def]
    """Coefficients of 1, y and y^2 in probability times 1, E[X_f | B] and E[X_f X_g | B], shape (columns, 3)."""
    d1, D = q.size, parts.deviation[a]
    n = 1 + 2 * d1
    W = parts.moments[a].copy().reshape(n, n)
    # X_f = (constant + y slope).z, but for what is left of c at given B
    constant, slope = np.zeros((d1, n)), np.zeros((d1, n))
    for f in range(d1):
        constant[f, 0], constant[f, 1 + f] = -q[f] * parts.centre[a], 1.0
        slope[f, 0], slope[f, 1 + d1 + f] = -q[f] * D, q[f] / D
    result = np.zeros((1 + d1 + d1 * d1, 3))
    result[0, 0] = W[0, 0]
    copy(constant @ W[0], result[1 : 1 + d1, 0])
    copy(slope @ W[0], result[1 : 1 + d1, 1])
    mixed = constant @ W @ slope.T
    for power, square in ((0, constant @ W @ constant.T), (1, mixed + mixed.T), (2, slope @ W @ slope.T)):
        copy(square.ravel(), result[1 + d1 :, power])
    for f in range(d1):
        for g in range(d1):
            left = -q[f] * q[g] * W[1 + d1 + f, 1 + d1 + g] / (D * D)
            if f == g:
                left += W[0, 1 + d1 + f]
            result[1 + d1 + f * d1 + g, 0] += left
    return result


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_part(table, centre, deviation, polynomials, at_nodes, direct):  # type: ignore[no-untyped-def]
    """Add a part to the weights of the nodes, or directly where panels are wide. Whole panels may overshoot."""
    low, high, widest = centre - TAIL * deviation, centre + TAIL * deviation, PIECE * deviation
    row, share = np.empty(direct.shape[0]), np.empty((direct.shape[1], ORDER))
    for panel in range(panel_of(table, low), panel_of(table, high) + 1):
        left, right = table.edges[panel], table.edges[panel + 1]
        if right - left <= widest:
            i, j = panel * ORDER, (panel + 1) * ORDER
            _add_weights(table.nodes[i:j], table.weights[i:j], centre, deviation, polynomials, at_nodes[:, i:j])
            continue
        left, right = max(left, low), min(right, high)
        pieces = max(1, math.ceil((right - left) / widest))
        half = 0.5 * (right - left) / pieces
        for piece in range(pieces):
            x = left + (2 * piece + 1 + NODES) * half
            share[:] = 0.0
            _add_weights(x, half * WEIGHTS, centre, deviation, polynomials, share)
            for i in range(ORDER):
                interpolate(table, panel, x[i], row)
                for r in range(row.size):
                    for column in range(share.shape[0]):
                        direct[r, column] += row[r] * share[column, i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_weights(x, weight, centre, deviation, polynomials, columns):  # type: ignore[no-untyped-def]
    """Add weight times density times polynomials at the points x to `columns`, shape (columns, points)."""
    for i in range(x.size):
        y = (x[i] - centre) / deviation
        exponent = 0.5 * y * y
        if exponent >= LAST_EXPONENT:
            continue
        density = weight[i] * exp_minus(exponent) / (_ROOT_TWO_PI * deviation)
        for k in range(columns.shape[0]):
            columns[k, i] += density * (polynomials[k, 0] + y * (polynomials[k, 1] + y * polynomials[k, 2]))
