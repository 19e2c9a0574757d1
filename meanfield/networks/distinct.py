"""Different outputs among those of all views: many are the same, where nodes are not active."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from meanfield.typing import FloatArray, IntArray

MOST_PAIRS = 4e8
"""Largest number of pairs of different outputs whose distances are taken: half a minute."""

SPREAD = np.uint64(0xFF51AFD7ED558CCD)
"""Odd factor by which each bit of a number moves about half of those above it, from MurmurHash3 (A. Appleby)."""


def merged(outputs: FloatArray) -> tuple[FloatArray, IntArray]:
    """Different outputs, and the place of each view among them."""
    different, place = np.unique(outputs, axis=0, return_inverse=True)
    return different, np.asarray(place.ravel())


def count_different(blocks: Iterable[FloatArray]) -> int:
    """Number of different outputs in blocks that need not fit into memory together.

    Outputs are told apart by sums of their mixed bits modulo 2^64, which differ but for a chance of some 1e-18 for each
    pair.
    """
    marks = [np.unique(_marks(outputs)) for outputs in blocks]
    return len(np.unique(np.concatenate(marks)))


def _marks(outputs: FloatArray) -> NDArray[np.uint64]:
    """Number of each row."""
    factors = np.random.default_rng(0).integers(1 << 64, size=outputs.shape[1], dtype=np.uint64)
    bits = (np.asarray(outputs, np.float64) + 0.0).view(np.uint64)  # -0 is 0
    bits ^= bits >> np.uint64(33)
    bits *= SPREAD  # round numbers and signs differ in their first bits alone
    bits ^= bits >> np.uint64(33)
    return np.asarray((bits * (factors | np.uint64(1))).sum(axis=1))


def reach_of(blocks: Callable[[], Iterable[FloatArray]]) -> float:
    """Bound of the distances of outputs, from the box around them and from the balls around its centre and around 0.

    Parameters
    ----------
    blocks : callable
        All outputs, block by block.
    """
    ends = [(y.min(axis=0), y.max(axis=0)) for y in blocks()]
    low, high = np.min(ends, axis=0)[0], np.max(ends, axis=0)[1]
    spread, middle = high - low, 0.5 * (high + low)
    squares = np.max([[((y - centre) ** 2).sum(axis=1).max() for centre in (middle, 0.0)] for y in blocks()], axis=0)
    return float(min(0.5 * (spread @ spread), 2.0 * squares.min()))
