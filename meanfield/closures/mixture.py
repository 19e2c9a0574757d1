"""Averages over the law of B = c.q + sqrt(1 - q.q) e, the part of the pre-activation that both views share.

The hidden variables are a mixture: in component a, c_k has mean m_ak and an independent Gaussian part of variance v_ak.
Given the component B is Gaussian, with mean m_a.q and variance 1 - q.q + sum_k v_ak q_k^2. One feature may be uniform
besides ("box"): then B is the Gaussian convolved with a box, whose density is a difference of two error functions.

Rows of a `Table` are averaged panel by panel. Where the panel is narrow compared with the Gaussian its nodes serve as
they are; where it is wide, the series is evaluated on narrower pieces. Both are Gauss-Legendre rules of the product
of a smooth density with a polynomial, so kinks and |q| -> 1 cost no accuracy.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from meanfield.closures.panels import NODES, ORDER, WEIGHTS, Table, interpolate, panel_of
from meanfield.elementary import LAST_EXPONENT, exp_minus
from meanfield.typing import FloatArray

TAIL = 9.3
"""Standard deviations to which a Gaussian is followed. E[x^10] of what lies beyond is 2e-13 of the whole."""

PIECE = 3.5
"""Widest piece of a Gauss-Legendre rule in standard deviations: the error is below 1e-16."""

NARROW_BOX = 0.3
"""Up to this half-width in standard deviations a box is a handful of nodes; beyond it error functions do not cancel."""

LEAST_VARIANCE = 1e-14
"""Stands in for the variance of B at |q| = 1; where B has an atom on a kink, <sigma''> grows like its inverse root."""

BOX_NODES, _box_weights = np.polynomial.legendre.leggauss(8)
BOX_WEIGHTS = 0.5 * _box_weights

_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


class Mixture(NamedTuple):
    """The law of the hidden variables, as plain arrays that compiled code takes.

    Parameters
    ----------
    probability : ndarray, shape (components,)
    mean, variance : ndarray, shape (components, d1)
    box : int
        The feature with a uniform part, or -1.
    half_width : float
        That part is uniform on [-half_width, half_width].
    """

    probability: FloatArray
    mean: FloatArray
    variance: FloatArray
    box: int
    half_width: float


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nnan"})
def _add_gaussian(x, weight, centre, deviation, density):  # type: ignore[no-untyped-def]
    """Add the weighted density of N(centre, deviation^2) at the points x; without NaN this vectorises."""
    scale = 1.0 / deviation
    factor = scale / _ROOT_TWO_PI
    for i in range(x.size):
        y = (x[i] - centre) * scale
        s = 0.5 * y * y
        density[i] += weight[i] * factor * exp_minus(s) if s < LAST_EXPONENT else 0.0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_boxed(x, weight, centre, deviation, box, overlap, density, first):  # type: ignore[no-untyped-def]
    """Add the weighted density of N(centre + overlap c, deviation^2), c uniform on [-box, box], and c times it."""
    reach = abs(overlap) * box
    if reach <= NARROW_BOX * deviation:
        part = np.empty(x.size)
        for j in range(BOX_NODES.size):
            c = box * BOX_NODES[j]
            part[:] = 0.0
            _add_gaussian(x, weight, centre + overlap * c, deviation, part)
            for i in range(x.size):
                density[i] += BOX_WEIGHTS[j] * part[i]
                first[i] += c * BOX_WEIGHTS[j] * part[i]
        return
    scale = 1.0 / deviation
    root_half = math.sqrt(0.5) * scale
    for i in range(x.size):
        d = x[i] - centre
        # from the side of the nearer tail, where the difference does not cancel
        y = abs(d)
        inside = 0.25 * (math.erfc((y - reach) * root_half) - math.erfc((y + reach) * root_half)) / reach
        low, high = (d + reach) * scale, (d - reach) * scale
        slope = 0.5 * (math.exp(-0.5 * low * low) - math.exp(-0.5 * high * high)) * scale / (_ROOT_TWO_PI * reach)
        density[i] += weight[i] * inside
        first[i] += weight[i] * (d * inside + deviation * deviation * slope) / overlap


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_weights(x, weight, a, mixture, centre, deviation, overlap, columns):  # type: ignore[no-untyped-def]
    """Add to `columns`, shape (1 + 2 d1, points), what component a gives the points: density, means, variances."""
    d1 = mixture.mean.shape[1]
    p = mixture.probability[a]
    density = np.zeros(x.size)
    if mixture.box < 0:
        _add_gaussian(x, weight, centre, deviation, density)
    else:
        first = np.zeros(x.size)
        _add_boxed(x, weight, centre, deviation, mixture.half_width, overlap, density, first)
        _add_multiple(columns[1 + mixture.box], p, first)
    _add_multiple(columns[0], p, density)
    for k in range(d1):
        if mixture.mean[a, k] != 0.0:
            _add_multiple(columns[1 + k], p * mixture.mean[a, k], density)
        if mixture.variance[a, k] != 0.0:
            _add_multiple(columns[1 + d1 + k], p * mixture.variance[a, k], density)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_multiple(out, factor, values):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] += factor * values[i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_pieces(table, panel, left, right, widest, a, mixture, centre, deviation, overlap, direct):  # type: ignore[no-untyped-def]
    """Add to `direct` the averages over [left, right], part of a panel that is wide for the density."""
    rows, columns = direct.shape
    row = np.empty(rows)
    pieces = max(1, math.ceil((right - left) / widest))
    half = 0.5 * (right - left) / pieces
    for piece in range(pieces):
        x = left + (2 * piece + 1) * half + half * NODES
        share = np.zeros((columns, ORDER))
        _add_weights(x, half * WEIGHTS, a, mixture, centre, deviation, overlap, share)
        for i in range(ORDER):
            interpolate(table, panel, x[i], row)
            for r in range(rows):
                for column in range(columns):
                    direct[r, column] += row[r] * share[column, i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_zone(table, low, high, soft_low, soft_high, widest, a, mixture, centre, deviation, overlap, at_nodes, direct):  # type: ignore[no-untyped-def]
    """Add component a between low and high. Whole panels may overshoot a soft end, beyond which there is nothing."""
    panel = start = panel_of(table, low)
    last = panel_of(table, high)
    while panel <= last:
        left, right = table.edges[panel], table.edges[panel + 1]
        whole = (soft_low or left >= low) and (soft_high or right <= high)
        if not (whole and right - left <= widest):
            _add_whole_panels(table, start, panel, a, mixture, centre, deviation, overlap, at_nodes)
            start = panel + 1
            left, right = max(left, low), min(right, high)
            _add_pieces(table, panel, left, right, widest, a, mixture, centre, deviation, overlap, direct)
        panel += 1
    _add_whole_panels(table, start, panel, a, mixture, centre, deviation, overlap, at_nodes)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_whole_panels(table, start, stop, a, mixture, centre, deviation, overlap, at_nodes):  # type: ignore[no-untyped-def]
    if start < stop:
        i, j = start * ORDER, stop * ORDER
        columns = at_nodes[:, i:j]
        _add_weights(table.nodes[i:j], table.weights[i:j], a, mixture, centre, deviation, overlap, columns)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def averages(table, mixture, q):  # type: ignore[no-untyped-def]
    """Averages of all rows f of the table over the mixture at overlaps q.

    Parameters
    ----------
    table : Table
    mixture : Mixture
    q : ndarray, shape (d1,)
        Overlaps.

    Returns
    -------
    ndarray, shape (rows, 1 + 2 d1)
        Columns are <f>, then <m_k f> with m_k the mean of c_k in its component (the uniform variable included), then
        <v_k f>. With the derivative f', Stein's lemma makes <c_k f> = <m_k f> + q_k <v_k f'> of them.
    """
    d1 = q.size
    centres, deviations = _components_of_b(mixture, q)
    overlap = q[mixture.box] if mixture.box >= 0 else 0.0
    reach = abs(overlap) * mixture.half_width
    table = _refined(table, centres, deviations, reach)
    at_nodes = np.zeros((1 + 2 * d1, table.nodes.size))
    direct = np.zeros((table.values.shape[0], 1 + 2 * d1))
    at_break = np.zeros((1 + 2 * d1, table.breaks.size))
    ones = np.ones(table.breaks.size)
    for a in range(centres.size):
        centre, deviation = centres[a], deviations[a]
        tail, widest = TAIL * deviation, PIECE * deviation
        low, high = centre - reach, centre + reach
        common = a, mixture, centre, deviation, overlap, at_nodes, direct
        if reach <= tail:
            _add_zone(table, low - tail, high + tail, True, True, widest, *common)
        else:  # both edges of a wide box, and the flat part between them
            _add_zone(table, low - tail, low + tail, True, False, widest, *common)
            _add_zone(table, low + tail, high - tail, False, False, math.inf, *common)
            _add_zone(table, high - tail, high + tail, False, True, widest, *common)
        if table.breaks.size:
            _add_weights(table.breaks, ones, a, mixture, centre, deviation, overlap, at_break)
    return direct + table.values @ at_nodes.T + table.jumps.T @ at_break.T


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _components_of_b(mixture, q):  # type: ignore[no-untyped-def]
    """Mean and standard deviation of B in each component, the uniform variable apart."""
    d1 = q.size
    centres = mixture.mean @ q
    deviations = np.empty(centres.size)
    rest = 1.0
    for k in range(d1):
        rest -= q[k] * q[k]
    for a in range(centres.size):
        variance = rest
        for k in range(d1):
            variance += mixture.variance[a, k] * q[k] * q[k]
        deviations[a] = math.sqrt(max(variance, LEAST_VARIANCE))
    return centres, deviations


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _refined(table, centres, deviations, reach):  # type: ignore[no-untyped-def]
    """The table with panels cut as narrow as the components that lie there need, if sharing the cuts pays."""
    panels = table.edges.size - 1
    least = np.full(panels, math.inf)
    for a in range(centres.size):
        tail = TAIL * deviations[a]
        for side in range(1 if reach <= tail else 2):
            low = centres[a] - reach - tail if side == 0 else centres[a] + reach - tail
            high = centres[a] + reach + tail if side == 1 or reach <= tail else centres[a] - reach + tail
            for panel in range(panel_of(table, low), panel_of(table, high) + 1):
                least[panel] = min(least[panel], deviations[a])
    pieces = np.ones(panels, dtype=np.int64)
    for panel in range(panels):
        width = table.edges[panel + 1] - table.edges[panel]
        pieces[panel] = max(1, math.ceil(width / (PIECE * least[panel])))
    total = pieces.sum()
    if total == panels or total > 2.0 * TAIL / PIECE * centres.size:
        return table
    rows = table.values.shape[0]
    edges = np.empty(total + 1)
    nodes, weights = np.empty(total * ORDER), np.empty(total * ORDER)
    values = np.empty((total * ORDER, rows))
    new = 0
    for panel in range(panels):
        left = table.edges[panel]
        half = 0.5 * (table.edges[panel + 1] - left) / pieces[panel]
        for piece in range(pieces[panel]):
            edges[new] = left + 2 * piece * half
            for i in range(ORDER):
                node = new * ORDER + i
                nodes[node] = left + (2 * piece + 1 + NODES[i]) * half
                weights[node] = half * WEIGHTS[i]
                if pieces[panel] > 1:
                    interpolate(table, panel, nodes[node], values[node])
                else:
                    values[node] = table.values[:, panel * ORDER + i]
            new += 1
    edges[total] = table.edges[panels]
    # Every panel is now narrow enough for its nodes, so that nothing will ask for the coefficients.
    values = np.ascontiguousarray(values.T)
    return Table(edges, nodes, weights, values, table.coefficients, table.breaks, table.jumps)
