"""All stationary states of a problem, from no hint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.stationary.coordinates import Coordinates
from meanfield.families.contrastive.stationary.equations import StationaryEquations
from meanfield.numerics.continuation import ball_starts, find_roots, newton, signed_permutations
from meanfield.typing import FloatArray

MOST_FEATURES = 3
"""Starts and nodes grow like a power of the number of features."""

NODE_ERROR = 1e-10
"""Largest error of q by the nodes in u that is accepted while there are more nodes to take."""


def check_features(problem: Problem) -> None:
    """Refuse problems with more features than the search can cover."""
    if len(problem.features) > MOST_FEATURES:
        raise InputError(
            f"features: {len(problem.features)} of them, but stationary states are found for one to {MOST_FEATURES}; "
            "remove features, or use the order parameters or SGD"
        )


def all_overlaps(equations: StationaryEquations, known: Sequence[FloatArray] = ()) -> list[FloatArray]:
    """Overlaps of all stationary states that are not known yet, in order."""
    d1 = len(equations.problem.features)
    found = find_roots(equations, ball_starts(d1), signed_permutations, known)
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
