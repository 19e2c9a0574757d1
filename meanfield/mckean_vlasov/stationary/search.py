"""Search for all stationary states, without a starting guess."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.errors import InputError
from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.stationary.equations import State, StationaryEquations
from meanfield.numerics.continuation import ball_starts, find_roots, newton, signed_permutations
from meanfield.typing import FloatArray

MOST_FEATURES = 3
"""Largest number of features: the numbers of starts and of nodes grow like powers with it."""

NODE_ERROR = 1e-10
"""Largest error of q by the nodes in u that is accepted while there are more nodes to take."""


def check_features(features: int) -> None:
    """Refuse more features than the search can cover."""
    if features > MOST_FEATURES:
        raise InputError(
            f"features: {features} of them, but stationary states are found for one to {MOST_FEATURES}; "
            "remove features, or use the order parameters or SGD"
        )


def all_overlaps(equations: StationaryEquations, known: Sequence[FloatArray] = ()) -> list[FloatArray]:
    """Overlaps of all stationary states that are not known yet, in order."""
    d1 = len(equations.limit.coordinates)
    found = find_roots(equations, ball_starts(d1), signed_permutations, known)
    return sorted(found, key=lambda q: np.round(q, 9).tolist())


def resolved(limit: Limit) -> tuple[StationaryEquations, list[FloatArray]]:
    """All overlaps, with as many nodes in u as they need, and the equations with these nodes."""
    equations = StationaryEquations(limit)
    overlaps = all_overlaps(equations)
    while not all(equations.node_error(q) <= NODE_ERROR for q in overlaps):
        finer = equations.coordinates.finer
        if finer is None:
            break
        equations = StationaryEquations(limit, finer)
        polished = (newton(equations, q) for q in overlaps)
        overlaps = [q for q in polished if q is not None]
    return equations, overlaps


def all_states(limit: Limit) -> tuple[StationaryEquations, list[State]]:
    """All stationary states with their densities, and the equations that they solve.

    Parameters
    ----------
    limit : Limit
        Limit with one to three features; its start does not matter.

    Raises
    ------
    InputError
        If there are more features.
    """
    check_features(len(limit.coordinates))
    equations, overlaps = resolved(limit)
    return equations, [state for state in map(equations.state, overlaps) if state is not None]
