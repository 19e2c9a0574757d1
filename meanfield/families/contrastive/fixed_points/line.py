"""Roots of a function of one overlap on [-1, 1] or (0, 1]: brackets, and tangencies, where two are about to meet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from meanfield.typing import FloatArray

SMALLEST_OVERLAPS = (1e-6, 1e-5, 1e-4, 1e-3)
"""Smallest positive overlaps of the search, for a root that has just left 0."""

TANGENCY_TOLERANCE = 1e-11
"""Largest |f| at an extremum that counts as a double root."""


def line_roots(function: Callable[[FloatArray], FloatArray], positive: bool, points: int) -> list[float]:
    """Roots in q of a function of size one, in order.

    Parameters
    ----------
    function : callable
        q -> f(q), both of shape (n,), on the closed interval.
    positive : bool
        Whether to find roots in (0, 1] only, for f(0) = 0.
    points : int
        Number of points on (0, 1] at which signs are compared, evenly spaced in arcsin q.
    """
    angle = np.linspace(0.0, 0.5 * np.pi, points + 1)[1:]
    q = np.concatenate([SMALLEST_OVERLAPS, np.sin(angle[np.sin(angle) > SMALLEST_OVERLAPS[-1]])])
    q = np.minimum(q, 1.0) if positive else np.concatenate([-q[::-1], q])

    def reduced(q: FloatArray) -> FloatArray:
        return function(q) / q if positive else function(q)

    values = reduced(q)
    roots = [float(x) for x, f in zip(q, values, strict=True) if abs(f) <= TANGENCY_TOLERANCE and abs(x) == 1.0]
    roots += [_between(reduced, q[i], q[i + 1]) for i in np.flatnonzero(values[:-1] * values[1:] < 0)]
    size = np.abs(values)
    turns = (size[1:-1] <= size[:-2]) & (size[1:-1] <= size[2:])
    kept_sign = (values[:-2] * values[1:-1] > 0) & (values[1:-1] * values[2:] > 0)
    for i in np.flatnonzero(turns & kept_sign):
        roots += _touching(reduced, q[i], q[i + 2], float(np.sign(values[i + 1])))
    snapped = [0.0 if abs(x) < 1e-9 and abs(function(np.zeros(1))[0]) <= TANGENCY_TOLERANCE else x for x in roots]
    return sorted(set(snapped))


def _between(function: Callable[[FloatArray], FloatArray], low: float, high: float) -> float:
    return float(brentq(lambda x: function(np.array([x]))[0], low, high, xtol=1e-15, rtol=1e-15))


def _touching(function: Callable[[FloatArray], FloatArray], low: float, high: float, sign: float) -> list[float]:
    """Roots near a minimum of |f|: two, one double root or none."""
    least = minimize_scalar(
        lambda x: sign * function(np.array([x]))[0], bounds=(low, high), method="bounded", options={"xatol": 1e-10}
    )
    if least.fun < -TANGENCY_TOLERANCE:
        return [_between(function, low, least.x), _between(function, least.x, high)]
    return [float(least.x)] if least.fun <= TANGENCY_TOLERANCE else []
