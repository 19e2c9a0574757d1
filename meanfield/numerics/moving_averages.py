"""Moving averages y' of a path y, dy'/dt = a (y - y') from y' = y, which change nothing of the path itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from meanfield.numerics.ode import Path, Tolerance, solve_in_stretches
from meanfield.typing import FloatArray


def average_along(
    path: Path, start: FloatArray, times: FloatArray, corners: Sequence[float], a: float, tolerance: Tolerance
) -> FloatArray:
    """Averages at some times.

    Parameters
    ----------
    path : callable
        From a time to y, shape (n,).
    start : ndarray, shape (n,)
        The average at the first time.
    times : ndarray, shape (times,)
        Two or more.
    corners : sequence of float
        Times at which the path bends, increasing.
    a : float
        Rate of the average.
    tolerance : Tolerance
        Of a step, that of the path.

    Returns
    -------
    ndarray, shape (times, n)
    """
    ends = [times[0], *(corner for corner in corners if times[0] < corner < times[-1]), times[-1]]
    stretches = [
        (np.unique([low, *times[(low <= times) & (times <= high)], high]), lambda t, y: a * (path(t) - y))
        for low, high in pairwise(ends)
    ]
    found = solve_in_stretches(stretches, start, times, tolerance, integrator="DOP853")
    return found.values


def along_a_line(average: FloatArray, before: FloatArray, after: FloatArray, a: float, dt: float) -> FloatArray:
    """Average after a time in which the path goes along a line, for paths that are known to second order."""
    left, lag = np.exp(-a * dt), -np.expm1(-a * dt) / (a * dt)
    return np.asarray(left * (average - before) + after - lag * (after - before))
