"""Closures of two features on tiles of the plane of overlaps: polynomials, made where a path of q first comes along.

An average over two hidden variables takes a millisecond, and the same path is followed by every level of a solution.
Closures are analytic in q and z = sqrt(1 - q.q), and so in the stereographic coordinates p = q/(1 + z) up to the unit
circle, where they are not analytic in q. Products of Chebyshev polynomials on a small square of p converge
geometrically. Tiles are squares of a dyadic grid within the circle; one whose last coefficients are too large is
divided. Which tile belongs to a point does not depend on the path.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from meanfield.mckean_vlasov.closures import MOST_LIMITS, closure_values, compiled_closure_of, register_closure
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.compiled.array_operations import copy
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray

TILED_FEATURES = 2
"""Number of features whose closures are tiled: one is fast enough as it is, and tiles of three would never pay."""

DEGREES = 10
"""Number of polynomials in each overlap."""

TILE_TOLERANCE = 1e-10
"""Largest last coefficients, relative to the largest values; the error is that of the next ones, ten times less."""

LARGEST, SMALLEST = 4, 10
"""Binary logarithms of one over the sides of the largest and smallest tiles."""

MOST_TILES, MOST_DIVIDED = 400, 40
"""Largest number of tiles, and of those that were too large, after which no others are made."""


class Tiles(NamedTuple):
    """Tiles of the plane of overlaps on which a closure is tabulated.

    Parameters
    ----------
    places : ndarray of int, shape (tiles, 3)
        Binary logarithm of one over the side, and the numbers of the tile along both axes.
    good : ndarray of int, shape (tiles,)
        Whether the polynomials are accurate.
    coefficients : ndarray, shape (tiles, DEGREES, DEGREES, 3)
        Of g and Lambda.
    counts : ndarray of int, shape (3,)
        Tiles, those of them that are not accurate, and the number of the last one that was used.
    """

    places: IntArray
    good: IntArray
    coefficients: FloatArray
    counts: IntArray


class TiledClosure(NamedTuple):
    """A compiled closure of two features with its tiles.

    Parameters
    ----------
    closure : NamedTuple
        Closure of a type that is known to `closure_values`.
    """

    closure: Any
    tiles: Tiles


def tiled(closure: Any, features: int) -> Any:
    """Closure with tiles, all of which are still to be made; itself unless it has two features."""
    if features != TILED_FEATURES:
        return closure
    return TiledClosure(
        closure,
        Tiles(
            np.zeros((MOST_TILES, 3), dtype=np.int64),
            np.zeros(MOST_TILES, dtype=np.int64),
            np.zeros((MOST_TILES, DEGREES, DEGREES, TILED_FEATURES + 1)),
            np.zeros(3, dtype=np.int64),
        ),
    )


@lru_cache(maxsize=MOST_LIMITS)
def tiled_closure_of(limit: Limit) -> tuple[Any, float]:
    """Compiled closure of a limit with tiles, for paths that are followed many times, and its reach."""
    compiled, reach = compiled_closure_of(limit)
    return tiled(compiled, len(limit.coordinates)), reach


def closures_on_tiles(path: FloatArray) -> int:
    """Number of closures that the tiles of a path of overlaps take, shape (points, 2), if the largest are accurate."""
    q = np.stack([np.interp(np.arange(0.0, len(path) - 0.99, 0.01), np.arange(len(path)), each) for each in path.T])
    p = (q / (1.0 + np.sqrt(np.maximum(1.0 - (q * q).sum(axis=0), 0.0)))).T
    count = 0
    for size in range(LARGEST, SMALLEST + 1):
        places = np.floor(p * 2.0**size)
        fits = _fits(0.5**size, 0.5**size * np.hypot(*(places.T + 0.5)))
        count += len(np.unique(places[fits], axis=0))
        p = p[~fits]
    return DEGREES**2 * count


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fits(side, radius):  # type: ignore[no-untyped-def]
    """Whether a tile is at most a quarter as wide as its centre, at this radius, is far from the circle."""
    return side <= 0.25 * (1.0 - radius)


@register_closure(TiledClosure)
@numba.njit(cache=True, nogil=True, error_model="numpy")
def tiled_values(tiled, q):  # type: ignore[no-untyped-def]
    """Values of g, then Lambda, from a tile, or from the closure itself where there is none."""
    tiles = tiled.tiles
    if q[0] * q[0] + q[1] * q[1] < 1.0:
        p = q / (1.0 + math.sqrt(1.0 - q[0] * q[0] - q[1] * q[1]))
        number = tiles.counts[2]
        if number >= tiles.counts[0] or not tiles.good[number] or not _lies_on(tiles.places[number], p):
            number = _tile_of(tiled, p)
        if number >= 0:
            tiles.counts[2] = number
            return _evaluate(tiles.coefficients[number], tiles.places[number], p)
    return closure_values(tiled.closure, q)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _lies_on(place, p):  # type: ignore[no-untyped-def]
    scale = 2.0 ** place[0]
    return math.floor(scale * p[0]) == place[1] and math.floor(scale * p[1]) == place[2]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _is_same(place, other):  # type: ignore[no-untyped-def]
    return place[0] == other[0] and place[1] == other[1] and place[2] == other[2]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _tile_of(tiled, p):  # type: ignore[no-untyped-def]
    """Number of the largest tile around p that is accurate, made if need be; -1 if there is none."""
    tiles, place = tiled.tiles, np.empty(3, dtype=np.int64)
    for size in range(LARGEST, SMALLEST + 1):
        side = 0.5**size
        place[0], place[1], place[2] = size, math.floor(p[0] / side), math.floor(p[1] / side)
        radius = side * math.sqrt((place[1] + 0.5) ** 2 + (place[2] + 0.5) ** 2)
        if not _fits(side, radius):
            continue
        number = 0
        while number < tiles.counts[0] and not _is_same(tiles.places[number], place):
            number += 1
        if number == tiles.counts[0]:
            if number == tiles.good.size or tiles.counts[1] >= MOST_DIVIDED:
                return -1
            copy(place, tiles.places[number])
            _fill(tiled, number)
        if tiles.good[number]:
            return number
    return -1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fill(tiled, number):  # type: ignore[no-untyped-def]
    """Coefficients of a new tile from values at the zeros of the next polynomial, and whether they are accurate."""
    tiles = tiled.tiles
    side, p, x = 0.5 ** tiles.places[number, 0], np.empty(2), np.empty(DEGREES)
    polynomials, first = np.empty((DEGREES, DEGREES)), np.zeros((DEGREES, DEGREES, 3))
    for i in range(DEGREES):
        angle = math.pi * (i + 0.5) / DEGREES
        x[i] = math.cos(angle)
        for k in range(DEGREES):
            polynomials[k, i] = (2.0 if k > 0 else 1.0) / DEGREES * math.cos(k * angle)
    largest = np.zeros(3)
    for i in range(DEGREES):
        for j in range(DEGREES):
            p[0] = side * (tiles.places[number, 1] + 0.5 * (1.0 + x[i]))
            p[1] = side * (tiles.places[number, 2] + 0.5 * (1.0 + x[j]))
            values = closure_values(tiled.closure, 2.0 / (1.0 + p[0] * p[0] + p[1] * p[1]) * p)
            for n in range(3):
                largest[n] = max(largest[n], abs(values[n]))
                for k in range(DEGREES):
                    first[k, j, n] += polynomials[k, i] * values[n]
    coefficients, last = tiles.coefficients[number], np.zeros(3)
    for k in range(DEGREES):
        for m in range(DEGREES):
            for n in range(3):
                coefficients[k, m, n] = 0.0
                for j in range(DEGREES):
                    coefficients[k, m, n] += polynomials[m, j] * first[k, j, n]
                if max(k, m) >= DEGREES - 2:
                    last[n] += abs(coefficients[k, m, n])
    good = True
    for n in range(3):
        good = good and last[n] <= TILE_TOLERANCE * largest[n]  # not where a value is not finite
    tiles.good[number] = 1 if good else 0
    tiles.counts[0] += 1
    tiles.counts[1] += 0 if good else 1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _evaluate(coefficients, place, p):  # type: ignore[no-untyped-def]
    """Sum of products of polynomials on a tile."""
    scale = 2.0 ** place[0]
    x, y = 2.0 * (scale * p[0] - place[1]) - 1.0, 2.0 * (scale * p[1] - place[2]) - 1.0
    result = np.zeros(3)
    first, second = np.empty(DEGREES), np.empty(DEGREES)
    first[0] = second[0] = 1.0
    first[1], second[1] = x, y
    for k in range(2, DEGREES):
        first[k] = 2.0 * x * first[k - 1] - first[k - 2]
        second[k] = 2.0 * y * second[k - 1] - second[k - 2]
    for k in range(DEGREES):
        for m in range(DEGREES):
            weight = first[k] * second[m]
            for n in range(3):
                result[n] += weight * coefficients[k, m, n]
    return result
