"""Distribution functions of single runs minus a predicted one, of which W1 and KS are made for judgement.

They are taken at a few points, and are vectors of runs that scatter independently, whatever their points depend on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meanfield.comparison.rotations import Deviations
from meanfield.typing import FloatArray


class DeviationsAt(NamedTuple):
    """Deviations of the distribution functions of all runs at one place of a comparison, such as a time.

    Parameters
    ----------
    position : tuple of int
        Position in the variables of the comparison.
    widths : ndarray, shape (points,)
        Lengths that the points stand for in integrals.
    rows : ndarray, shape (runs, points)
    error : float
        Largest error of the predicted distribution function.
    """

    position: tuple[int, ...]
    widths: FloatArray
    rows: FloatArray
    error: float = 0.0


def deviations_from(
    values: FloatArray, membership: FloatArray, points: FloatArray, predicted: FloatArray
) -> FloatArray:
    """Empirical minus predicted distribution functions of runs, whose mean over runs is that of all values pooled.

    Parameters
    ----------
    values, membership : ndarray, shape (runs, values)
        Values of each run, and how much each of them counts.
    points, predicted : ndarray, shape (points,)

    Returns
    -------
    ndarray, shape (runs, points)
    """
    places = np.searchsorted(points, values)
    size = len(points) + 1
    counts = np.array([np.bincount(p, m, size) for p, m in zip(places, membership, strict=True)])
    total = counts.sum(axis=1, keepdims=True)
    return np.asarray((np.cumsum(counts, axis=1)[:, :-1] - predicted * total) / total.mean())


def joined(places: Sequence[DeviationsAt], names: Sequence[str]) -> Deviations:
    """Deviations at all places.

    Parameters
    ----------
    places : sequence of DeviationsAt
    names : sequence of str
        Variables of the comparison, which begin with W1 or KS.
    """
    widths = np.array([place.widths for place in places])

    def integral(values: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("...px,px->...p", values, widths))

    return Deviations(
        rows=np.stack([place.rows for place in places], axis=1),
        allowance=np.array([np.full(len(place.widths), place.error) for place in places]),
        measures={name: integral if name.startswith("W1") else _largest for name in names},
        where=tuple(np.transpose([place.position for place in places])),
    )


def _largest(values: FloatArray) -> FloatArray:
    return np.asarray(values.max(axis=-1))
