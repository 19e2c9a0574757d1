"""Law of B = c.q + sqrt(1 - q.q) e, the part of the pre-activation that both views share, at given overlaps q.

The hidden variables are a mixture: in component a, c_k has mean m_ak and an independent Gaussian part of variance v_ak.
Besides, some features may be uniform ("boxes"), and some have a random variance v_k. Given all of these B is Gaussian.

Sums of independent variables have as many components as there are combinations, of which averages at given q need few.
The average over a Gaussian of variance s^2 or more is a smooth function of its mean on the scale s, and of its variance
on a logarithmic scale, analytic for |Im log| < pi/2. Where fewer Gauss-Legendre nodes on panels of such a width resolve
it they replace the components, with weights that average interpolating polynomials as the components do.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from meanfield.families.contrastive.closures.densities import (
    BOX_NODES,
    BOX_WEIGHTS,
    NARROW_BOX,
    PIECE,
    TAIL,
    exact_boxes,
)
from meanfield.numerics.compiled.array_operations import largest_of, least_of
from meanfield.numerics.piecewise import ASCENT, DESCENT, NODES, ORDER, TO_COEFFICIENTS, WEIGHTS
from meanfield.typing import FloatArray

LEAST_VARIANCE = 1e-14
"""Least variance of B, used at |q| = 1; where B has an atom on a kink, <sigma''> grows like its inverse root."""

MEAN_WIDTH = 1.5
"""Width of panels for means, in standard deviations: interpolation between 16 nodes is off by 1e-13."""

LOG_WIDTH = 0.7
"""Width of panels for the logarithm of variances: interpolating even fifth powers is off by 1e-13."""

MOST_PIECES = 32
"""Largest number of pieces of a box that is very wide compared with the Gaussian, and very narrow beside other boxes
that smooth the rest."""


NO_WIDTH = 1e-290
"""Width of a set of points up to which they are one point: its inverse, times the number of panels, would overflow."""


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
    weight : ndarray, shape (components, 1 + 2 d1)
        Probability p, then p m_k, then p v_k.
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
def components_of_b(mixture, q):  # type: ignore[no-untyped-def]
    """The components of B at overlaps q, no more than averages at this q need."""
    d1 = q.size
    rest = 1.0
    for k in range(d1):
        rest -= q[k] * q[k]
    squared = q * q
    own = mixture.variance @ squared
    least = max(rest + least_of(own), LEAST_VARIANCE)
    deviation = math.sqrt(least)
    centre, weight = mixture.mean @ q, _weights(mixture)
    if largest_of(own) - least_of(own) <= 1e-15 * least:
        centre, weight = fewer_means(centre, weight, deviation / mixture.fineness)
        own = own[: centre.size]  # all the same
    boxes, half_width, shift, shift_weight = _sum_of_boxes(mixture, q, deviation)
    random, random_weight = _sum_of_variances(mixture, squared, least)
    count = centre.size * shift.size * random.size
    total = Components(np.empty(count), np.empty(count), np.zeros((count, 1 + 2 * d1)), boxes, half_width)
    new = 0
    for a in range(centre.size):
        for b in range(shift.size):
            for v in range(random.size):
                total.centre[new] = centre[a] + shift[b]
                total.deviation[new] = math.sqrt(max(rest + own[a] + random[v], LEAST_VARIANCE))
                probability = shift_weight[b, 0] * random_weight[v, 0]
                for k in range(1 + 2 * d1):
                    total.weight[new, k] = weight[a, k] * probability
                for k in range(d1):
                    total.weight[new, 1 + k] += weight[a, 0] * shift_weight[b, 1 + k] * random_weight[v, 0]
                    total.weight[new, 1 + d1 + k] += weight[a, 0] * shift_weight[b, 0] * random_weight[v, 1 + k]
                new += 1
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _weights(mixture):  # type: ignore[no-untyped-def]
    """Weights p, p m_k and p v_k of the components in a list."""
    count, d1 = mixture.mean.shape
    weight = np.empty((count, 1 + 2 * d1))
    for a in range(count):
        p = mixture.probability[a]
        weight[a, 0] = p
        for k in range(d1):
            weight[a, 1 + k] = p * mixture.mean[a, k]
            weight[a, 1 + d1 + k] = p * mixture.variance[a, k]
    return weight


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sum_of_boxes(mixture, q, deviation):  # type: ignore[no-untyped-def]
    """Boxes that remain boxes, and the nodes of the sum of the others with weights p, p c_k."""
    d1 = q.size
    reach = np.abs(q) * mixture.half_width
    order = widest_first(reach)
    exact = exact_boxes(reach[order], deviation)
    shift, weight = np.zeros(1), np.zeros((1, 1 + d1))
    weight[0, 0] = 1.0
    for k in order[exact:]:
        nodes, probability = box_nodes(reach[k] / deviation, mixture.fineness)
        values = mixture.half_width[k] * nodes
        shift, weight = _sum(shift, weight, q[k] * values, _with_values(probability, values), 1 + k)
        shift, weight = fewer_means(shift, weight, deviation / mixture.fineness)
    return order[:exact], reach[order[:exact]], shift, weight


@numba.njit(cache=True, nogil=True, error_model="numpy")
def widest_first(reach):  # type: ignore[no-untyped-def]
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
def box_nodes(reach, fineness):  # type: ignore[no-untyped-def]
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
def random_variance(mixture, k):  # type: ignore[no-untyped-def]
    """Values of the random variance of c_k and their probabilities; none if it has none."""
    count = 0
    for probability in mixture.scale_probability[k]:
        count += probability > 0.0
    return mixture.scale_variance[k, :count], mixture.scale_probability[k, :count]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sum_of_variances(mixture, squared, least):  # type: ignore[no-untyped-def]
    """Values of sum_k q_k^2 v_k with weights p, p v_k, for averages over Gaussians of variance `least` more."""
    d1 = squared.size
    total, weight = np.zeros(1), np.zeros((1, 1 + d1))
    weight[0, 0] = 1.0
    for k in range(d1):
        values, probability = random_variance(mixture, k)
        if values.size == 0:
            continue
        own, own_weight = fewer_variances(
            squared[k] * values, _with_values(probability, values), least, mixture.fineness
        )
        total, weight = _sum(total, weight, own, own_weight, 1 + k)
        total, weight = fewer_variances(total, weight, least, mixture.fineness)
    return total, weight


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _with_values(probability, values):  # type: ignore[no-untyped-def]
    """Weights of values v with probabilities p: p and p v, as two columns."""
    weight = np.empty((values.size, 2))
    for i in range(values.size):
        weight[i, 0], weight[i, 1] = probability[i], probability[i] * values[i]
    return weight


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sum(left, left_weight, right, right_weight, column):  # type: ignore[no-untyped-def]
    """All sums of two variables, with their weights; the second weight of the right one belongs to a column."""
    count, columns = left_weight.shape
    total = np.empty(count * right.size)
    weight = np.empty((count * right.size, columns))
    new = 0
    for a in range(count):
        for b in range(right.size):
            total[new] = left[a] + right[b]
            for k in range(columns):
                weight[new, k] = left_weight[a, k] * right_weight[b, 0]
            weight[new, column] = left_weight[a, 0] * right_weight[b, 1]
            new += 1
    return total, weight


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fewer_means(mean, weight, deviation):  # type: ignore[no-untyped-def]
    """Nodes in place of the means of Gaussians of equal variance, where the means lie so close that nodes are fewer."""
    low = least_of(mean)
    return _fewer(mean, weight, low, largest_of(mean) - low, MEAN_WIDTH * deviation)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fewer_variances(variance, weight, least, fineness):  # type: ignore[no-untyped-def]
    """Nodes in place of variances added to `least`, where these lie so close that nodes are fewer."""
    logarithm = np.log1p(variance / least)
    logarithm, weight = _fewer(logarithm, weight, 0.0, largest_of(logarithm), LOG_WIDTH / fineness)
    return least * np.expm1(logarithm), weight


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fewer(x, weight, low, width, widest):  # type: ignore[no-untyped-def]
    """Nodes on panels that hold many of the points, with weights under which polynomials have the same averages.

    Parameters
    ----------
    x : ndarray, shape (points,)
        Between low and low + width.
    weight : ndarray, shape (points, columns)
    low, width : float
    widest : float
        Width of panels.
    """
    panels = max(1, math.ceil(width / widest))
    if x.size <= ORDER or panels > x.size:
        return x, weight
    scale = panels / width if width > NO_WIDTH else 0.0
    panel_of = np.empty(x.size, dtype=np.int64)
    count = np.zeros(panels, dtype=np.int64)
    for i in range(x.size):
        panel_of[i] = min(int((x[i] - low) * scale), panels - 1)
        count[panel_of[i]] += 1
    columns = weight.shape[1]
    moments = np.zeros((panels, ORDER, columns))
    size = 0
    for panel in range(panels):
        size += min(count[panel], ORDER)
    nodes, node_weight = np.empty(size), np.empty((size, columns))
    new = 0
    for i in range(x.size):
        panel = panel_of[i]
        if count[panel] > ORDER:
            _add_moments(moments[panel], 2.0 * ((x[i] - low) * scale - panel) - 1.0, weight[i])
        else:
            nodes[new] = x[i]
            for k in range(columns):
                node_weight[new, k] = weight[i, k]
            new += 1
    for panel in range(panels):
        if count[panel] <= ORDER:
            continue
        for i in range(ORDER):
            nodes[new] = low + (panel + 0.5 * (1.0 + NODES[i])) * (width / panels)
            for k in range(columns):
                node_weight[new, k] = 0.0
                for j in range(ORDER):
                    node_weight[new, k] += TO_COEFFICIENTS[j, i] * moments[panel, j, k]
            new += 1
    return nodes, node_weight


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_moments(moments, t, weight):  # type: ignore[no-untyped-def]
    """Add the weights times the Legendre polynomials at t to `moments`, shape (ORDER, columns)."""
    before, now = 1.0, t
    for k in range(weight.size):
        moments[0, k] += weight[k]
        moments[1, k] += t * weight[k]
    for j in range(2, ORDER):
        before, now = now, ASCENT[j] * t * now - DESCENT[j] * before
        for k in range(weight.size):
            moments[j, k] += now * weight[k]
