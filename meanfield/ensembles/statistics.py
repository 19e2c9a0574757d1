"""Mean, covariance and quantiles of ensembles whose full record would not fit, replica by replica."""

from __future__ import annotations

import numpy as np

from meanfield.ensembles.arrays import State
from meanfield.typing import FloatArray

LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""Quantiles that are kept."""

EXACT = 8192
"""Up to so many replicas quantiles are those of the sample; of more they are read off a histogram."""

BINS = 4000
"""Bins of the histogram, over thrice the range of the first replicas: 0.006 standard deviations each."""


class RunningStatistics:
    """Statistics of q and r at all output times over replicas that arrive in order.

    Parameters
    ----------
    outputs, features : int
        Numbers of output times and of features.

    Notes
    -----
    Means and covariances by the pairwise update of Chan, Golub and LeVeque (1983). The result depends on the order in
    which replicas arrive by rounding, so that they have to arrive in the order of their numbers.
    """

    def __init__(self, outputs: int, features: int) -> None:
        columns = features + 1
        self._count = 0
        self._mean = np.zeros((outputs, columns))
        self._products = np.zeros((outputs, columns, columns))
        self._first: list[FloatArray] = []
        self._edges = np.empty((0, outputs, features))
        self._counts = np.zeros((BINS + 2, outputs, features), dtype=np.int64)

    def add(self, q: FloatArray, r: FloatArray) -> None:
        """Take in replicas.

        Parameters
        ----------
        q : ndarray, shape (replicas, outputs, features)
        r : ndarray, shape (replicas, outputs)
        """
        self._add_moments(np.concatenate([q, r[:, :, None]], axis=2))
        room = max(0, EXACT - (self._count - len(q)))
        if room:
            self._first.append(q[:room])
        if len(q) > room:
            if not len(self._edges):
                self._begin_histogram()
            self._add_counts(q[room:])

    def _add_moments(self, x: FloatArray) -> None:
        count = len(x)
        mean = x.mean(axis=0)
        centred = x - mean
        shift = mean - self._mean
        total = self._count + count
        self._products += np.einsum("rti,rtj->tij", centred, centred)
        self._products += self._count * count / total * shift[:, :, None] * shift[:, None, :]
        self._mean += count / total * shift
        self._count = total

    def _begin_histogram(self) -> None:
        first = np.concatenate(self._first)
        low, high = first.min(axis=0), first.max(axis=0)
        width = np.maximum(high - low, 1e-14)
        self._edges = np.linspace(low - width, high + width, BINS + 1)
        self._add_counts(first)

    def _add_counts(self, q: FloatArray) -> None:
        low, high = self._edges[0], self._edges[-1]
        place = np.floor((q - low) / (high - low) * BINS) + 1
        place = np.clip(np.nan_to_num(place), 0, BINS + 1).astype(np.int64)
        for t in range(place.shape[1]):
            for k in range(place.shape[2]):
                self._counts[:, t, k] += np.bincount(place[:, t, k], minlength=BINS + 2)

    @property
    def count(self) -> int:
        """Number of replicas so far."""
        return self._count

    @property
    def mean(self) -> FloatArray:
        """Means of q, then of r, shape (outputs, features + 1); NaN before the first replica."""
        return self._mean if self._count else np.full_like(self._mean, np.nan)

    @property
    def covariance(self) -> FloatArray:
        """Unbiased covariances of them, shape (outputs, features + 1, features + 1); NaN of a single replica."""
        if self._count < 2:
            return np.full_like(self._products, np.nan)
        return np.asarray(self._products / (self._count - 1))

    @property
    def quantiles(self) -> FloatArray:
        """Quantiles of q at `LEVELS`, shape (levels, outputs, features); NaN where one lies beyond the histogram."""
        if not self._count:
            return np.full((len(LEVELS), *self._mean[:, :-1].shape), np.nan)
        if not len(self._edges):
            return np.asarray(np.quantile(np.concatenate(self._first), LEVELS, axis=0))
        result = np.full((len(LEVELS), *self._counts.shape[1:]), np.nan)
        share = np.cumsum(self._counts[:-1], axis=0) / self._count
        for t, k in np.ndindex(*self._counts.shape[1:]):
            inside = (share[0, t, k] < LEVELS) & (share[-1, t, k] > LEVELS)
            result[inside, t, k] = np.interp(np.array(LEVELS)[inside], share[:, t, k], self._edges[:, t, k])
        return result

    @property
    def state(self) -> State:
        """Everything, for `restore`."""
        return {
            "count": np.array(self._count),
            "mean": self._mean,
            "products": self._products,
            "first": np.concatenate(self._first) if self._first else np.empty((0, *self._mean[:, :-1].shape)),
            "edges": self._edges,
            "counts": self._counts,
        }

    def restore(self, state: State) -> None:
        """Go on from a state."""
        self._count = int(state["count"])
        self._mean, self._products = state["mean"], state["products"]
        self._first, self._edges, self._counts = [state["first"]], state["edges"], state["counts"]
