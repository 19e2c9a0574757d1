"""All stationary states of a problem, from no hint."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import numpy as np
from scipy.stats import qmc

from meanfield.closures import Closure
from meanfield.continuation import find_roots, newton
from meanfield.errors import InputError
from meanfield.problem import Problem
from meanfield.stationary.coordinates import Coordinates
from meanfield.stationary.equations import StationaryEquations
from meanfield.typing import FloatArray

MOST_FEATURES = 3
"""Starts and nodes grow like a power of the number of features."""

RADII = (0.35, 0.7, 0.9, 0.97)
"""Values of |q| at which the search starts, besides 0 and the axes."""

SCATTERED = 64
"""Starts for each feature that fill the ball evenly."""

NODE_ERROR = 1e-10
"""Largest error of q by the nodes in u that is accepted while there are more nodes to take."""


def check_features(problem: Problem) -> None:
    """Refuse problems with more features than the search can cover."""
    if len(problem.features) > MOST_FEATURES:
        raise InputError(
            f"features: {len(problem.features)} of them, but stationary states are found for one to {MOST_FEATURES}; "
            "remove features, or use the order parameters or SGD"
        )


def starts(d1: int) -> Iterator[FloatArray]:
    """Overlaps at which to begin: 0, symmetric directions at several radii, then points that fill the ball."""
    yield np.zeros(d1)
    directions = [v / np.linalg.norm(v) for v in map(np.array, product((-1.0, 0.0, 1.0), repeat=d1)) if np.any(v)]
    for radius in RADII:
        yield from (radius * direction for direction in directions)
    cube = qmc.Sobol(d1, scramble=False).random(4 * SCATTERED * d1) * 2.0 - 1.0
    yield from cube[np.linalg.norm(cube, axis=1) < 0.999]


def images(q: FloatArray) -> Iterator[FloatArray]:
    """Where a symmetric problem has other states if there is one at q: signs and places exchanged."""
    for signs in product((1.0, -1.0), repeat=len(q)):
        for order in permutations(range(len(q))):
            yield np.array(signs) * q[list(order)]


def all_overlaps(equations: StationaryEquations, known: list[FloatArray] | None = None) -> list[FloatArray]:
    """Overlaps of all stationary states that are not known yet, in order."""
    d1 = len(equations.problem.features)
    found = find_roots(equations, starts(d1), images, known or [])
    return sorted(found, key=lambda q: np.round(q, 9).tolist())


def resolved(problem: Problem, closure: Closure) -> tuple[StationaryEquations, list[FloatArray]]:
    """All overlaps, with as many nodes in u as they need, and the equations with these nodes."""
    equations = StationaryEquations(problem, closure, Coordinates(problem))
    overlaps = all_overlaps(equations)
    while not all(equations.node_error(q) <= NODE_ERROR for q in overlaps):
        finer = equations.coordinates.finer
        if finer is None:
            break
        equations = StationaryEquations(problem, closure, finer)
        polished = (newton(equations, q) for q in overlaps)
        overlaps = [q for q in polished if q is not None]
    return equations, overlaps
