"""Law of B = c.q + sqrt(1 - q.q) e, the part of the pre-activation that both views share, at given overlaps q.

The hidden variables are a mixture: in component a, c_k has mean m_ak and an independent Gaussian part of variance v_ak.
Besides, some features may be uniform ("boxes"), and some have a random variance v_k. Given all of these B is Gaussian.

Sums of independent variables have as many components as there are combinations, of which averages at given q need few
(`fewer_points`). Weights may be moments of z = (1, m, v) in place of probabilities: its first ones give averages with
c, and its second ones those with products of c.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.families.contrastive.closures.densities import (
    BOX_NODES,
    BOX_WEIGHTS,
    NARROW_BOX,
    PIECE,
    TAIL,
    exact_boxes,
)
from meanfield.families.contrastive.closures.fewer_points import fewer_means, fewer_variances
from meanfield.numerics.compiled.array_operations import copy, largest_of, least_of
from meanfield.numerics.piecewise import NODES, ORDER, WEIGHTS
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

LEAST_VARIANCE = 1e-14
"""Least variance of B, used at |q| = 1; where B has an atom on a kink, <sigma''> grows like its inverse root."""

MOST_PIECES = 32
"""Largest number of pieces of a box that is very wide compared with the Gaussian, and very narrow beside other boxes
that smooth the rest."""


class Mixture(NamedTuple):
    """Law of the hidden variables, as plain arrays for compiled code.

    Parameters
    ----------
    probability : ndarray, shape (components,)
    mean, variance : ndarray, shape (components, d1)
    half_width : ndarray, shape (d1,)
        Where positive, c_k is uniform on [-half_width, half_width] besides.
    scale_probability, scale_variance : ndarray, shape (d1, values)
        Where there are any, c_k has a Gaussian part of random variance besides; probabilities 0 fill up the rows.
    fineness : float
        Divides the width of all panels; 1 but for estimates of the error.
    """

    probability: FloatArray
    mean: FloatArray
    variance: FloatArray
    half_width: FloatArray
    scale_probability: FloatArray
    scale_variance: FloatArray
    fineness: float


def reach_of(law: Mixture) -> float:
    """Largest |B| at any overlaps, but for Gaussian tails."""
    widest = max(1.0, law.scale_variance.max(initial=0.0)) + law.variance.max(axis=1)
    bounded = np.linalg.norm(np.abs(law.mean) + law.half_width, axis=1)
    return float((bounded + TAIL * np.sqrt(widest)).max())


class Components(NamedTuple):
    """Law of B at one q: Gaussians, all of them plus the same boxes.

    Parameters
    ----------
    centre, deviation : ndarray, shape (components,)
    weight : ndarray, shape (components, n) or (components, n^2)
        Probability times moments of z = (1, m, v), n = 1 + 2 d1: those of z, or of z z^T, flattened, whose first row
        they are.
    boxes : ndarray of int, shape (boxes,)
        Features with a box, the widest box first.
    half_width : ndarray, shape (boxes,)
        Half-widths of the uniform variables q_k c_k.
    """

    centre: FloatArray
    deviation: FloatArray
    weight: FloatArray
    boxes: FloatArray
    half_width: FloatArray


@numba.njit(cache=True, nogil=True, error_model="numpy")
def components_of_b(mixture, q, degree):  # type: ignore[no-untyped-def]
    """The components of B at overlaps q, no more than averages at this q need.

    Parameters
    ----------
    mixture : Mixture
    q : ndarray, shape (d1,)
    degree : int
        1 for weights with z alone, 2 for those with z z^T, without boxes: nodes stand for them.
    """
    d1 = q.size
    rest = 1.0
    for k in range(d1):
        rest -= q[k] * q[k]
    squared = q * q
    own = mixture.variance @ squared
    least = max(rest + least_of(own), LEAST_VARIANCE)
    deviation = math.sqrt(least)
    centre, weight = mixture.mean @ q, _weights(mixture, degree)
    if largest_of(own) - least_of(own) <= 1e-15 * least:
        centre, weight = fewer_means(centre, weight, deviation / mixture.fineness)
        own = own[: centre.size]  # all the same
    boxes, half_width, shift, shift_weight = _sum_of_boxes(mixture, q, deviation, degree)
    random, random_weight = _sum_of_variances(mixture, squared, least, degree)
    sums, sum_weight = _sum(1 + 2 * d1, centre, weight, shift, shift_weight)
    count = sums.size * random.size
    total = Components(np.empty(count), np.empty(count), np.empty((count, weight.shape[1])), boxes, half_width)
    new = 0
    for a in range(sums.size):
        for v in range(random.size):
            total.centre[new] = sums[a]
            total.deviation[new] = math.sqrt(max(rest + own[a // shift.size] + random[v], LEAST_VARIANCE))
            _combine(1 + 2 * d1, sum_weight, a, random_weight, v, total.weight, new)
            new += 1
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _weights(mixture, degree):  # type: ignore[no-untyped-def]
    """Weights of the components in a list."""
    count, d1 = mixture.mean.shape
    n = 1 + 2 * d1
    weight, z = np.empty((count, n**degree)), np.ones(n)
    for a in range(count):
        copy(mixture.mean[a], z[1 : 1 + d1])
        copy(mixture.variance[a], z[1 + d1 :])
        for column in range(weight.shape[1]):
            weight[a, column] = mixture.probability[a] * z[column // n] * z[column % n]
    return weight


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _combine(n, left, a, right, b, total, new):  # type: ignore[no-untyped-def]
    """Write moments of z of the sum of two independent variables, of which all but its first entry are added.

    Those in row a of `left` and in row b of `right` make row `new` of `total`.
    """
    total[new, 0] = left[a, 0] * right[b, 0]
    for i in range(1, n):
        total[new, i] = left[a, i] * right[b, 0] + left[a, 0] * right[b, i]
    for row in range(n, total.shape[1], n):
        total[new, row] = total[new, row // n]
        for i in range(1, n):
            mixed = left[a, i] * right[b, row] + left[a, row] * right[b, i]
            total[new, row + i] = left[a, row + i] * right[b, 0] + left[a, 0] * right[b, row + i] + mixed


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sum(n, left, left_weight, right, right_weight):  # type: ignore[no-untyped-def]
    """All sums of two variables, with their weights."""
    total = np.empty(left.size * right.size)
    weight = np.empty((total.size, left_weight.shape[1]))
    new = 0
    for a in range(left.size):
        for b in range(right.size):
            total[new] = left[a] + right[b]
            _combine(n, left_weight, a, right_weight, b, weight, new)
            new += 1
    return total, weight


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _single(n, degree, place, probability, values):  # type: ignore[no-untyped-def]
    """Weights of the values of entry `place` of z where all others are 0, but for the first, which is 1."""
    weight = np.zeros((values.size, n**degree))
    for i in range(values.size):
        weight[i, 0] = probability[i]
        weight[i, place] = probability[i] * values[i]
        if degree == 2:
            weight[i, place * n] = weight[i, place]
            weight[i, place * n + place] = weight[i, place] * values[i]
    return weight


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _nothing(n, degree):  # type: ignore[no-untyped-def]
    """The variable 0 and its weights."""
    return np.zeros(1), _single(n, degree, 0, np.ones(1), np.ones(1))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _placed(weight, d1, degree, first):  # type: ignore[no-untyped-def]
    """Weights with moments of (1, x) as such with those of z, where x is the part of z from entry `first` on."""
    n = 1 + 2 * d1
    placed = np.zeros((weight.shape[0], n**degree))
    for column in range(weight.shape[1]):
        row, i = column // (1 + d1), column % (1 + d1)
        place = (row + first - 1 if row else 0) * n + (i + first - 1 if i else 0)
        for a in range(weight.shape[0]):
            placed[a, place] = weight[a, column]
    return placed


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sum_of_boxes(mixture, q, deviation, degree):  # type: ignore[no-untyped-def]
    """Boxes that remain boxes, and the nodes of the sum of the others with their weights, the widest first."""
    n = 1 + q.size
    # A box that does not move B has second moments all the same: an overlap that does not change B stands for 0.
    reach = np.maximum(np.abs(q), 1e-300 if degree == 2 else 0.0) * mixture.half_width
    order = _widest_first(reach)
    exact = 0 if degree == 2 else exact_boxes(reach[order], deviation)
    shift, weight = _nothing(n, degree)
    for k in order[exact:]:
        relative, shared = reach[k] / deviation, deviation
        if degree == 2 and shift.size > 1:
            # A box beside a wider one, which smooths what they miss, has at most eight pieces: more would make sums of
            # boxes too many.
            relative = min(relative, 0.5 * PIECE * 8.0 * mixture.fineness)
            shared = max(deviation, 0.02 * reach[order[0]])  # narrower Gaussians would need too many nodes
        nodes, probability = _box_nodes(relative, mixture.fineness)
        values = mixture.half_width[k] * nodes
        shift, weight = _sum(n, shift, weight, q[k] * values, _single(n, degree, 1 + k, probability, values))
        shift, weight = fewer_means(shift, weight, shared / mixture.fineness)
    return order[:exact], reach[order[:exact]], shift, _placed(weight, q.size, degree, 1)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _widest_first(reach):  # type: ignore[no-untyped-def]
    """Indices of the values that are not 0, in descending order of the values."""
    order = np.empty(reach.size, dtype=np.int64)
    count = 0
    for k in range(reach.size):
        if reach[k] == 0.0:
            continue
        place = count
        while place > 0 and reach[order[place - 1]] < reach[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k
        count += 1
    return order[:count]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _box_nodes(reach, fineness):  # type: ignore[no-untyped-def]
    """Nodes and probabilities of a variable that is uniform on [-1, 1], `reach` standard deviations of the Gaussian."""
    if reach <= NARROW_BOX:
        return BOX_NODES, BOX_WEIGHTS
    pieces = int(min(math.ceil(2.0 * reach / PIECE), MOST_PIECES * fineness))
    nodes, probability = np.empty(pieces * ORDER), np.empty(pieces * ORDER)
    for piece in range(pieces):
        for i in range(ORDER):
            nodes[piece * ORDER + i] = (2 * piece + 1 + NODES[i]) / pieces - 1.0
            probability[piece * ORDER + i] = 0.5 * WEIGHTS[i] / pieces
    return nodes, probability


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _random_variance(mixture, k):  # type: ignore[no-untyped-def]
    """Values of the random variance of c_k and their probabilities; none if it has none."""
    count = 0
    for probability in mixture.scale_probability[k]:
        count += probability > 0.0
    return mixture.scale_variance[k, :count], mixture.scale_probability[k, :count]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sum_of_variances(mixture, squared, least, degree):  # type: ignore[no-untyped-def]
    """Values of sum_k q_k^2 v_k with their weights, for averages over Gaussians of variance `least` more."""
    d1 = squared.size
    n = 1 + d1
    total, weight = _nothing(n, degree)
    for k in range(d1):
        values, probability = _random_variance(mixture, k)
        if values.size == 0:
            continue
        own_weight = _single(n, degree, 1 + k, probability, values)
        own, own_weight = fewer_variances(squared[k] * values, own_weight, least, mixture.fineness)
        total, weight = _sum(n, total, weight, own, own_weight)
        total, weight = fewer_variances(total, weight, least, mixture.fineness)
    return total, _placed(weight, d1, degree, 1 + d1)
