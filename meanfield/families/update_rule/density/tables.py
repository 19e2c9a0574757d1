"""Coefficients of one student along one feature as polynomials, made where a path of overlaps comes along.

Averages of a rule take a millisecond, and every level of a density asks for them along the same path. They are smooth
in the angle arcsin(R/sqrt(Q)) up to a perfect alignment, and in log Q. Where the rule is homogeneous in the student,
F(y, a s) = a^p F(y, s), powers of Q are all that the norm does, and where the norm is kept there is nothing: one
dimension is enough then. Tiles are those of a dyadic grid; one whose coefficients fall too slowly is divided.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.polynomial import chebyshev

from meanfield.typing import FloatArray

NODES = 10
"""Nodes of a tile in the angle and in log Q."""

_POINTS = np.asarray(chebyshev.chebpts1(NODES))
_TO_SERIES = np.linalg.inv(chebyshev.chebvander(_POINTS, NODES - 1))

SIZES = (1, 2, 3)
"""Binary logarithms of one over the sides of tiles, from the largest."""

SAFETY = 10.0
"""Factor on the next coefficients: there are more of them, and they may fall more slowly."""

MOST_DIVIDED = 4
"""Number of tiles that were too large after which no others are made: the function has no such polynomials."""

PROBED, SCALES = (-0.6, 0.3, 1.1), (0.5, 4.0)
"""Angles, and factors of Q, at which a rule is asked whether it is homogeneous."""

SAME = 1e-10
"""Largest relative difference of values that count as those of a homogeneous rule."""

ROUNDING = 1e-13
"""Size of what rounding leaves of a coefficient that vanishes, relative to the largest of the others."""

Coefficients = Callable[[float, float], FloatArray]
"""Function of R and Q to g, Lambda and the gain along the student; with variances that differ to g, g', h and these."""


class Table:
    """Coefficients by polynomials.

    Parameters
    ----------
    exact : callable
    norm : float
        Q at the start.
    tolerance : float
        Largest error of polynomials, relative to the largest values.
    kept : bool
        Whether Q stays.
    plane : bool
        Whether there are polynomials of two variables, which take many values: not where single ones are asked for.
    """

    def __init__(self, exact: Coefficients, norm: float, tolerance: float, kept: bool, plane: bool = True) -> None:
        self._exact, self._tolerance, self._plane = exact, tolerance, plane
        self._kept = norm if kept else None
        self._powers = None if kept else _powers(exact, norm)
        self._tiles: dict[tuple[int, ...], FloatArray | None] = {}
        self._divided = 0

    def __call__(self, R: float, Q: float) -> FloatArray:
        """Values of g, Lambda and the gain along the student."""
        angle = math.asin(min(max(R / math.sqrt(Q), -1.0), 1.0))
        if self._kept is not None or self._powers is not None:
            return self._at((angle,)) * (1.0 if self._powers is None else Q**self._powers)
        return self._at((angle, math.log(Q))) if self._plane else self._exact(R, Q)

    def _at(self, x: tuple[float, ...]) -> FloatArray:
        """Value of the function of these variables."""
        for size in SIZES:
            key = size, *(math.floor(each * 2.0**size) for each in x)
            if key not in self._tiles:
                if self._divided == MOST_DIVIDED:
                    break
                self._tiles[key] = self._made(*key)
            tile = self._tiles[key]
            if tile is not None:
                for each, place in zip(x, key[1:], strict=True):
                    tile = np.asarray(chebyshev.chebval(2.0 * (each * 2.0**size - place) - 1.0, tile))
                return tile
        return self._of(*x)

    def _made(self, size: int, *places: int) -> FloatArray | None:
        """Coefficients of a tile, shape (nodes, ..., values); None if they are too large."""
        axes = [((place + 0.5 * (1.0 + _POINTS)) / 2.0**size).tolist() for place in places]
        values = np.array([self._of(*x) for x in product(*axes)])
        tile = values.reshape(*(NODES for _ in places), -1)
        for axis in range(len(places)):
            tile = np.moveaxis(np.tensordot(_TO_SERIES, tile, axes=(1, axis)), 0, axis)
        errors = np.max([_left_out(np.moveaxis(tile, axis, 0)) for axis in range(len(places))], axis=0)
        largest = np.abs(values).max(axis=0)
        if np.all(errors <= np.maximum(self._tolerance * largest, ROUNDING * largest.max())):  # all of them finite
            return tile
        self._divided += 1
        return None

    def _of(self, angle: float, log_Q: float | None = None) -> FloatArray:
        """The function itself."""
        Q = math.exp(log_Q) if log_Q is not None else self._kept or 1.0
        return self._exact(math.sqrt(Q) * math.sin(angle), Q)


def _left_out(tile: FloatArray) -> FloatArray:
    """Size of the coefficients that follow the last ones along the first axis, which fall by a factor or faster."""
    sizes = np.abs(tile).reshape(NODES // 2, 2, -1, tile.shape[-1]).max(axis=(1, 2))  # of pairs: some are odd or even
    factor = np.minimum(sizes[-1] / np.maximum(sizes[-2], 1e-300), 1.0)
    return np.asarray(SAFETY * sizes[-1] * factor)


def _powers(exact: Coefficients, norm: float) -> FloatArray | None:
    """Powers of Q in g, Lambda and the gain along the student under a homogeneous rule; None if it is none."""
    reference = exact(0.3 * math.sqrt(norm), norm)
    other = exact(0.3 * math.sqrt(4.0 * norm), 4.0 * norm)
    if not (reference[-2] > 0.0 and other[-2] > 0.0):
        return None
    power = round(2.0 * math.log(other[-2] / reference[-2]) / math.log(4.0)) / 2.0
    own, along = 0.5 * (power - 1.0), 0.5 * power
    powers = np.array([along, power, own] if len(reference) == 3 else [along, along, own, power, own])
    for angle in PROBED:
        unit = exact(math.sin(angle), 1.0)
        for Q in (scale * norm for scale in SCALES):
            scaled = exact(math.sqrt(Q) * math.sin(angle), Q) * Q**-powers
            if np.any(np.abs(scaled - unit) > SAME * np.abs(unit).max()):
                return None
    return powers
