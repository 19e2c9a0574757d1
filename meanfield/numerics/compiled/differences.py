"""Derivatives of functions of one number by differences of high order, with an estimate of their error.

Around each number the function is interpolated at Chebyshev nodes, none of them beyond a kink, and the interpolation is
differentiated. How far the nodes reach is chosen for the function: the farther, the less rounding matters, and the more
what the interpolation leaves out. Estimates are the last Chebyshev coefficients, and rounding of all, each with what
the derivative makes of it.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.numerics.compiled.scalar_functions import ScalarFunction, evaluate
from meanfield.typing import FloatArray

NODES = 14
"""Number of nodes of an interpolation; even, so that none is its middle. Rounding at its ends grows with their square:
with 16 the estimates of smooth functions whose domain ends are above `LARGEST_ERROR`."""

REACHES = (0.5, 0.25, 0.1, 0.04, 0.015, 0.006)
"""Distances of the ends of an interpolation, of which the most accurate one is taken."""

LARGEST_ERROR = 1e-10
"""Largest estimate of an error, relative to 1 plus the sizes of the derivative and of the function."""

ESTIMATE_POINTS = np.linspace(-6.0, 6.0, 241) + 0.00123
"""Numbers at which errors are estimated, and beside the kinks."""

DISTANCE_FROM_KINK = 1e-4
"""Distance of numbers beside a kink from it."""

_ANGLES = np.pi * (np.arange(NODES) + 0.5) / NODES
_OFFSETS = np.cos(_ANGLES)
_ORDERS = np.arange(1, NODES)
_COEFFICIENTS = 2.0 / NODES * np.cos(np.outer(_ORDERS, _ANGLES))
"""Matrix that makes Chebyshev coefficients, but for the first, of values at the nodes."""


def difference(function: ScalarFunction, kinks: tuple[float, ...] = (), least: float = -math.inf) -> ScalarFunction:
    """Derivative of a function of one number that numba compiles; at a kink that of the side above it.

    Parameters
    ----------
    kinks : tuple of float
        Where the function or a derivative of it jumps.
    least : float
        Number below which the function is never asked for a value.

    Raises
    ------
    ValueError
        If the function is not smooth enough for an estimate of `LARGEST_ERROR`, with the number where it is worst.
    """
    plain = getattr(function, "py_func", function)
    ends = np.unique([least, *kinks])
    reach = _best_reach(function, ends)

    def slope(x: float) -> float:
        low, high = x - reach, x + reach
        for end in ends:
            if low < end <= x:
                low = end
            if x < end < high:
                high = end
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        place = (x - middle) / half
        total, before, factor = 0.0, 0.0, 1.0  # polynomials of the second kind: derivatives of those of the first
        sums = np.zeros(NODES - 1)
        for node in range(NODES):
            value = plain(middle + half * _OFFSETS[node])
            for k in range(NODES - 1):
                sums[k] += _COEFFICIENTS[k, node] * value
        for k in range(NODES - 1):
            total += (k + 1) * factor * sums[k]
            before, factor = factor, 2.0 * place * factor - before
        return total / half

    return slope


def _best_reach(function: ScalarFunction, ends: FloatArray) -> float:
    """The reach with the smallest estimate of the largest error."""
    points = np.concatenate([ESTIMATE_POINTS, ends - DISTANCE_FROM_KINK, ends + DISTANCE_FROM_KINK])
    points = points[(points > ends[0]) & np.isfinite(points)]
    errors = {reach: estimates(function, points, ends, reach) for reach in REACHES}
    best = min(REACHES, key=lambda reach: float(np.max(errors[reach])))
    worst = int(np.argmax(errors[best]))
    if not errors[best][worst] <= LARGEST_ERROR:
        raise ValueError(
            f"differences give it to {errors[best][worst]:.2g} only at {points[worst]:.4g}, where the function has a "
            "kink or is steep"
        )
    return best


def estimates(function: ScalarFunction, points: FloatArray, ends: FloatArray, reach: float) -> FloatArray:
    """Estimates of errors, relative to 1 plus the sizes of derivative and function, at points above the first end."""
    ends = np.append(ends, np.inf)
    above = np.searchsorted(ends, points, side="right")
    low, high = np.maximum(points - reach, ends[above - 1]), np.minimum(points + reach, ends[above])
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    values = evaluate(function, middle[:, None] + half[:, None] * _OFFSETS)
    with np.errstate(all="ignore"):
        coefficients = values @ _COEFFICIENTS.T
        angles = np.arccos(np.clip((points - middle) / half, -1.0, 1.0))
        factors = _ORDERS * np.sin(np.outer(angles, _ORDERS)) / np.sin(angles)[:, None]
        slopes = np.abs((coefficients * factors).sum(axis=1))
        size = np.abs(values).max(axis=1)
        left_out = 4.0 * np.abs(coefficients[:, -3:]).sum(axis=1) + np.finfo(float).eps * size
        found = left_out * np.abs(factors).sum(axis=1) / (half * (1.0 + size) + slopes)
    return np.where(np.isfinite(found), found, np.inf)
