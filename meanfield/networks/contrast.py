"""Losses of contrastive learning as functions of distances, with their derivatives (latent_tree.md, section 1.2).

A triple is an anchor, a positive view of the same sample, and negatives, views of other samples. Distances are
r = |y - y'|^2/2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import expit

from meanfield.typing import FloatArray

Kind = Literal["simple", "triplet", "infonce", "exact", "beta", "nt_xent", "batch_ratio"]

TRIPLES = ("simple", "triplet", "infonce", "beta")
"""Losses that are means over triples."""


class Slopes(NamedTuple):
    """Value of a loss for each triple, and its derivatives by the distances.

    Parameters
    ----------
    value, positive : ndarray, shape (...)
    negative : ndarray, shape (..., negatives)
    """

    value: FloatArray
    positive: FloatArray
    negative: FloatArray


@dataclass(frozen=True)
class Contrast:
    """A loss, with its parameters; those that a kind does not have are not used.

    Parameters
    ----------
    temperature : float
        tau.
    margin : float
        r0 of the soft triplet loss.
    negatives : int
        H, of `infonce` and `exact`; of `nt_xent` the number of other samples in a batch.
    beta : float
        Weight of distances between views of one sample, which `beta` adds; to `nt_xent` it adds beta r_+/tau, and
        divides the sum by 1 + beta, as the public code does.
    """

    kind: Kind
    temperature: float = 1.0
    margin: float = 0.0
    negatives: int = 1
    beta: float = 0.0

    @property
    def each(self) -> int:
        """Number of negative samples of an anchor in losses of triples."""
        return self.negatives if self.kind in ("infonce", "nt_xent") else 1

    @property
    def together(self) -> int:
        """Number of views of each negative sample."""
        return 2 if self.kind == "nt_xent" else 1

    @property
    def unit(self) -> float:
        """Factor of the logarithm in `triplet` and `infonce`."""
        return self.temperature if self.kind == "triplet" else 1.0

    @property
    def shift(self) -> float:
        """Margin in units of the temperature."""
        return self.margin / self.temperature if self.kind == "triplet" else 0.0

    def of_triples(self, positive: FloatArray, negative: FloatArray) -> Slopes:
        """Loss of triples.

        Parameters
        ----------
        positive : ndarray, shape (...)
            Distance of anchor and positive.
        negative : ndarray, shape (..., negatives)
            Distances of anchor and negatives.
        """
        tau = self.temperature
        if self.kind in ("simple", "beta"):
            ones = np.ones(np.broadcast_shapes(positive.shape, negative.shape[:-1]))
            beta = self.beta if self.kind == "beta" else 0.0
            value = (1.0 + beta) * positive - negative[..., 0]
            return Slopes(value, (1.0 + beta) * ones, -ones[..., None])
        if self.kind not in ("triplet", "infonce"):
            raise ValueError(f"the loss '{self.kind}' is no mean over triples")
        if self.kind == "triplet" or negative.shape[-1] == 1:  # InfoNCE with one negative is that, divided by tau
            value, slope = _soft_plus_of_difference(positive / tau + self.shift, negative[..., 0] / tau)
            slope *= self.unit / tau
            value *= self.unit
            return Slopes(value, slope, -slope[..., None])
        x = (positive[..., None] - negative) / tau
        largest = np.maximum(x.max(axis=-1), 0.0)  # so that nothing overflows
        shares, one = np.exp(x - largest[..., None]), np.exp(-largest)
        total = one + shares.sum(axis=-1)
        shares /= total[..., None] * tau
        return Slopes(largest + np.log(total), 1.0 / tau - one / (tau * total), -shares)

    def weight(self, distance: FloatArray) -> FloatArray:
        """Weight xi of a pair of samples, at a distance of each other, in the part of a loss that has an operator.

        That of InfoNCE with one negative for `exact`, for which it is all, and for `infonce`; 1 for `simple` and
        `beta` (latent_tree.md, section 1.3).
        """
        if self.kind in ("simple", "beta"):
            return np.ones_like(distance)
        if self.kind == "triplet":
            return expit((self.margin - distance) / self.temperature)
        return expit(-distance / self.temperature) / self.temperature

    def of_batch_means(self, positive: float, negative: float, outputs: int) -> tuple[float, float]:
        """Loss `batch_ratio` of mean distances, and its derivative by the positive one, minus that by the negative.

        Source: the public code of the paper has no logarithm, and averages squares over batch and outputs.
        """
        scale = 2.0 / (outputs * self.temperature)
        share = float(expit(scale * (negative - positive)))
        return -share, scale * share * (1.0 - share)


def _soft_plus_of_difference(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log(1 + e^(x - y)) and its derivative by x; of all pairs of few x and y with exponentials of these alone."""
    low, high = min(x.min(), y.min()), max(x.max(), y.max())
    # Over a range of exponents up to 30, logarithms of sums of exponentials lose no more than 1e-15.
    if x.size + y.size >= np.broadcast(x, y).size or not high - low <= 30.0:
        return _soft_plus(x - y)
    e, e_ = np.exp(x - low), np.exp(y - low)
    total = e + e_
    slope = e / total
    value = np.log(total, out=total)
    value -= y - low
    return value, slope


def _soft_plus(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log(1 + e^x) and its derivative, without overflow, and in place: triples are many."""
    value = np.abs(x)
    np.log1p(np.exp(np.negative(value, out=value), out=value), out=value)
    value += np.maximum(x, 0.0)
    slope = x - value
    return value, np.exp(slope, out=slope)


def nt_xent(views: FloatArray, temperature: float, beta: float = 0.0) -> tuple[float, FloatArray]:
    """Normalised temperature-scaled cross entropy of a batch: cosine similarities, all other views are negatives.

    Parameters
    ----------
    views : ndarray, shape (samples, 2, outputs)
    beta : float
        See `Contrast`.

    Returns
    -------
    float
        Mean over the 2 B views.
    ndarray, shape (samples, 2, outputs)
        Its derivative.
    """
    flat = views.reshape(-1, views.shape[-1])
    length = np.sqrt((flat * flat).sum(axis=1, keepdims=True))
    unit = np.divide(flat, length, out=np.zeros_like(flat), where=length > 0.0)
    value, by_similarity = cross_entropy(unit, temperature)
    if beta != 0.0:
        view, other = np.arange(len(unit)), np.arange(len(unit)) ^ 1
        value += beta * float(np.mean(1.0 - (unit * unit[other]).sum(axis=1))) / temperature
        by_similarity[view, other] -= beta / (temperature * len(unit))
        value, by_similarity = value / (1.0 + beta), by_similarity / (1.0 + beta)
    by_unit = (by_similarity + by_similarity.T) @ unit
    inward = (by_unit * unit).sum(axis=1, keepdims=True) * unit
    slope = np.divide(by_unit - inward, length, out=np.zeros_like(flat), where=length > 0.0)
    return value, slope.reshape(views.shape)


def cross_entropy(unit: FloatArray, temperature: float) -> tuple[float, FloatArray]:
    """Loss of `nt_xent` for directions of views, and its derivative by the similarity of each view and another.

    Parameters
    ----------
    unit : ndarray, shape (views, outputs)
        Directions; views of one sample stand side by side.
    """
    count = len(unit)
    similarity = unit @ unit.T / temperature
    np.fill_diagonal(similarity, -np.inf)
    similarity -= similarity.max(axis=1, keepdims=True)
    chance = np.exp(similarity)
    total = chance.sum(axis=1, keepdims=True)
    other = np.arange(count) ^ 1
    value = float(np.mean(np.log(total[:, 0]) - similarity[np.arange(count), other]))
    chance /= total
    chance[np.arange(count), other] -= 1.0
    return value, chance / (temperature * count)
