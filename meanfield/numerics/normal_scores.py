"""Distribution functions on the scale of the normal law, on which those of neighbouring parameters interpolate well.

The normal score of a distribution function F at w is z = Phi^-1(F(w)). That of a Gaussian law is a straight line in w,
whose position and slope move smoothly with a parameter, however narrow the law is. Averages of distribution functions
of narrow laws at a few parameters have a step at each of them; averages of scores lie where the laws between lie.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from meanfield.typing import FloatArray

LARGEST_SCORE = 5.0
"""Largest score that is taken from probabilities: 3e-7 lies beyond, about as much as a numerical solution errs by."""

EMPTY_SCORE = 8.0
"""Score of a probability of zero, where a law is so narrow that no edge has a smaller score."""

EMPTY_TAIL = float(ndtr(-EMPTY_SCORE))

LAWS_AT_ONCE = 32
"""Number of laws at a time: they stay in the fast memory of a processor."""


def normal_scores(edges: FloatArray, masses: FloatArray) -> FloatArray:
    """Normal scores of distribution functions at cell edges, shape (..., cells + 1), increasing along the last axis.

    Parameters
    ----------
    edges : ndarray, shape (cells + 1,)
    masses : ndarray, shape (..., cells)
        Probabilities of the cells, adding up to one.

    Notes
    -----
    Far tails are straight lines, because rounding leaves no digits of small probabilities: they continue the slope
    between the last two scores below `LARGEST_SCORE`, or from the median to there where that is steeper.
    """
    rows = masses.reshape(-1, masses.shape[-1])
    z = np.empty((len(rows), len(edges)))
    for first in range(0, len(rows), LAWS_AT_ONCE):
        block = slice(first, first + LAWS_AT_ONCE)
        z[block] = _raw_scores(rows[block])
        _straighten(edges, z[block])
    return z.reshape(*masses.shape[:-1], len(edges))


def _raw_scores(masses: FloatArray) -> FloatArray:
    """Scores of probabilities, whatever digits their sums have."""
    below, above = np.zeros((2, len(masses), masses.shape[1] + 1))
    np.cumsum(masses, axis=1, out=below[:, 1:])
    np.cumsum(masses[:, ::-1], axis=1, out=above[:, -2::-1])
    tail = np.minimum(below, above)  # the smaller one has the digits
    z = np.full_like(tail, -EMPTY_SCORE)
    near = tail > EMPTY_TAIL
    z[near] = ndtri(tail[near])  # `where=` of SciPy's functions corrupts memory
    return np.asarray(np.where(below < above, z, -z))


def _straighten(edges: FloatArray, z: FloatArray) -> None:
    """Replace the tails of each row of scores by straight lines."""
    last_edge = len(edges) - 1
    first = np.argmax(z > -LARGEST_SCORE, axis=1)
    last = last_edge - np.argmax((z < LARGEST_SCORE)[:, ::-1], axis=1)
    median = np.argmin(np.abs(z), axis=1)
    few = last <= first  # at most one edge within: its neighbours tell the slope
    left, right = np.where(few, first - 1, first), np.where(few, first, first + 1)
    _extend(edges, z, left, right, median, np.arange(last_edge + 1) < left[:, None])
    left, right = np.where(few, last + 1, last), np.where(few, last, last - 1)
    _extend(edges, z, left, right, median, np.arange(last_edge + 1) > left[:, None])


def _extend(
    edges: FloatArray, z: FloatArray, end: FloatArray, inner: FloatArray, median: FloatArray, beyond: FloatArray
) -> None:
    """Continue rows of scores beyond an end, with the slope to an inner point or to the median."""
    rows = np.arange(len(z))
    at = z[rows, end]
    slope = (z[rows, inner] - at) / (edges[inner] - edges[end])
    apart = edges[median] - edges[end]
    average = np.divide(z[rows, median] - at, apart, where=apart != 0, out=np.zeros(len(z)))
    line = at[:, None] + np.maximum(slope, average)[:, None] * (edges - edges[end][:, None])
    np.copyto(z, line, where=beyond)
