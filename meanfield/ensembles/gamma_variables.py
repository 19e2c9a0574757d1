"""Gamma and chi-squared variables inside compiled code, from the numbers of random-access streams.

A variable takes one normal and one uniform number every time; rejections, which are rare, take theirs from a stream of
their own.
"""

from __future__ import annotations

import math

from meanfield.ensembles.streams import retry
from meanfield.process import own_numba as numba

ATTEMPTS = 256
"""Largest number of attempts of a rejection method, which has as many numbers of its own; each attempt fails with
probability below 0.05."""


@numba.njit(inline="always", error_model="numpy")
def gamma(shape, normal, uniform, key, replica, slot):  # type: ignore[no-untyped-def]
    """A variable of law Gamma(shape), shape >= 1, by the method of Marsaglia and Tsang (2000).

    Parameters
    ----------
    shape : float
    normal, uniform : float
        For the first attempt; others take theirs from the stream of rejections.
    key, replica, slot
        Which part of that stream is ours alone.
    """
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    x, u = normal, uniform
    for attempt in range(ATTEMPTS):
        root = 1.0 + c * x
        if root > 0.0:
            v = root * root * root
            square = x * x
            if u < 1.0 - 0.0331 * square * square:
                return d * v
            if math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
                return d * v
        x, u = retry(key, replica, slot * ATTEMPTS + attempt)
    return math.nan


@numba.njit(inline="always", error_model="numpy")
def chi_squared(degrees, normal, uniform, key, replica, slot):  # type: ignore[no-untyped-def]
    """A chi-squared variable with `degrees` >= 1 degrees of freedom; arguments as those of `gamma`."""
    if degrees == 1:
        return normal * normal
    return 2.0 * gamma(0.5 * degrees, normal, uniform, key, replica, slot)
