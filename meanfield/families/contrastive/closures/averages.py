"""Averages of the rows of a `Table` over the law of B, the common part of the two pre-activations.

Rows are averaged panel by panel. Where a panel is narrow compared with the Gaussians its nodes serve as they are; where
it is wide, the series is evaluated on narrower pieces. Both are Gauss-Legendre rules of the product of a smooth density
with a polynomial, so kinks and |q| -> 1 cost no accuracy. A box has edges in whose neighbourhood the density changes on
the scale of the Gaussian; between them it is a polynomial.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.families.contrastive.closures.densities import PIECE, TAIL, add_density, add_multiple
from meanfield.families.contrastive.closures.mixture import components_of_b
from meanfield.numerics.compiled.array_operations import copy, sort
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.piecewise import NODES, ORDER, WEIGHTS, Table, interpolate, panel_of
from meanfield.process import own_numba as numba


@numba.njit(cache=True, nogil=True, error_model="numpy")
def averages(table, mixture, q, result):  # type: ignore[no-untyped-def]
    """Averages of all rows f of the table over the mixture at overlaps q.

    Parameters
    ----------
    table : Table
    mixture : Mixture
    q : ndarray, shape (d1,)
        Overlaps.
    result : ndarray, shape (rows, 1 + 2 d1) or (rows, 1)
        Is filled: columns are <f>, then, if asked for, <m_k f> with m_k the mean of c_k in its component (the uniform
        variables included) and <v_k f>. With the derivative f', Stein's lemma makes <c_k f> = <m_k f> + q_k <v_k f'> of
        them. NaN where an overlap is not finite.

    Returns
    -------
    ndarray
        The result.
    """
    if not math.isfinite(q.sum()):  # a run that blows up: there are no nodes
        result[:] = math.nan
        return result
    rows, columns = result.shape
    components = call(components_of_b, mixture, q, np.int64(1))
    # What the mean of u_k contributes to that of c_k
    gains = np.empty(components.boxes.size)
    for j in range(gains.size):
        k = components.boxes[j]
        gains[j] = math.copysign(mixture.half_width[k], q[k])
    edges = _box_edges(components.half_width)
    table = call(refined, table, components.centre, components.deviation, edges)
    at_nodes = np.zeros((columns, table.nodes.size))
    direct = np.zeros((rows, columns))
    at_break = np.zeros((columns, table.breaks.size))
    ones = np.ones(table.breaks.size)
    for a in range(components.centre.size):
        _add_component(table, components, a, gains, edges, at_nodes, direct)
        if table.breaks.size:
            _add_weights(table.breaks, ones, components, a, gains, at_break, np.int64(0))
    by_nodes = table.values @ at_nodes.T
    for r in range(rows):
        for k in range(columns):
            result[r, k] = direct[r, k] + by_nodes[r, k]
            for j in range(table.breaks.size):
                result[r, k] += table.jumps[j, r] * at_break[k, j]
    return result


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _box_edges(half_widths):  # type: ignore[no-untyped-def]
    """Sorted edges of the density of a sum of boxes, where it is not smooth: all sums of +-half_widths."""
    edges = np.zeros(1 << half_widths.size)
    for signs in range(edges.size):
        for k in range(half_widths.size):
            edges[signs] += half_widths[k] if signs >> k & 1 else -half_widths[k]
    sort(edges)
    return edges


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _zones(centre, deviation, box_edges):  # type: ignore[no-untyped-def]
    """Ends of the zones about these edges in which the density of a component changes on the scale of its Gaussian."""
    tail = TAIL * deviation
    low, high = np.empty(box_edges.size), np.empty(box_edges.size)
    count = 0
    for edge in box_edges:
        x = centre + edge
        if count == 0 or x - tail > high[count - 1]:
            low[count] = x - tail
            count += 1
        high[count - 1] = x + tail
    return low[:count], high[:count]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_component(table, components, a, gains, box_edges, at_nodes, direct):  # type: ignore[no-untyped-def]
    """Add component a to the weights of the nodes, or directly where panels are wide. Whole panels may overshoot."""
    low, high = _zones(components.centre[a], components.deviation[a], box_edges)
    widest = PIECE * components.deviation[a]
    panel = start = panel_of(table, low[0])
    last = panel_of(table, high[-1])
    zone = 0
    while panel <= last:
        left, right = table.edges[panel], table.edges[panel + 1]
        while zone < low.size - 1 and high[zone] <= left:
            zone += 1
        if right - left > widest and low[zone] < right and high[zone] > left:
            _add_whole_panels(table, start, panel, components, a, gains, at_nodes)
            start = panel + 1
            x = left if zone > 0 else max(left, low[0])
            while x < right and zone < low.size:
                if x < low[zone]:  # between two zones
                    end = min(low[zone], right)
                    _add_pieces(table, panel, x, end, math.inf, components, a, gains, direct)
                else:
                    end = min(high[zone], right)
                    _add_pieces(table, panel, x, end, widest, components, a, gains, direct)
                    zone += end < right
                x = end
            zone = min(zone, low.size - 1)
        panel += 1
    _add_whole_panels(table, start, panel, components, a, gains, at_nodes)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_whole_panels(table, start, stop, components, a, gains, at_nodes):  # type: ignore[no-untyped-def]
    if start < stop:
        i, j = start * ORDER, stop * ORDER
        _add_weights(table.nodes[i:j], table.weights[i:j], components, a, gains, at_nodes, i)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_pieces(table, panel, left, right, widest, components, a, gains, direct):  # type: ignore[no-untyped-def]
    """Add to `direct` the averages over [left, right], part of a panel that is wide for the density."""
    rows, columns = direct.shape
    row = np.empty(rows)
    pieces = max(1, math.ceil((right - left) / widest))
    half = 0.5 * (right - left) / pieces
    for piece in range(pieces):
        x = left + (2 * piece + 1) * half + half * NODES
        share = np.zeros((columns, ORDER))
        _add_weights(x, half * WEIGHTS, components, a, gains, share, np.int64(0))
        for i in range(ORDER):
            interpolate(table, panel, x[i], row)
            for r in range(rows):
                for column in range(columns):
                    direct[r, column] += row[r] * share[column, i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_weights(x, weight, components, a, gains, columns, first):  # type: ignore[no-untyped-def]
    """Add what component a gives the points to `columns`, shape (1 or 1 + 2 d1, n), from the `first` one on."""
    boxes = gains.size
    density = np.zeros((1 + boxes, x.size))
    add_density(x, weight, components.centre[a], components.deviation[a], components.half_width, density)
    last = first + x.size
    for k in range(columns.shape[0]):
        if components.weight[a, k] != 0.0:
            add_multiple(columns[k, first:last], components.weight[a, k], density[0])
    if columns.shape[0] > 1:
        for j in range(boxes):
            gain = components.weight[a, 0] * gains[j]
            add_multiple(columns[1 + components.boxes[j], first:last], gain, density[1 + j])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def refined(table, centre, deviation, box_edges):  # type: ignore[no-untyped-def]
    """The table with panels cut as narrow as the components that lie there need, if sharing the cuts pays."""
    panels = table.edges.size - 1
    least = np.full(panels, math.inf)
    zones = 0
    for a in range(centre.size):
        low, high = _zones(centre[a], deviation[a], box_edges)
        for zone in range(low.size):
            for panel in range(panel_of(table, low[zone]), panel_of(table, high[zone]) + 1):
                least[panel] = min(least[panel], deviation[a])
        zones += low.size
    pieces = np.ones(panels, dtype=np.int64)
    for panel in range(panels):
        width = table.edges[panel + 1] - table.edges[panel]
        pieces[panel] = max(1, math.ceil(width / (PIECE * least[panel])))
    total = pieces.sum()
    if total == panels or total > 2.0 * TAIL / PIECE * zones:
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
                    copy(table.values[:, panel * ORDER + i], values[node])
            new += 1
    edges[total] = table.edges[panels]
    # Every panel is now narrow enough for its nodes, so that nothing will ask for the coefficients.
    values = np.ascontiguousarray(values.T)
    return Table(edges, nodes, weights, values, table.coefficients, table.breaks, table.jumps)
