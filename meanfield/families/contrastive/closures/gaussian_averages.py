"""Averages of the rows of a `Table` over many Gaussians at once, alone or each with a box beside it, in NumPy.

Gaussians of similar widths that lie close together share a rule: the nodes of the table where its panels are narrow
compared with them, and Gauss-Legendre nodes on pieces of the others. Both integrate the product of a smooth density and
a polynomial. A box has edges in whose neighbourhood the density changes on the scale of the Gaussian; between them it
is constant. Where a row has point masses they are nodes, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr

from meanfield.families.contrastive.closures.densities import PIECE, TAIL
from meanfield.numerics.piecewise import NODES, ORDER, WEIGHTS, Table
from meanfield.typing import FloatArray, IntArray

TOGETHER = 16.0
"""Width of the range of centres that share a rule, in units of the power of two next to their deviations."""

AT_ONCE = 1 << 17
"""Number of densities at nodes that are computed at once, which fit into the second-level cache."""

LAST_EXPONENT = 700.0
"""Exponent from which on the exponential counts as 1e-304: it must not underflow."""


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
    result = np.empty((powers, centre.size, len(table.values)))
    for group in _alike(centre, deviation):
        s = deviation[group]
        nodes, values = _rule(table, [(centre[group].min() - TAIL * s.max(), centre[group].max() + TAIL * s.max())], s)
        for some in _blocks(group, nodes.size):
            y = (nodes - centre[some, None]) / deviation[some, None]
            density = np.exp(-np.minimum(0.5 * y * y, LAST_EXPONENT))
            density /= math.sqrt(2.0 * math.pi) * deviation[some, None]
            for k in range(powers):
                result[k, some] = density @ values
                density *= y
    return result


def over_boxes(table: Table, centre: FloatArray, deviation: FloatArray, half_width: FloatArray) -> FloatArray:
    """Averages of f(x) and f(x) u over x = centre + deviation y + half_width u with u uniform on [-1, 1].

    With the antiderivatives I_1 = Phi and I_2(z) = z I_1 + s^2 I_0 of the Gaussian density, the density of x is
    (I_1(x + h) - I_1(x - h))/(2 h), and its product with the mean of u at given x is

        (I_2(x + h) - I_2(x - h) - h (I_1(x + h) + I_1(x - h)))/(2 h^2)

    Parameters
    ----------
    table : Table
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
        nodes, values = _rule(table, [left, right] if left[1] < right[0] else [(left[0], right[1])], s)
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
        second.append(z * below + s * np.exp(-np.minimum(0.5 * y * y, LAST_EXPONENT)) / math.sqrt(2.0 * math.pi))
    tilted = ((second[0] - second[1]) / h - first[0] - first[1]) / (2.0 * h)
    return (first[0] - first[1]) / (2.0 * h), np.where(x < centre, tilted, -tilted)


def _alike(centre: FloatArray, deviation: FloatArray) -> Iterator[IntArray]:
    """Indices of Gaussians whose deviations are within a factor of two, and whose centres are close."""
    octave = np.frexp(deviation)[1]
    kind = np.stack([octave, np.floor(centre / np.ldexp(TOGETHER, octave))])
    order = np.lexsort(kind)
    ends = np.flatnonzero(np.any(np.diff(kind[:, order], axis=1), axis=0)) + 1
    yield from np.split(order, ends)


def _blocks(group: IntArray, nodes: int) -> Iterator[IntArray]:
    size = max(1, AT_ONCE // max(1, nodes))
    return (group[i : i + size] for i in range(0, group.size, size))


def _rule(table: Table, zones: list[tuple[float, float]], deviation: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes for densities that change on the scale of the deviations in the zones, and not at all between two of them.

    Returns
    -------
    nodes : ndarray, shape (n,)
    values : ndarray, shape (n, rows)
        Weights times the values of the rows.
    """
    widest, edges = PIECE * deviation.min(), table.edges
    last = edges.size - 2
    low, high = (np.searchsorted(edges, zones[i][i], side="right") - 1 for i in (0, -1))
    panels = np.arange(min(max(low, 0), last), min(max(high, 0), last) + 1)
    left, right = edges[panels], edges[panels + 1]
    wide = (right - left > widest) & np.any([(start < right) & (end > left) for start, end in zones], axis=0)
    whole, panels, left, right = panels[~wide], panels[wide], left[wide], right[wide]
    parts = [
        (
            table.nodes.reshape(-1, ORDER)[whole].ravel(),
            table.weights.reshape(-1, ORDER)[whole].ravel(),
            table.values.reshape(len(table.values), -1, ORDER)[:, whole].reshape(len(table.values), -1).T,
        ),
        (table.breaks, np.ones(table.breaks.size), table.jumps),
    ]
    if panels.size:
        segments = [(*zone, widest) for zone in zones]
        segments[1:1] = [(a[1], b[0], math.inf) for a, b in zip(zones[:-1], zones[1:], strict=True)]
        parts += [_pieces(table, panels, np.maximum(left, a), np.minimum(right, b), most) for a, b, most in segments]
    nodes, weights, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    return nodes, weights[:, None] * values


def _pieces(
    table: Table, panels: IntArray, left: FloatArray, right: FloatArray, widest: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Nodes on pieces of [left, right], parts of panels that may be empty, with weights and interpolated values."""
    some = right > left
    panels, left, right = panels[some], left[some], right[some]
    count = np.maximum(np.ceil((right - left) / widest), 1.0).astype(int)
    half = 0.5 * (right - left) / count
    number = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)  # of a piece in its panel
    panels, left, half = (np.repeat(x, count) for x in (panels, left, half))
    nodes = (left + (2 * number + 1) * half)[:, None] + half[:, None] * NODES
    start, end = table.edges[panels, None], table.edges[panels + 1, None]
    polynomials = np.polynomial.legendre.legvander((2.0 * nodes - start - end) / (end - start), ORDER - 1)
    values = polynomials @ table.coefficients[panels]
    return nodes.ravel(), (half[:, None] * WEIGHTS).ravel(), values.reshape(nodes.size, len(table.values))
