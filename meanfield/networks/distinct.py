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
    """Bound of the distances of outputs."""
    spread = np.ptp(outputs, axis=0)
    return 0.5 * float(spread @ spread)
