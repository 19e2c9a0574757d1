"""Smooth functions at very many places, from their values at few: series of Chebyshev polynomials on pieces of a line.

With two features there are thousands of nodes in u and as many tilts u.g, but averages over w depend on u through the
tilt alone, and smoothly. Pieces are halved until they resolve the functions; what would take as many values as were
asked for is evaluated where it was asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev

from meanfield.typing import FloatArray

NODES = 20
"""Number of values of a piece."""

FEWEST = 10 * NODES
"""Number of places up to which functions are evaluated at each of them."""

ACCURACY = 3e-14
"""Accuracy to some roundings, see `at_many`."""

MOST_PIECES = 400
"""Number of pieces from which on none is halved."""

_POINTS = np.asarray(chebyshev.chebpts2(NODES))
_TO_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(_POINTS, NODES - 1))

Functions = Callable[[FloatArray], tuple[FloatArray, int]]

Rounded = Callable[[FloatArray], tuple[FloatArray, FloatArray, int]]


def at_many(functions: Functions, places: FloatArray, accuracy: float = ACCURACY) -> tuple[FloatArray, int]:
    """Values of smooth functions at many places.

    Parameters
    ----------
    functions : callable
        places, shape (n,) -> values, shape (n, functions), and a status, 0 if all is well.
    places : ndarray, shape (n,)
        Increasing.
    accuracy : float
        Largest size of the last three coefficients, relative to the largest value of a function.

    Returns
    -------
    values : ndarray, shape (n, functions)
    status : int
        The first one that is not 0.
    """
    if len(places) <= FEWEST:
        return functions(places)
    values, direct = np.empty((len(places), 0)), np.ones(len(places), dtype=bool)
    pieces, spent = [(float(places[0]), float(places[-1]))], NODES
    scale = np.zeros(0)
    while pieces and spent < direct.sum():
        found, status = functions(_nodes_of(pieces))
        if status != 0:
            return np.full((len(places), found.shape[1]), np.nan), status
        if not values.size:
            values, scale = np.empty((len(places), found.shape[1])), np.zeros(found.shape[1])
        scale = np.maximum(scale, np.abs(found).max(axis=0))
        series = np.einsum("kn,pnf->pkf", _TO_COEFFICIENTS, found.reshape(len(pieces), NODES, -1))
        halves = []
        for (a, b), coefficients in zip(pieces, series, strict=True):
            inside = slice(*np.searchsorted(places, [a, np.nextafter(b, math.inf)]))
            if inside.start == inside.stop:
                continue
            if np.all(np.abs(coefficients[-3:]) <= accuracy * scale):
                values[inside] = chebyshev.chebval((2.0 * places[inside] - a - b) / (b - a), coefficients).T
                direct[inside] = False
            else:
                halves += [(a, 0.5 * (a + b)), (0.5 * (a + b), b)]
        pieces = halves
        spent += NODES * len(pieces)
    if direct.any():
        found, status = functions(places[direct])
        if status != 0:
            return np.full((len(places), found.shape[1]), np.nan), status
        values[direct] = found
    return values, 0


def resolved_pieces(functions: Rounded, low: float, high: float) -> FloatArray:
    """Ends of pieces of a line on each of which functions are polynomials of a moderate degree to 1e-11.

    Parameters
    ----------
    functions : callable
        places, shape (n,) -> values, shape (n, functions), of the size of 1 where it matters, what rounding may move
        them by, of the same shape, and a status, 0 if all is well.
    low, high : float
        Ends of the line.

    Returns
    -------
    ndarray, shape (pieces + 1,)
        Increasing; pieces are no narrower than rounding allows, and none is halved once functions have no values.

    Notes
    -----
    Steps are seen however narrow they are, because nodes lie on both sides of them; a bump between nodes is not.
    """
    pieces, ends = [(low, 0.5 * (low + high)), (0.5 * (low + high), high)], {low, 0.5 * (low + high), high}
    while pieces and len(ends) < MOST_PIECES:
        *found, status = functions(_nodes_of(pieces))
        if status != 0:
            break
        values, roundings = (part.reshape(len(pieces), NODES, -1) for part in found)
        tails = np.abs(np.einsum("kn,pnf->pkf", _TO_COEFFICIENTS[-3:], values)).max(axis=1)
        # A piece ends when its last three coefficients are below what averages need.
        allowed = np.maximum(1e-11 * np.maximum(np.abs(values).max(axis=1), 1.0), roundings.max(axis=1))
        coarse = np.any(tails > allowed, axis=1)
        cut = [(a, 0.5 * (a + b), b) for (a, b), more in zip(pieces, coarse, strict=True) if more]
        ends.update(middle for _, middle, _ in cut)
        # Layers of noise are wider than 1e-9 of the line, unless they hardly matter.
        pieces = [half for a, middle, b in cut for half in ((a, middle), (middle, b)) if b - a > 1e-9 * (high - low)]
    return np.array(sorted(ends))


def gathered(ends: FloatArray, places: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Few nodes in the place of many: sums of weights times functions that are polynomials between some ends.

    Parameters
    ----------
    ends : ndarray, shape (pieces + 1,)
        Increasing.
    places : ndarray, shape (n,)
        Within the ends, and in any order.
    weights : ndarray, shape (n, sums)

    Returns
    -------
    nodes : ndarray, shape (k,)
        Those of the pieces that have places, `NODES` of each.
    weights : ndarray, shape (k, sums)
    """
    order = np.argsort(places)
    places, weights = places[order], weights[order]
    firsts = [0, *np.searchsorted(places, ends[1:-1]), len(places)]
    nodes, sums = [], []
    for a, b, first, last in zip(ends[:-1], ends[1:], firsts[:-1], firsts[1:], strict=True):
        if first == last:
            continue
        x = (2.0 * places[first:last] - a - b) / (b - a)
        nodes.append(_nodes_of([(a, b)]))
        sums.append(_TO_COEFFICIENTS.T @ (chebyshev.chebvander(x, NODES - 1).T @ weights[first:last]))
    return np.concatenate(nodes), np.concatenate(sums)


def _nodes_of(pieces: list[tuple[float, float]]) -> FloatArray:
    """Nodes of all pieces, one piece after another; both ends of a piece are among them, where a jump may hide."""
    low, high = np.array(pieces).T[:, :, None]
    return np.asarray((0.5 * (low + high) + 0.5 * (high - low) * _POINTS).ravel())
