"""Samples of a training run taken apart along features, and what may be found in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.samples.assumed import Assumed
from meanfield.samples.statistics import Statistics
from meanfield.typing import FloatArray, IntArray


@dataclass(frozen=True)
class Finding:
    """Assumption that samples contradict beyond chance.

    Parameters
    ----------
    name : str
        One of the names of `TESTS`.
    size : float
        Relative change of what drives training.
    matters : bool
        Whether the size is more than 1/sqrt(N).
    words : str
        What was measured, beside what the problem has.
    remedy : str
    """

    name: str
    size: float
    matters: bool
    words: str
    remedy: str


@dataclass(frozen=True)
class Evidence:
    """Samples of a training run, taken apart along features.

    Parameters
    ----------
    assumed : Assumed
    fields : ndarray, shape (samples, features)
        Components along the features, c of x = U c/sqrt(N) + a.
    drawn : ndarray, shape (draws, features)
        The same of the problem.
    rest : ndarray, shape (samples, N)
        What is left.
    uses : float
        How often each sample is used.
    weights : ndarray, shape (N, vectors), optional
        At the start.
    labels : ndarray, shape (samples,), optional
    label_noise : float, optional
        Variance of labels that features do not explain, in the problem.
    features_given : bool
        Whether features are known from elsewhere.
    statistics : Statistics
        Of the rest.
    """

    assumed: Assumed
    fields: FloatArray
    drawn: FloatArray
    rest: FloatArray
    uses: float
    weights: FloatArray | None
    labels: FloatArray | None
    label_noise: float | None
    features_given: bool
    statistics: Statistics

    @property
    def N(self) -> int:
        """Number of coordinates."""
        return int(self.rest.shape[1])

    def found(self, name: str, size: float, words: str, remedy: str) -> Finding:
        """Finding of a size."""
        return Finding(name, size, size > self.N**-0.5, words, remedy)


def repeated(x: FloatArray) -> tuple[IntArray, float, float]:
    """First of equal rows, and pairs of rows: how many are equal, and how many there are.

    Two rows of a stock of P samples are equal with the probability 1/P.
    """
    _, first, counts = np.unique(x, axis=0, return_index=True, return_counts=True)
    return np.sort(first), float((counts * (counts - 1)).sum() / 2), len(x) * (len(x) - 1.0) / 2


def taken_apart(x: FloatArray, U: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Components of inputs along features, and what is left."""
    fields = np.sqrt(len(U)) * np.linalg.lstsq(U, x.T, rcond=None)[0].T
    return fields, np.asarray(x - fields @ U.T / np.sqrt(len(U)))
