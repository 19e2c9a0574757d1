"""Unknowns of stationary states: overlaps in units of sqrt E[w^2], in the unit ball, and log E[w^2] where it is free.

Where E[w^2] = 1 is kept the unknowns are q itself. Where variances rho of the noise differ, E[rho u w] in units of
sqrt E[rho w^2] and log E[rho w^2] stand between them.
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
    if not limit.free_norm and limit.spectrum is None:
        return bool(x @ x < 1.0)
    parts = np.split(x[: _vectors(limit) * len(limit.coordinates)], _vectors(limit))
    # Nearer to 1 rounding does not tell weights from point masses; overlaps beyond 1e6 count as infinite.
    inside = all(
        part @ part < most * (1.0 - 1e-8) for part, most in zip(parts, (1.0, limit.mean_variance), strict=False)
    )
    return bool(inside and np.all(np.abs(x[len(parts) * len(parts[0]) :]) <= math.log(1e6)))


def _vectors(limit: Limit) -> int:
    """Number of overlaps of each feature: plain and, where variances differ, weighted."""
    return 1 if limit.spectrum is None else 2


def norm_at(limit: Limit, x: FloatArray) -> float:
    """E[w^2]."""
    return math.exp(x[-1]) if limit.free_norm else limit.initial_norm


def overlap_at(limit: Limit, x: FloatArray) -> FloatArray:
    """The overlap q, shape (d1,)."""
    return np.asarray(math.sqrt(norm_at(limit, x)) * x[: len(limit.coordinates)])


def weighted_at(limit: Limit, x: FloatArray) -> FloatArray:
    """E[rho u w] and E[rho w^2] where variances differ; otherwise nothing."""
    if limit.spectrum is None:
        return np.empty(0)
    d1 = len(limit.coordinates)
    norm = math.exp(x[2 * d1])
    return np.append(math.sqrt(norm) * x[d1 : 2 * d1], norm)


def closure_at(limit: Limit, x: FloatArray) -> FloatArray:
    """Values of g, then Lambda and, where the norm is free, G."""
    q = np.append(overlap_at(limit, x), weighted_at(limit, x))
    return values_of(limit, np.append(q, norm_at(limit, x)) if limit.free_norm else q)


def by_averages(x: FloatArray, d1: int, norm: float) -> FloatArray:
    """Derivatives of the unknowns by q and, where it is free, E[w^2], shape (unknowns, unknowns)."""
    slopes = np.eye(len(x))
    slopes[:d1, :d1] /= math.sqrt(norm)
    slopes[:d1, d1:] = -0.5 * x[:d1, None] / norm
    slopes[d1:, d1:] /= norm
    return slopes


def unknowns_at(limit: Limit, place: FloatArray, size: float) -> FloatArray:
    """Unknowns of weights that know nothing of variances, at an overlap and log E[w^2], unless this is kept."""
    mean, free = limit.mean_variance, limit.free_norm
    size = size if free else math.log(limit.initial_norm)
    weighted = [] if limit.spectrum is None else [*(math.sqrt(mean) * place), size + math.log(mean)]
    return np.array([*place, *weighted, *([size] if free else [])])


def starts(limit: Limit) -> Iterator[FloatArray]:
    """Starts of a search, from the middle outwards; there, where states may be by symmetry, with all norms."""
    places, sizes = ball_starts(len(limit.coordinates)), STARTS_OF_NORM if limit.free_norm else (0.0,)
    middle = next(places)
    yield from (unknowns_at(limit, middle, size) for size in sizes)
    yield from (unknowns_at(limit, place, size) for place, size in zip(places, cycle(sizes), strict=False))


def images(limit: Limit, x: FloatArray) -> Iterator[FloatArray]:
    """Images by exchange of signs and places of features, itself first."""
    d1, vectors = len(limit.coordinates), _vectors(limit)
    for image in signed_permutations(np.arange(1.0, d1 + 1)):
        order, signs = np.abs(image).astype(int) - 1, np.sign(image)
        yield np.concatenate([*(signs * x[k * d1 + order] for k in range(vectors)), x[vectors * d1 :]])
