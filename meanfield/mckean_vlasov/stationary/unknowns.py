"""Unknowns of stationary states: overlaps in units of sqrt E[w^2], in the unit ball, and log E[w^2] where it is free.

Where E[w^2] = 1 is kept the unknowns are q itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import cycle

import numpy as np

from meanfield.mckean_vlasov.closures import values_of
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.continuation import ball_starts, signed_permutations
from meanfield.typing import FloatArray

STARTS_OF_NORM = tuple(math.log(norm) for norm in (1.0, 0.2, 5.0))
"""Values of log E[w^2] from which a search starts."""


def is_inside(limit: Limit, x: FloatArray) -> bool:
    """Whether weights can have the overlaps; not where numbers are NaN."""
    if not limit.free_norm:
        return bool(x @ x < 1.0)
    # Nearer to 1 rounding does not tell weights from point masses; overlaps beyond 1e6 count as infinite.
    return bool(x[:-1] @ x[:-1] < 1.0 - 1e-8 and abs(x[-1]) <= math.log(1e6))


def norm_at(limit: Limit, x: FloatArray) -> float:
    """E[w^2]."""
    return math.exp(x[-1]) if limit.free_norm else limit.initial_norm


def overlap_at(limit: Limit, x: FloatArray) -> FloatArray:
    """The overlap q, shape (d1,)."""
    return np.asarray(math.sqrt(norm_at(limit, x)) * x[: len(limit.coordinates)])


def closure_at(limit: Limit, x: FloatArray) -> FloatArray:
    """Values of g, then Lambda and, where the norm is free, G."""
    q = overlap_at(limit, x)
    return values_of(limit, np.append(q, norm_at(limit, x)) if limit.free_norm else q)


def by_averages(x: FloatArray, d1: int, norm: float) -> FloatArray:
    """Derivatives of the unknowns by q and, where it is free, E[w^2], shape (unknowns, unknowns)."""
    slopes = np.eye(len(x))
    slopes[:d1, :d1] /= math.sqrt(norm)
    slopes[:d1, d1:] = -0.5 * x[:d1, None] / norm
    slopes[d1:, d1:] /= norm
    return slopes


def starts(limit: Limit) -> Iterator[FloatArray]:
    """Starts of a search, from the middle outwards; there, where states may be by symmetry, with all norms."""
    places = ball_starts(len(limit.coordinates))
    if not limit.free_norm:
        yield from places
        return
    middle = next(places)
    yield from (np.append(middle, size) for size in STARTS_OF_NORM)
    yield from (np.append(place, size) for place, size in zip(places, cycle(STARTS_OF_NORM), strict=False))


def images(limit: Limit, x: FloatArray) -> Iterator[FloatArray]:
    """Images by exchange of signs and places of features, itself first."""
    d1 = len(limit.coordinates)
    return (np.append(image, x[d1:]) for image in signed_permutations(x[:d1]))
