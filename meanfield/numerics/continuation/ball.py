"""Starting points for roots in the unit ball: points that fill it, and images under its symmetries."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import numpy as np

from meanfield.typing import FloatArray


def directions(n: int) -> Iterator[FloatArray]:
    """Unit vectors along all sums of axes."""
    yield from (v / np.linalg.norm(v) for v in map(np.array, product((-1.0, 0.0, 1.0), repeat=n)) if np.any(v))


def ball_starts(n: int) -> Iterator[FloatArray]:
    """Points of the n-dimensional ball: 0, symmetric directions at several radii, then points that fill it."""
    yield np.zeros(n)
    for radius in (0.35, 0.7, 0.9, 0.97):  # radii of starts, besides 0 and the axes
        yield from (radius * direction for direction in directions(n))
    from scipy.stats import qmc  # imported where it is used: it takes longer than most scripts run

    # Of evenly scattered points of the cube, those in the ball.
    cube = qmc.Sobol(n, scramble=False).random(256 * n) * 2.0 - 1.0
    yield from cube[np.linalg.norm(cube, axis=1) < 0.999]


def signed_permutations(x: FloatArray) -> Iterator[FloatArray]:
    """Images of a point by exchange of signs and places, shape (n,), itself first."""
    for signs in product((1.0, -1.0), repeat=len(x)):
        for order in permutations(range(len(x))):
            yield np.array(signs) * x[list(order)]
