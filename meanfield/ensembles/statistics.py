"""Mean, covariance and quantiles of ensembles whose full record would not fit, replica by replica."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.ensembles.arrays import State
from meanfield.typing import FloatArray

LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""Probabilities of the quantiles that are kept."""

MOST_SORTED = 8192
"""Largest number of replicas for which quantiles are those of the sample; those of more are read off a histogram."""

BINS = 4000
"""Number of bins of the histogram, over thrice the range of the first replicas: 0.006 standard deviations each."""


class RunningStatistics:
    """Statistics of several numbers at all output times over replicas that arrive in order.

    Parameters
    ----------
    outputs, columns : int
        How many output times there are, and numbers at each.
    ranked : sequence of int
        Columns whose quantiles are wanted.

    Notes
    -----
    Means and covariances by the pairwise update of Chan, Golub and LeVeque (1983). The result depends on the order in
    which replicas arrive by rounding, so that they have to arrive in the order of their numbers.
    """

    def __init__(self, outputs: int, columns: int, ranked: Sequence[int]) -> None:
        self._ranked = list(ranked)
        self._count = 0
        self._mean = np.zeros((outputs, columns))
        self._products = np.zeros((outputs, columns, columns))
        self._first: list[FloatArray] = []
        self._edges = np.empty((0, outputs, len(self._ranked)))
        self._counts = np.zeros((BINS + 2, outputs, len(self._ranked)), dtype=np.int64)

    def add(self, x: FloatArray) -> None:
        """Take in the results of further replicas.

        Parameters
        ----------
        x : ndarray, shape (replicas, outputs, columns)
        """
        self._add_moments(x)
        if not self._ranked:
            return
        y = np.take(x, self._ranked, axis=2)
        room = max(0, MOST_SORTED - (self._count - len(y)))
        if room:
            self._first.append(y[:room])
        if len(y) > room:
            if not len(self._edges):
                self._begin_histogram()
            self._add_counts(y[room:])

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

    def _add_counts(self, y: FloatArray) -> None:
        low, high = self._edges[0], self._edges[-1]
        place = np.floor((y - low) / (high - low) * BINS) + 1
        place = np.clip(np.nan_to_num(place), 0, BINS + 1).astype(np.int64)
        for t in range(place.shape[1]):
            for k in range(place.shape[2]):
                self._counts[:, t, k] += np.bincount(place[:, t, k], minlength=BINS + 2)

    @property
    def count(self) -> int:
        """Number of replicas that were taken in so far."""
        return self._count

    @property
    def mean(self) -> FloatArray:
        """Means, shape (outputs, columns); NaN before the first replica."""
        return self._mean if self._count else np.full_like(self._mean, np.nan)

    @property
    def covariance(self) -> FloatArray:
        """Unbiased covariances, shape (outputs, columns, columns); NaN of a single replica."""
        if self._count < 2:
            return np.full_like(self._products, np.nan)
        return self._products / (self._count - 1)

    @property
    def quantiles(self) -> FloatArray:
        """Quantiles at `LEVELS`, shape (levels, outputs, ranked columns); NaN where one lies beyond the histogram."""
        if not self._first:
            return np.full((len(LEVELS), *self._counts.shape[1:]), np.nan)
        if not len(self._edges):
            return np.quantile(np.concatenate(self._first), LEVELS, axis=0)
        result = np.full((len(LEVELS), *self._counts.shape[1:]), np.nan)
        share = np.cumsum(self._counts[:-1], axis=0) / self._count
        for t, k in np.ndindex(*self._counts.shape[1:]):
            inside = (share[0, t, k] < LEVELS) & (share[-1, t, k] > LEVELS)
            result[inside, t, k] = np.interp(np.array(LEVELS)[inside], share[:, t, k], self._edges[:, t, k])
        return result

    @property
    def state(self) -> State:
        """Complete state, for `restore`."""
        return {
            "count": np.array(self._count),
            "mean": self._mean,
            "products": self._products,
            "first": np.concatenate(self._first) if self._first else np.empty((0, *self._counts.shape[1:])),
            "edges": self._edges,
            "counts": self._counts,
        }

    def restore(self, state: State) -> None:
        """Restore a saved state."""
        self._count = int(state["count"])
        self._mean, self._products = state["mean"], state["products"]
        self._first = [state["first"]] if len(state["first"]) else []
        self._edges, self._counts = state["edges"], state["counts"]
