"""NT-Xent loss over a finite population, whose batches are two views of every sample.

A batch compares all views with each other, so that its loss depends on its size: here it is the number of samples.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from meanfield.networks.contrast import cross_entropy
from meanfield.networks.population import Evaluation, distances
from meanfield.typing import FloatArray


def evaluate_batches(outputs: FloatArray, temperature: float) -> Evaluation:
    """Mean loss over batches of any two views, the same two of every sample, and what its gradient is made of.

    Parameters
    ----------
    outputs : ndarray, shape (samples, views, outputs)
        Directions, of length 1 or 0.
    temperature : float

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
    temperature : float
    """
    shares = np.exp(-distances(outputs, outputs) / temperature)
    np.fill_diagonal(shares, 0.0)
    shares /= temperature * (1.0 + 2.0 * shares.sum(axis=1, keepdims=True))
    return np.asarray(len(outputs) * (shares + shares.T))
