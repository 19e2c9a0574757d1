"""What a list of stationary states lacks: where every overlap has a density, the indices of all states add up to 1.

The index of a state is the sign of det(-dF/dq). F points inwards on the sphere (see `search`), so that by Poincare and
Hopf the indices add up to 1; along a line they alternate, from +1 to +1. Where some overlaps have no density of unit
norm, the norm condenses, and what attracts there is no density that could be listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.search import probes
from meanfield.typing import FloatArray


class Missing(NamedTuple):
    """What is missing in a list of states.

    Parameters
    ----------
    where : str
        The states between which it is missing, in words.
    attracts : bool
        Whether it attracts, as between two unstable states; else it is a border, as between two that attract.
    empty : ndarray, shape (d1,), optional
        The overlap there nearest to 0 that has no density of unit norm, of some that are tried.
    """

    where: str
    attracts: bool
    empty: FloatArray | None


def missing_states(
    equations: StationaryEquations, overlaps: Sequence[FloatArray], indices: Sequence[float]
) -> list[Missing]:
    """What is missing among states, in the order of their overlaps; nothing where an index is not known.

    Parameters
    ----------
    equations : StationaryEquations
    overlaps : sequence of ndarray, shape (d1,)
        Those of all states, in order.
    indices : sequence of float
        Their indices.
    """
    if not overlaps or not all(abs(index) == 1 for index in indices):
        return []
    if len(overlaps[0]) > 1:
        total = sum(indices)
        return [] if total == 1 else [_among(equations, total)]
    places = [-1.0, *(float(q[0]) for q in overlaps), 1.0]
    ends = pairwise(zip(places, [-1.0, *indices, -1.0], strict=True))  # F points inwards
    return [_between(equations, one[0], other[0], one[1]) for one, other in ends if one[1] == other[1]]


def _between(equations: StationaryEquations, start: float, stop: float, index: float) -> Missing:
    """What is missing on a line between neighbours with one index."""
    inside = np.linspace(start, stop, 11)[1:-1]  # nine overlaps between two states
    inside[np.argmin(np.abs(inside))] *= abs(inside).min() > 1e-9  # exactly 0, of which more can be said
    return Missing(f"between q = {start:.4g} and {stop:.4g}", index < 0, _empty(equations, inside[:, None]))


def _among(equations: StationaryEquations, total: float) -> Missing:
    """What is missing among states of several features."""
    where = f"among the states, whose indices add up to {total:.0f}, not to 1"
    return Missing(where, total < 1, _empty(equations, np.array(probes(len(equations.limit.coordinates)))))


def _empty(equations: StationaryEquations, overlaps: FloatArray) -> FloatArray | None:
    """The first of some overlaps, from 0 outwards, that has no density of unit norm."""
    outwards = overlaps[np.argsort(np.linalg.norm(overlaps, axis=1))]
    return next((q for q in outwards if equations.state(q) is None), None)
