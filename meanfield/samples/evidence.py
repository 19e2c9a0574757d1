"""Samples of a training run taken apart along features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator

from meanfield.samples.assumed import Assumed
from meanfield.samples.statistics import CHANCE_ERRORS, FEWEST_SAMPLES, Statistics, statistics_of
from meanfield.typing import FloatArray, IntArray


@dataclass(frozen=True)
class Evidence:
    """Samples of a training run, and what is known beside them.

    Parameters
    ----------
    x : ndarray, shape (samples, N)
        Inputs in the order of training, evenly spread over it, of which equal ones count once.
    U : ndarray, shape (N, features)
    assumed : Assumed
    seen : float
        Number of samples that a run takes in all.
    rng : Generator
    path : tuple of (float, ndarray of shape (N, vectors))
        Weights, and which share of the run was over then.
    all_labels : ndarray, shape (samples,), optional
    label_noise : float, optional
        Variance of labels that features do not explain, in the problem.
    known_uses : float, optional
        How often each sample is used, where that is known.
    features_given : bool
        Whether features are known from elsewhere.
    """

    x: FloatArray
    U: FloatArray
    assumed: Assumed
    seen: float
    rng: Generator
    path: tuple[tuple[float, FloatArray], ...] = ()
    all_labels: FloatArray | None = None
    label_noise: float | None = None
    known_uses: float | None = None
    features_given: bool = True

    @property
    def N(self) -> int:
        """Number of coordinates."""
        return int(self.x.shape[1])

    @cached_property
    def _rows(self) -> tuple[IntArray, IntArray]:
        """First of equal samples, and how often they are there."""
        _, first, counts = np.unique(self.x, axis=0, return_index=True, return_counts=True)
        return np.sort(first), counts

    @property
    def different(self) -> IntArray:
        """Numbers of the samples that differ from those before."""
        return self._rows[0]

    @property
    def is_enough(self) -> bool:
        """Whether there are enough different samples for more than a test of repeats."""
        return len(self.different) >= FEWEST_SAMPLES

    @property
    def uses(self) -> float:
        """How often each sample is used: two of a stock of P are equal with the probability 1/P."""
        counts = self._rows[1]
        equal = float((counts * (counts - 1)).sum() / 2)
        return self.seen * equal / self._pairs if self.known_uses is None else self.known_uses

    @property
    def _pairs(self) -> float:
        return len(self.x) * (len(self.x) - 1.0) / 2

    @cached_property
    def _parts(self) -> tuple[FloatArray, FloatArray]:
        return taken_apart(self.x[self.different], self.U)

    @property
    def fields(self) -> FloatArray:
        """Components along the features, c of x = U c/sqrt(N) + a, shape (samples, features)."""
        return self._parts[0]

    @property
    def rest(self) -> FloatArray:
        """What is left, shape (samples, N)."""
        return self._parts[1]

    def later_than(self, over: float) -> FloatArray:
        """What is left of samples that training takes after a share of it, which weights have not seen by then."""
        return self.rest[self.different >= over * len(self.x)]

    @property
    def labels(self) -> FloatArray | None:
        """Labels of samples that differ."""
        return None if self.all_labels is None else self.all_labels[self.different]

    @cached_property
    def statistics(self) -> Statistics:
        """Statistics of what is left."""
        return statistics_of(self.rest, self.rng)[0]

    @property
    def variance(self) -> tuple[float, float]:
        """Variance of a coordinate beside the features, and its standard error."""
        share = 1.0 - self.fields.shape[1] / self.N
        error = (self.rest**2).mean(axis=1).std() / share / len(self.rest) ** 0.5
        return self.statistics.variance / share, float(error)

    @cached_property
    def unexplained(self) -> tuple[float, float]:
        """Variance of labels that fields do not explain, and its standard error, by half squares of neighbours."""
        from scipy.spatial import cKDTree

        fields, labels = self.fields, self.labels
        assert labels is not None
        if fields.shape[1] == 1:
            order = np.argsort(fields[:, 0])
            one, other = order[:-1:2], order[1::2]
        else:
            scaled = fields / np.maximum(fields.std(axis=0), 1e-300)
            one, other = np.arange(len(fields)), np.asarray(cKDTree(scaled).query(scaled, k=2)[1])[:, 1]
        half = 0.5 * (labels[one] - labels[other]) ** 2
        return float(half.mean()), float(half.std() / np.sqrt(len(half)))

    @property
    def limits(self) -> str:
        """What so few samples cannot show: of a direction more than the edge of the spectrum of half of them."""
        if not self.is_enough:
            return ""
        s = self.statistics
        spike = max(float(np.sqrt(2.0 * self.N / s.samples)), s.leading_chance)
        parts = (
            f"a direction with less than {1.0 + spike:.2g} times the variance of others",
            f"variances along directions that scatter by less than {(CHANCE_ERRORS * s.anisotropy_error) ** 0.5:.2g}",
            f"a kurtosis of fields within {CHANCE_ERRORS * (24.0 / s.samples) ** 0.5:.2g} of 3",
            f"that a sample is used {3.0 * self.seen / self._pairs:.2g} times more",  # none is seen twice in 1 of 20
        )
        return f"{s.samples} samples cannot show {', '.join(parts)}"


def taken_apart(x: FloatArray, U: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Components of inputs along features, and what is left."""
    fields = np.sqrt(len(U)) * np.linalg.lstsq(U, x.T, rcond=None)[0].T
    return fields, np.asarray(x - fields @ U.T / np.sqrt(len(U)))
