"""Gauss rules for polynomials of a standard normal variable beyond a place, as tables of that place."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from meanfield.numerics.compiled.array_operations import copy
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

FARTHEST = 9.0
"""Standard deviations up to which tables go: what lies beyond the last place is 1e-19 of the probability."""

SPACING = 0.025
"""Distance of places between which nodes and weights are polynomials."""

POINTS = 12
"""Places through which such a polynomial goes, half of them on each side: it is off by rounding."""

_AT = np.arange(0.5 - POINTS // 2, POINTS // 2)
_OTHERS = [np.delete(_AT, k) for k in range(POINTS)]
INTERPOLATION = np.array([np.poly(each)[::-1] / np.prod(x - each) for x, each in zip(_AT, _OTHERS, strict=True)]).T
"""Coefficients of powers on [-0.5, 0.5] in those polynomials, shape (powers, points)."""

MOST_POINTS = 28
"""Largest number of nodes: more of them change faster with the place, and only narrow functions need them."""

BEYOND = 16.0
"""Standard deviations beyond the place, or the mean, at which integrals end: x^56 exp(-x^2/2) is negligible there."""

FINE = 100
"""Nodes by which the normal law on a half-line is replaced, before it has a Gauss rule."""


class HalfLines(NamedTuple):
    """Tables of Gauss rules for exp(-x^2/2) on x > place.

    Parameters
    ----------
    first : float
        Place of the first row.
    spacing : float
    nodes, weights : ndarray, shape (intervals, POINTS, n)
        Coefficients of powers on [-0.5, 0.5] between two places. Without any nodes there is no rule. Nodes are
        distances from the place.
    """

    first: float
    spacing: float
    nodes: FloatArray
    weights: FloatArray


NO_HALF_LINES = HalfLines(0.0, 1.0, np.empty((0, 0, 0)), np.empty((0, 0, 0)))
"""Tables of rules without nodes."""


@lru_cache(maxsize=16)
def half_lines(count: int) -> HalfLines:
    """Tables of rules with some nodes, exact for polynomials of degree 2 count - 1.

    Recurrence coefficients of orthogonal polynomials are those of a fine rule, by the procedure of Stieltjes, and nodes
    and weights follow from their matrix (Golub and Welsch, Math. Comp. 23, 221, 1969).
    """
    beside = SPACING * (POINTS // 2)
    places = np.arange(-FARTHEST - beside, FARTHEST + beside, SPACING)
    points, shares = np.polynomial.legendre.leggauss(FINE)
    start = np.maximum(places, -BEYOND)[:, None]
    length = np.maximum(start, 0.0) + BEYOND - start
    x = start + 0.5 * length * (points + 1.0)
    weight = 0.5 * length * shares * np.exp(-0.5 * x * x)
    weight, total = weight / weight.sum(axis=1, keepdims=True), weight.sum(axis=1)
    jacobi = np.zeros((len(places), count, count))
    before, polynomial = np.zeros_like(x), np.ones_like(x)
    for n in range(count):
        jacobi[:, n, n] = (weight * x * polynomial**2).sum(axis=1)
        after = (x - jacobi[:, n, n, None]) * polynomial - (jacobi[:, n, n - 1, None] if n else 0.0) * before
        size = np.sqrt((weight * after**2).sum(axis=1))
        if n + 1 < count:
            jacobi[:, n, n + 1] = jacobi[:, n + 1, n] = size
        before, polynomial = polynomial, after / size[:, None]
    nodes, vectors = np.linalg.eigh(jacobi)
    tables = nodes - places[:, None], total[:, None] * vectors[:, 0] ** 2
    windows = (np.lib.stride_tricks.sliding_window_view(table, POINTS, axis=0) for table in tables)
    return HalfLines(
        places[POINTS // 2 - 1], SPACING, *((each @ INTERPOLATION.T).swapaxes(1, 2).copy() for each in windows)
    )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def write_half_line(tables, place, x, weight):  # type: ignore[no-untyped-def]
    """Write the nodes and weights for exp(-x^2/2) on x > place.

    Parameters
    ----------
    tables : HalfLines
    place : float
    x, weight : ndarray, shape (n,)
    """
    at = (place - tables.first) / tables.spacing
    cell = min(max(int(at), 0), len(tables.nodes) - 1)
    t = min(max(at - cell, 0.0), 1.0) - 0.5  # beyond the tables a rule is that of their end
    nodes, weights = tables.nodes[cell], tables.weights[cell]
    copy(nodes[-1], x)
    copy(weights[-1], weight)
    for power in range(len(nodes) - 2, -1, -1):
        for n in range(x.size):
            x[n] = x[n] * t + nodes[power, n]
            weight[n] = weight[n] * t + weights[power, n]
    for n in range(x.size):
        x[n] += place
