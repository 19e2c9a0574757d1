"""Averages of the rows of a `Table` over many Gaussians at once, alone or each with a box beside it, in NumPy.

Gaussians of similar widths that lie close together share a rule: the nodes of the table where its panels are narrow
compared with them, and Gauss-Legendre nodes on pieces of the others. Both integrate the product of a smooth density and
a polynomial. A box has edges in whose neighbourhood the density changes on the scale of the Gaussian; between them it
is constant. Where a row has point masses they are nodes, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from scipy.special import ndtr

from meanfield.families.contrastive.closures.densities import PIECE, TAIL
from meanfield.families.contrastive.closures.fewer_points import LOG_WIDTH
from meanfield.numerics.piecewise import NODES, ORDER, TO_COEFFICIENTS, WEIGHTS, Table
from meanfield.typing import FloatArray, IntArray


def over_gaussians(table: Table, centre: FloatArray, deviation: FloatArray, powers: int = 1) -> FloatArray:
    """Averages of f(x) y^k over x = centre + deviation y with Gaussian y.

    Parameters
    ----------
    table : Table
        The rows f.
    centre, deviation : ndarray, shape (n,)
    powers : int
        Number of powers k = 0, 1, ...

    Returns
    -------
    ndarray, shape (powers, n, rows)
    """
    if centre.size <= ORDER or np.any(centre != centre[0]):
        return _one_by_one(table, centre, deviation, powers)
    # With one centre averages are smooth functions of the logarithm of the deviation.
    result = np.empty((powers, centre.size, len(table.values)))
    alone, shared = shared_nodes(np.log(deviation), 0.5 * LOG_WIDTH)
    points = np.concatenate([np.exp(nodes) for _, nodes, _ in shared] + [deviation[alone]])
    found = _one_by_one(table, np.full(points.size, centre[0]), points, powers)
    result[:, alone] = found[:, ORDER * len(shared) :]
    for i, (some, _, interpolate) in enumerate(shared):
        result[:, some] = interpolate @ found[:, ORDER * i : ORDER * (i + 1)]
    return result


def shared_nodes(x: FloatArray, widest: float) -> tuple[IntArray, list[tuple[IntArray, FloatArray, FloatArray]]]:
    """Nodes between which functions of x are interpolated, on panels that hold more points than nodes.

    Parameters
    ----------
    x : ndarray, shape (n,)
    widest : float
        Width of panels on which the functions are polynomials of degree ORDER - 1.

    Returns
    -------
    alone : ndarray of int
        Indices of the points on other panels.
    shared : list of tuple
        For each panel the indices of its points, its nodes, shape (ORDER,), and the matrix from values at the nodes to
        those at the points.
    """
    low, panels = x.min(), max(1, math.ceil(np.ptp(x) / widest))
    if x.size <= ORDER or panels > x.size:
        return np.arange(x.size), []
    width = np.ptp(x) / panels or widest
    t = (x - low) / width
    panel = np.minimum(t.astype(int), panels - 1)
    crowded = np.bincount(panel) > ORDER
    shared = []
    for each in np.flatnonzero(crowded):
        mine = np.flatnonzero(panel == each)
        polynomials = np.polynomial.legendre.legvander(2.0 * (t[mine] - each) - 1.0, ORDER - 1)
        shared.append((mine, low + (each + 0.5 * (1.0 + NODES)) * width, polynomials @ TO_COEFFICIENTS))
    return np.flatnonzero(~crowded[panel]), shared


def _one_by_one(table: Table, centre: FloatArray, deviation: FloatArray, powers: int) -> FloatArray:
    result = np.empty((powers, centre.size, len(table.values)))
    for group in _alike(centre, deviation):
        s = deviation[group]
        origin, tail = centre[group[0]], TAIL * s.max()
        place = centre - origin
        nodes, values = _rule(table, origin, [(place[group].min() - tail, place[group].max() + tail)], s)
        for some in _blocks(group, nodes.size):
            y = nodes - place[some, None]
            y *= (1.0 / deviation[some])[:, None]
            density = _bell(y)
            for k in range(powers):
                result[k, some] = density @ values
                if k < powers - 1:
                    density *= y
    result /= math.sqrt(2.0 * math.pi) * deviation[:, None]
    return result


def over_boxes(table: Table, centre: FloatArray, deviation: FloatArray, half_width: FloatArray) -> FloatArray:
    """Averages of f(x) and f(x) u over x = centre + deviation y + half_width u with u uniform on [-1, 1].

    With the antiderivatives I_1 = Phi and I_2(z) = z I_1 + s^2 I_0 of the Gaussian density, the density of x is
    (I_1(x + h) - I_1(x - h))/(2 h), and its product with the mean of u at given x is

        (I_2(x + h) - I_2(x - h) - h (I_1(x + h) + I_1(x - h)))/(2 h^2)

    Parameters
    ----------
    centre, deviation, half_width : ndarray, shape (n,)
        No box may be much narrower than its Gaussian, where the differences cancel.

    Returns
    -------
    ndarray, shape (2, n, rows)
    """
    result = np.empty((2, centre.size, len(table.values)))
    for group in _alike(centre, deviation):
        s, h, tail = deviation[group], half_width[group], TAIL * deviation[group].max()
        low, high = centre[group].min(), centre[group].max()
        left, right = (low - h.max() - tail, high - h.min() + tail), (low + h.min() - tail, high + h.max() + tail)
        nodes, values = _rule(table, 0.0, [left, right] if left[1] < right[0] else [(left[0], right[1])], s)
        for some in _blocks(group, nodes.size):
            for k, density in enumerate(_boxed(nodes, *(x[some, None] for x in (centre, deviation, half_width)))):
                result[k, some] = density @ values
    return result


def _boxed(x: FloatArray, centre: FloatArray, s: FloatArray, h: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both densities of `over_boxes`, from the side of the nearer tail, where the differences do not cancel."""
    d = -np.abs(x - centre)
    first, second = [], []
    for z in (d + h, d - h):
        y = z / s
        below = ndtr(y)
        first.append(below)
        second.append(z * below + s * _bell(y) / math.sqrt(2.0 * math.pi))
    tilted = ((second[0] - second[1]) / h - first[0] - first[1]) / (2.0 * h)
    return (first[0] - first[1]) / (2.0 * h), np.where(x < centre, tilted, -tilted)


def _bell(y: FloatArray) -> FloatArray:
    """exp(-y^2/2), but no number so small that it underflows."""
    result = y * y
    result *= -0.5
    np.maximum(result, -700.0, out=result)  # exp(-700) is 1e-304
    return np.asarray(np.exp(result, out=result))


def _alike(centre: FloatArray, deviation: FloatArray) -> Iterator[IntArray]:
    """Indices of Gaussians whose deviations are within a factor of two, and whose centres are close."""
    octave = np.frexp(deviation)[1]
    place = np.rint(centre / np.ldexp(8.0, octave))  # centres in a range of eight deviations share a rule
    order = np.lexsort((octave, place))
    changes = (octave[order[1:]] != octave[order[:-1]]) | (place[order[1:]] != place[order[:-1]])
    yield from np.split(order, np.flatnonzero(changes) + 1)


def _blocks(group: IntArray, nodes: int) -> Iterator[IntArray]:
    size = max(1, 2**15 // max(1, nodes))  # densities at nodes fit into the second-level cache
    return (group[i : i + size] for i in range(0, group.size, size))


def _rule(
    table: Table, origin: float, zones: list[tuple[float, float]], deviation: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Nodes for densities that change on the scale of the deviations in the zones, and not at all between two of them.

    Parameters
    ----------
    origin : float
        All places are told from there, since narrow Gaussians lose digits in places told from 0.

    Returns
    -------
    nodes : ndarray, shape (n,)
    values : ndarray, shape (n, rows)
        Weights times the values of the rows.
    """
    widest, edges = PIECE * deviation.min(), table.edges - origin
    first, last = np.clip(np.searchsorted(edges, [zones[0][0], zones[-1][1]], side="right") - 1, 0, edges.size - 2)
    left, right = edges[first : last + 1], edges[first + 1 : last + 2]
    wide = right - left > widest
    if not wide.any():
        parts = [_whole(table, origin, slice(first * ORDER, (last + 1) * ORDER))]
    else:
        wide &= np.any([(start < right) & (end > left) for start, end in zones], axis=0)
        panels, left, right = first + np.flatnonzero(wide), left[wide], right[wide]
        segments = [(*zone, widest) for zone in zones]
        segments[1:1] = [(a[1], b[0], math.inf) for a, b in pairwise(zones)]
        parts = [
            _pieces(table, edges, panels, np.maximum(left, a), np.minimum(right, b), most) for a, b, most in segments
        ]
        parts.append(_whole(table, origin, first * ORDER + np.flatnonzero(np.repeat(~wide, ORDER))))
    if table.breaks.size:
        parts.append((table.breaks - origin, table.jumps))
    if len(parts) == 1:
        return parts[0]
    nodes, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    return nodes, values


def _whole(table: Table, origin: float, nodes: slice | IntArray) -> tuple[FloatArray, FloatArray]:
    """Nodes of the table, with weights times values."""
    return table.nodes[nodes] - origin, table.weights[nodes, None] * table.values[:, nodes].T


def _pieces(
    table: Table, edges: FloatArray, panels: IntArray, left: FloatArray, right: FloatArray, widest: float
) -> tuple[FloatArray, FloatArray]:
    """Nodes on pieces of [left, right], parts of panels that may be empty, with weights times interpolated values."""
    some = right > left
    panels, left, right = panels[some], left[some], right[some]
    count = np.maximum(np.ceil((right - left) / widest), 1.0).astype(int)
    half = 0.5 * (right - left) / count
    number = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)  # of a piece in its panel
    panels, left, half = (np.repeat(x, count) for x in (panels, left, half))
    nodes = (left + (2 * number + 1) * half)[:, None] + half[:, None] * NODES
    start, end = edges[panels, None], edges[panels + 1, None]
    polynomials = np.polynomial.legendre.legvander((2.0 * nodes - start - end) / (end - start), ORDER - 1)
    values = (half[:, None] * WEIGHTS)[..., None] * (polynomials @ table.coefficients[panels])
    return nodes.ravel(), values.reshape(nodes.size, len(table.values))
