"""Nodes for averages of functions with kinks: nested Gauss-Legendre panels between them.

A function of x = mean + A z jumps or bends where linear forms of x have certain values. Direction by direction the
range of a normal variable is cut where a form that the directions before and this one determine has its value. Averages
over later directions are smooth then, but for layers about the places of forms which these hardly change, and these get
panels of their own. Directions in which no form varies have a trapezoidal rule, which with as many nodes is by far more
accurate for what is smooth. Functions that are polynomials between their kinks need few nodes there, and as few before
the first kink and behind the last one in the last direction in which forms vary. Other directions have Gauss rules on
these half-lines, which converge faster than panels that end somewhere.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.numerics.compiled.array_operations import dot
from meanfield.numerics.gaussian_moments.half_lines import HalfLines, write_half_line
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray


class Panels(NamedTuple):
    """How the range of a normal variable is cut into panels.

    Parameters
    ----------
    points, shares : ndarray, shape (n,)
        Gauss-Legendre rule on [-1, 1].
    widest : float
        Largest width of a panel.
    ends : ndarray
        Fixed ends of panels, from the smallest number to the largest.
    layers : ndarray
        Edges of layers about the place of a form, in units of what later directions change.
    narrow : float
        Largest such unit, in standard deviations, of forms that have layers.
    smooth, smooth_weights : ndarray
        Rule for directions in which no form varies; panels where it has no nodes.
    beyond, last : HalfLines
        Rules before the first kink and behind the last one of a direction, and of the last direction in which forms
        vary; bounded panels where they have no nodes.
    radius : float
        Largest distance of panels and of such nodes from the origin; those beyond are left out.
    most : int
        Largest number of nodes.
    """

    points: FloatArray
    shares: FloatArray
    widest: float
    ends: FloatArray
    layers: FloatArray
    narrow: float
    smooth: FloatArray
    smooth_weights: FloatArray
    beyond: HalfLines
    last: HalfLines
    radius: float
    most: int


LEAST = 1e-17
"""Weight of nodes that are left out."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def panel_nodes(panels, forms, centres, levels):  # type: ignore[no-untyped-def]
    """Nodes and weights for functions with kinks where centres + forms z has certain values.

    Parameters
    ----------
    panels : Panels
    forms : ndarray, shape (forms, directions + 1)
        The last column has what else changes a form, and smears its places.
    centres : ndarray, shape (forms,)
    levels : ndarray, shape (forms, values of a form)

    Returns
    -------
    z : ndarray, shape (directions, nodes)
    weights : ndarray, shape (nodes,)
        They add up to 1. There are none if they would be more than `panels.most`.
    """
    directions = forms.shape[1] - 1
    nodes, weights = np.zeros((directions, 1)), np.ones(1)
    cuts = np.empty(panels.ends.size + levels.size * panels.layers.size)
    last = directions - 1
    while last > 0 and dot(forms[:, last], forms[:, last]) == 0.0:
        last -= 1
    for j in range(directions):
        if panels.smooth.size and dot(forms[:, j], forms[:, j]) == 0.0:
            nodes, weights = _with_smooth(panels, nodes, weights, j)
        elif panels.beyond.nodes.size:
            beyond = panels.beyond if j < last else panels.last
            nodes, weights = _with_half_lines(panels, beyond, forms, centres, levels, nodes, weights, j, cuts)
        else:
            nodes, weights = _with_panels(panels, forms, centres, levels, nodes, weights, j, cuts)
        if not weights.size:
            return nodes, weights
    total = 0.0
    for weight in weights:
        total += weight
    for n in range(weights.size):
        weights[n] /= total
    return nodes, weights


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _with_smooth(panels, nodes, weights, j):  # type: ignore[no-untyped-def]
    """Nodes and weights with direction j, in which no form varies; none if they would be too many."""
    square, total = panels.radius * panels.radius, 0
    distance = np.zeros(weights.size)
    for n in range(weights.size):
        for column in range(j):
            distance[n] += nodes[column, n] ** 2
        for x in panels.smooth:
            total += distance[n] + x * x <= square
    if total > panels.most:
        total = 0
    wider, heavier, at = np.empty((nodes.shape[0], total)), np.empty(total), 0
    for n in range(weights.size if total else 0):
        for k, x in enumerate(panels.smooth):
            if distance[n] + x * x <= square:
                for column in range(j):
                    wider[column, at] = nodes[column, n]
                wider[j, at], heavier[at] = x, weights[n] * panels.smooth_weights[k]
                at += 1
    return wider, heavier


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _with_half_lines(panels, beyond, forms, centres, levels, nodes, weights, j, cuts):  # type: ignore[no-untyped-def]
    """Nodes and weights with direction j, by rules beyond its kinks; none if they would be too many."""
    few, points = beyond.nodes.shape[2], panels.points.size
    total = 0
    for n in range(weights.size):
        count = _sorted_cuts(panels, forms, centres, levels, nodes, n, j, np.int64(0), cuts)
        total += 2 * few + max(count - 1, 0) * points + 1
    if total > panels.most:
        total = 0
    wider, heavier, at = np.empty((nodes.shape[0], total)), np.empty(total), 0
    x, weight = np.empty(few), np.empty(few)
    for n in range(weights.size if total else 0):
        first, count = at, _sorted_cuts(panels, forms, centres, levels, nodes, n, j, np.int64(0), cuts)
        if count == 0:
            cuts[0] = 0.0
        for side, place in ((-1.0, cuts[0]), (1.0, cuts[max(count - 1, 0)])):
            write_half_line(beyond, side * place, x, weight)
            for k in range(few):
                wider[j, at], heavier[at] = side * x[k], weights[n] * weight[k]
                at += heavier[at] > LEAST
        for i in range(count - 1):
            half = 0.5 * (cuts[i + 1] - cuts[i])
            for k in range(points):
                z = cuts[i] + (1.0 + panels.points[k]) * half
                wider[j, at], heavier[at] = z, weights[n] * half * panels.shares[k] * math.exp(-0.5 * z * z)
                at += heavier[at] > LEAST
        for column in range(j):
            for i in range(first, at):
                wider[column, i] = nodes[column, n]
    return wider[:, :at].copy(), heavier[:at].copy()


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _with_panels(panels, forms, centres, levels, nodes, weights, j, cuts):  # type: ignore[no-untyped-def]
    """Nodes and weights with direction j, by panels that end at the reach; none if they would be too many."""
    points, total = panels.points, 0
    for n in range(weights.size):
        for i in range(_sorted_cuts(panels, forms, centres, levels, nodes, n, j, panels.ends.size, cuts) - 1):
            total += points.size * _pieces(panels, nodes, n, j, cuts[i], cuts[i + 1])
    if total > panels.most:
        total = 0
    wider, heavier, at = np.empty((nodes.shape[0], total)), np.empty(total), 0
    for n in range(weights.size if total else 0):
        first = at
        for i in range(_sorted_cuts(panels, forms, centres, levels, nodes, n, j, panels.ends.size, cuts) - 1):
            pieces = _pieces(panels, nodes, n, j, cuts[i], cuts[i + 1])
            half = 0.5 * (cuts[i + 1] - cuts[i]) / max(pieces, 1)
            for piece in range(pieces):
                for k in range(points.size):
                    wider[j, at + k] = cuts[i] + (2 * piece + 1 + points[k]) * half
                    heavier[at + k] = weights[n] * half * panels.shares[k]
                at += points.size
        for i in range(first, at):
            heavier[i] *= math.exp(-0.5 * wider[j, i] * wider[j, i])
        for column in range(j):
            for i in range(first, at):
                wider[column, i] = nodes[column, n]
    return wider, heavier


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _pieces(panels, nodes, n, j, left, right):  # type: ignore[no-untyped-def]
    """Number of panels between two cuts of direction j behind a node."""
    distance = max(left, -right, 0.0) ** 2
    for column in range(j):
        distance += nodes[column, n] ** 2
    if distance > panels.radius * panels.radius:
        return 0
    return max(1, math.ceil((right - left) / panels.widest))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sorted_cuts(panels, forms, centres, levels, nodes, n, j, fixed, cuts):  # type: ignore[no-untyped-def]
    """Write places where direction j is cut behind node n, the fixed ends of a bounded range first; their number."""
    ends, layers, count = panels.ends, panels.layers, fixed
    for i in range(fixed):
        cuts[i] = ends[i]
    for i in range(forms.shape[0]):
        loading, centre = forms[i, j], centres[i]
        later = 0.0
        for column in range(j + 1, forms.shape[1]):
            later += forms[i, column] ** 2
        if loading == 0.0 or later > panels.narrow * panels.narrow * loading * loading:
            continue
        width = math.sqrt(later) / abs(loading)
        for column in range(j):
            centre += forms[i, column] * nodes[column, n]
        for level in levels[i]:
            for layer in range(1 if width == 0.0 else layers.size):
                x = (level - centre) / loading + layers[layer] * width
                if ends[0] < x < ends[-1]:
                    place = count
                    while place > 0 and cuts[place - 1] > x:
                        cuts[place] = cuts[place - 1]
                        place -= 1
                    cuts[place] = x
                    count += 1
    return count
