"""Losses over a finite population, exactly: samples z with probabilities p, and views c with probabilities P(c|z).

Anchor and positive are independent views of a sample, negatives are views of independent samples. Losses whose
value depends on means and variances given z alone take outputs that are sums of independent parts, so that views
of the whole need not be listed (latent_tree.md, sections 1.3 and 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.networks.contrast import Contrast
from meanfield.typing import FloatArray

MOST_TERMS = 1e8
"""Largest number of terms of an enumeration of anchors, positives and negatives: some seconds."""

BLOCK = 1 << 15
"""Number of terms that are computed at once: they fit into the caches."""

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
    value : float
    slope : ndarray, shape (parts, views, outputs)
        Derivative by the outputs.
    between : ndarray, shape (samples, samples), or None
        kappa, for losses -sum_{z,z'} p p' kappa |E[y|z] - E[y|z']|^2/2 + beta E|y - E[y|z]|^2, to first order.
    within : float
        beta.
    pairs : ndarray, shape (views, views), or None
        Derivative by the distance of two views, for other losses.
    """

    value: float
    slope: FloatArray
    between: FloatArray | None = None
    within: float = 0.0
    pairs: FloatArray | None = None


def terms(contrast: Contrast, views: int) -> float:
    """Number of terms of the enumeration that a loss needs, with a number of views."""
    if contrast.kind in MOMENTS:
        return float(views)
    if contrast.kind == "exact":
        return float(views) ** 2
    return float(views) ** (2 + (contrast.negatives if contrast.kind == "infonce" else 1))


def evaluate(
    contrast: Contrast, views: Views, outputs: FloatArray, unaugmented: FloatArray | None = None
) -> Evaluation:
    """Loss of a population, and its derivative by the outputs.

    Parameters
    ----------
    contrast : Contrast
        Any but `nt_xent`, which has no population without a size of batches; `batch_ratio` is that of large batches.
    views : Views
    outputs : ndarray, shape (parts, views, outputs)
    unaugmented : ndarray, shape (samples, outputs), optional
        Outputs of the samples themselves, whose distances decide the weights of `exact`; by default a sample is one
        more view.
    """
    if contrast.kind in ("triplet", "infonce"):
        return _of_triples(contrast, views, outputs[0])
    p, samples = views.p, len(views.p)
    means = views.P @ outputs  # (parts, samples, outputs)
    mean, beta, kappa = means.sum(axis=0), 0.0, np.ones((samples, samples))
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
    elif contrast.kind != "simple":
        raise ValueError(f"the loss '{contrast.kind}' of a population needs the size of its batches")
    by_mean = -2.0 * np.einsum("z,w,zw,zwn->zn", p, p, kappa, gaps)
    slope_ = np.swapaxes(views.P, 1, 2) @ by_mean
    if beta != 0.0:
        chance = p @ views.P
        slope_ = slope_ + 2.0 * beta * (chance[..., None] * outputs - np.swapaxes(views.P, 1, 2) @ (p[:, None] * means))
    return Evaluation(value, np.asarray(slope_), between=kappa, within=beta)


def _weights(contrast: Contrast, views: Views, outputs: FloatArray, unaugmented: FloatArray | None) -> FloatArray:
    """Mean weight of pairs of samples in the loss `exact`, shape (samples, samples)."""
    if unaugmented is not None:
        return contrast.weight(distances(unaugmented))
    return np.asarray(views.whole @ contrast.weight(distances(outputs[0])) @ views.whole.T)


def distances(outputs: FloatArray) -> FloatArray:
    """Distances r = |y - y'|^2/2 of all pairs, shape (views, views)."""
    r = np.zeros((len(outputs), len(outputs)))
    for y in outputs.T:
        r += 0.5 * np.subtract.outer(y, y) ** 2
    return r


def _of_triples(contrast: Contrast, views: Views, outputs: FloatArray) -> Evaluation:
    """Triplet and InfoNCE losses, by the enumeration of anchor, positive and negatives with different outputs.

    Many views have the same output, where nodes are not active: these stand together.
    """
    p, P = views.p, views.whole
    different, place = np.unique(outputs, axis=0, return_inverse=True)
    place, count = place.ravel(), len(different)
    chance = np.array([np.bincount(place, row, count) for row in P])  # (samples, different outputs)
    alone = p @ chance
    negatives = contrast.negatives if contrast.kind == "infonce" else 1
    places = np.indices((count,) * negatives).reshape(negatives, -1).T  # (terms, negatives)
    others = alone[places[:, 1:]].prod(axis=1)
    weight = alone[places[:, 0]] * others
    step = max(1, BLOCK // count)
    value, by_positive, by_negative = 0.0, np.zeros((count, count)), np.zeros((len(p), count, count))
    for anchor, r in enumerate(distances(different)):
        for block in (slice(first, first + step) for first in range(0, len(places), step)):
            found = contrast.of_triples(r[:, None], r[None, places[block]])
            value += float((p * chance[:, anchor]) @ chance @ (found.value @ weight[block]))
            by_positive[anchor] += found.positive @ weight[block]
            # negatives are alike: the first one stands for all
            by_first = negatives * (chance @ found.negative[..., 0]) * others[block]
            for z, row in enumerate(by_first):
                by_negative[z, anchor] += np.bincount(places[block, 0], row, count)
    pairs = P.T @ (p[:, None] * P) * by_positive[np.ix_(place, place)]
    for z in range(len(p)):
        pairs += np.outer(p[z] * P[z], p @ P) * by_negative[z][np.ix_(place, place)]
    both = pairs + pairs.T
    slope = both.sum(axis=1)[:, None] * outputs - both @ outputs
    return Evaluation(value, slope[None], pairs=pairs)
