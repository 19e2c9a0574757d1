"""Smooth functions of time as Chebyshev series on intervals that are halved until they resolve the function."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev

from meanfield.errors import InputError
from meanfield.typing import FloatArray

NODES = 10
"""Number of values of an interval."""

_POINTS = np.asarray(chebyshev.chebpts1(NODES))
_TO_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(_POINTS, NODES - 1))


def interpolant(
    function: Callable[[float], FloatArray], start: float, stop: float, what: str
) -> Callable[[float], FloatArray]:
    """Function of time that costs little, in place of one that takes long.

    Parameters
    ----------
    function : callable
        Smooth function of time, to arrays of one shape.
    start, stop : float
        Times between which it is asked for.
    what : str
        Name of the function, for messages.

    Raises
    ------
    InputError
        If the function is not finite, or not resolved by 128 intervals.
    """
    found: dict[float, FloatArray] = {}
    left = [(start, stop)]
    while left:
        low, high = left.pop()
        values = np.array([function(0.5 * (low + high) + 0.5 * (high - low) * x) for x in _POINTS])
        coefficients = np.tensordot(_TO_COEFFICIENTS, values, axes=1)
        # What is smooth needs no more than 128 intervals.
        if not np.isfinite(values).all() or len(found) + len(left) >= 128:
            raise InputError(f"{what} between t = {low:.6g} and {high:.6g}: not finite, or not smooth")
        if np.abs(coefficients[-2:]).max() <= 1e-6 * np.abs(values).max():  # the first that are left out are as small
            found[low] = coefficients
        else:
            left += [(low, 0.5 * (low + high)), (0.5 * (low + high), high)]
    edges = np.array([*sorted(found), stop])

    def value(t: float) -> FloatArray:
        i = int(np.clip(np.searchsorted(edges, t, side="right") - 1, 0, len(found) - 1))
        x = (2.0 * t - edges[i] - edges[i + 1]) / (edges[i + 1] - edges[i])
        return np.asarray(chebyshev.chebval(x, found[edges[i]]))

    return value
