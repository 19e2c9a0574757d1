"""Different outputs among those of all views: many are the same, where nodes are not active."""

from __future__ import annotations

import numpy as np

from meanfield.typing import FloatArray, IntArray

MOST_PAIRS = 4e8
"""Largest number of pairs of different outputs whose distances are taken: half a minute."""


def merged(outputs: FloatArray) -> tuple[FloatArray, IntArray]:
    """Different outputs, and the place of each view among them."""
    different, place = np.unique(outputs, axis=0, return_inverse=True)
    return different, np.asarray(place.ravel())


def reach_of(outputs: FloatArray) -> float:
    """Bound of the distances of outputs, from the box around them and from the balls around its centre and around 0."""
    spread, middle = np.ptp(outputs, axis=0), 0.5 * (outputs.max(axis=0) + outputs.min(axis=0))
    squares = min(((outputs - centre) ** 2).sum(axis=1).max() for centre in (middle, 0.0))
    return float(min(0.5 * (spread @ spread), 2.0 * squares))
