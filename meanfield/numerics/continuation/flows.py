"""Paths of a flow to where it is slow: near states at rest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meanfield.numerics.ode import Tolerance, solve_ode
from meanfield.typing import FloatArray

TOLERANCE = Tolerance(relative=1e-4, absolute=1e-7)
"""Tolerance of a step, on which only the side of a border depends."""


def slowed(velocity: Callable[[FloatArray], FloatArray], x: FloatArray, speed: float, longest: float) -> FloatArray:
    """End of the path from x where the largest component of the velocity is as small as a speed.

    Parameters
    ----------
    velocity : callable
        x -> dx/dt, shape (n,).
    x : ndarray, shape (n,)
    speed : float
    longest : float
        Time after which the path ends where it is.

    Returns
    -------
    ndarray, shape (n,)
        x itself where the path is not finite.
    """

    def excess(t: float, x: FloatArray) -> float:
        return float(np.log(np.abs(velocity(x)).max() / speed + np.finfo(float).tiny))

    if excess(0.0, x) <= 0.0:
        return x
    path = solve_ode(lambda t, x: velocity(x), x, [0.0, longest], TOLERANCE, stops=[excess])
    return path.end if np.isfinite(path.end).all() else x
