"""Losses over a finite population, exactly: samples z with probabilities p, and views c with probabilities P(c|z).

Anchor and positive are independent views of a sample, negatives are views of independent samples. Losses whose
value depends on means and variances given z alone take outputs that are sums of independent parts, so that views
of the whole need not be listed (latent_tree.md, sections 1.3 and 3.1). A batch of NT-Xent compares all views with each
other, so that its loss depends on its size: here it is two views of every sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from meanfield.networks.contrast import Contrast, cross_entropy
from meanfield.networks.distinct import merged
from meanfield.networks.triples import SUMMED, Triples
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

MOMENTS = ("simple", "beta", "batch_ratio")
"""Losses that depend on the means and variances of outputs given the sample alone."""


@dataclass(frozen=True)
class Views:
    """Law of views of a finite number of samples, as a product of independent parts given the sample.

    Parameters
    ----------
    p : ndarray, shape (samples,)
    P : ndarray, shape (parts, samples, views)
        Probabilities of the views of each part given the sample.
    """

    p: FloatArray
    P: FloatArray

    @property
    def whole(self) -> FloatArray:
        """Probabilities of views given the sample where there is a single part, shape (samples, views)."""
        (P,) = self.P
        return np.asarray(P)


@dataclass(frozen=True)
class Evaluation:
    """Loss of a population and what its gradient is made of.

    Parameters
    ----------
    slope : ndarray, shape (parts, views, outputs)
        Derivative by the outputs.
    between : ndarray, shape (samples, samples), or None
        kappa, for losses -sum_{z,z'} p p' kappa |E[y|z] - E[y|z']|^2/2 + beta E|y - E[y|z]|^2, to first order.
    within : float
        beta.
    pull : callable, or None
        Product of columns, shape (views, columns), and G + G^T, with the derivative G(c, c') of the loss by the
        distance of two views, for other losses.
    """

    value: float
    slope: FloatArray
    between: FloatArray | None = None
    within: float = 0.0
    pull: Callable[[FloatArray], FloatArray] | None = None


def terms(contrast: Contrast, views: int) -> float:
    """Time that a loss takes with a number of views, in terms of a loss of pairs."""
    if contrast.kind in MOMENTS:
        return float(views)
    # A pair in losses of triples takes some 40 times as long.
    return float(views) ** 2 * (1.0 if contrast.kind == "exact" else 40.0)


def evaluate(
    contrast: Contrast, views: Views, outputs: FloatArray, unaugmented: FloatArray | None = None
) -> Evaluation:
    """Loss of a population, and its derivative by the outputs.

    Parameters
    ----------
    contrast : Contrast
        `nt_xent` is that of batches of independent samples, and `batch_ratio` that of large ones.
    outputs : ndarray, shape (parts, views, outputs)
        For `nt_xent` directions, of length 1 or 0.
    unaugmented : ndarray, shape (samples, outputs), optional
        Outputs of the samples themselves, whose distances decide the weights of `exact`; by default a sample is one
        more view.
    """
    if contrast.kind in SUMMED:
        return _of_triples(contrast, views, outputs[0])
    p, samples = views.p, len(views.p)
    means = views.P @ outputs  # (parts, samples, outputs)
    mean = means.sum(axis=0)
    beta, kappa = 0.0, np.ones((samples, samples))
    gaps = mean[:, None, :] - mean[None, :, :]
    squares = (gaps * gaps).sum(axis=-1)
    between = 0.5 * float(p @ squares @ p)
    value = 0.0 - between
    if contrast.kind == "beta":
        beta = contrast.beta
        spread = (views.P @ (outputs * outputs)).sum(axis=(0, 2)) - (means * means).sum(axis=(0, 2))
        value += beta * float(p @ spread)
    elif contrast.kind == "batch_ratio":
        value, slope = contrast.of_batch_means(0.0, between, outputs.shape[-1])
        kappa = slope * kappa
    elif contrast.kind == "exact":
        kappa = contrast.negatives * _weights(contrast, views, outputs, unaugmented)
        value = -0.5 * float(p @ (kappa * squares) @ p)
    by_mean = -2.0 * np.einsum("z,w,zw,zwn->zn", p, p, kappa, gaps)
    slope_ = np.swapaxes(views.P, 1, 2) @ by_mean
    if beta != 0.0:
        chance = p @ views.P
        slope_ = slope_ + 2.0 * beta * (chance[..., None] * outputs - np.swapaxes(views.P, 1, 2) @ (p[:, None] * means))
    return Evaluation(value, np.asarray(slope_), between=kappa, within=beta)


def _weights(contrast: Contrast, views: Views, outputs: FloatArray, unaugmented: FloatArray | None) -> FloatArray:
    """Mean weight of pairs of samples in the loss `exact`, shape (samples, samples)."""
    if unaugmented is not None:
        return contrast.weight(distances(unaugmented, unaugmented))
    different, place = merged(outputs[0])
    chance = np.array([np.bincount(place, row, len(different)) for row in views.whole])
    # 2^18 pairs fit into the caches.
    found, step = np.zeros((len(chance), len(chance))), max(1, (1 << 18) // len(different))
    with progress_bar(len(different), "weights of pairs", "sample") as bar:
        for first in range(0, len(different), step):
            some = slice(first, first + step)
            found += chance[:, some] @ contrast.weight(distances(different[some], different)) @ chance.T
            bar.update(len(different[some]))
    return found


def distances(outputs: FloatArray, others: FloatArray) -> FloatArray:
    """Distances r = |y - y'|^2/2 of all pairs, shape (views, others)."""
    r = np.zeros((len(outputs), len(others)))
    for y, y_ in zip(outputs.T, others.T, strict=True):
        r += 0.5 * np.subtract.outer(y, y_) ** 2
    return r


def _of_triples(contrast: Contrast, views: Views, outputs: FloatArray) -> Evaluation:
    """Triplet, InfoNCE and NT-Xent losses; of the last the slope leaves out what is along the outputs."""
    triples = Triples(contrast, views.p, views.whole, outputs)
    value, pulled = triples.value_and_pull(np.column_stack([np.ones(len(outputs)), outputs]))
    return Evaluation(value, (pulled[:, :1] * outputs - pulled[:, 1:])[None], pull=triples.pull)


def evaluate_batches(outputs: FloatArray, temperature: float) -> Evaluation:
    """Mean loss over batches of any two views, the same two of every sample, and what its gradient is made of.

    Parameters
    ----------
    outputs : ndarray, shape (samples, views, outputs)
        Directions, of length 1 or 0.

    Returns
    -------
    Evaluation
        Its slope leaves out what is along the outputs, which stay on the unit sphere.
    """
    samples, views, _ = outputs.shape
    y, value = outputs.reshape(samples * views, -1), 0.0
    both = np.zeros((len(y), len(y)))
    pairs = list(combinations(range(views), 2))
    for pair in pairs:
        batch = (views * np.arange(samples)[:, None] + pair).ravel()
        loss, by_similarity = cross_entropy(y[batch], temperature)
        value += loss / len(pairs)
        both[np.ix_(batch, batch)] -= (by_similarity + by_similarity.T) / len(pairs)  # r = 1 - cos
    slope = both.sum(axis=1)[:, None] * y - both @ y
    return Evaluation(value, slope[None], pull=lambda columns: both @ columns)


def batch_weights(outputs: FloatArray, temperature: float) -> FloatArray:
    """Weights of pairs of samples in the part of the loss that has an operator, shape (samples, samples).

    They are minus the derivatives by the distance of two samples where views are the samples themselves, times the
    square of their number, on average over both orders.

    Parameters
    ----------
    outputs : ndarray, shape (samples, outputs)
        Directions of the samples.
    """
    shares = np.exp(-distances(outputs, outputs) / temperature)
    np.fill_diagonal(shares, 0.0)
    shares /= temperature * (1.0 + 2.0 * shares.sum(axis=1, keepdims=True))
    return len(outputs) * (shares + shares.T)
