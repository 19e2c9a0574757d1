"""Scores as the public code takes them: by sums over samples in single precision.

Variances are differences of mean squares and squared means, which are added up batch by batch. Where a pre-activation
is constant or nearly so, what is left is rounding: its |correlation| can be anything, and is 1 where a covariance of
rounding meets a variance below it. Exactly such a node has the correlation 0, or that of its small variations.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meanfield.families.latent_tree.weights import Weights
from meanfield.typing import FloatArray

SAMPLES, BATCH = 64000, 128

NO_CORRELATION = 1e-6
"""Covariances and products of deviations that are both below count as no correlation."""


def sample(polarities: tuple[FloatArray, ...], rng: np.random.Generator) -> list[FloatArray]:
    """Values of all latents, the leaves first, each of shape (latents, samples).

    Parameters
    ----------
    polarities : tuple of ndarray
        By level from the leaves up, as those of a problem.
    rng : Generator
    """
    found = [rng.integers(2, size=(1, SAMPLES), dtype=np.uint8)]
    for rho in reversed(polarities):
        above = np.repeat(found[0], len(rho) // len(found[0]), axis=0)
        differ = rng.random(above.shape, dtype=np.float32) < 0.5 * (1.0 - rho[:, None])
        found.insert(0, above ^ differ)
    return found


def scores(weights: Weights, values: list[FloatArray]) -> FloatArray:
    """Largest |correlation| of each latent, the root first, with its pre-activations.

    Parameters
    ----------
    weights : Weights
        With biases.
    values : list of ndarray of uint8, shape (latents, samples)
        By level, the leaves first.
    """
    below, found = values[0].astype(np.float32), []
    for W, b, z in zip(weights.W, weights.b, values[1:], strict=True):
        w = W.reshape(*W.shape[:2], -1).astype(np.float32)
        f = w @ below.reshape(len(w), -1, SAMPLES) + b.astype(np.float32)[:, :, None]
        found.insert(0, correlations(z.astype(np.float32)[:, None], f).max(axis=1))
        below = np.maximum(f, 0.0).reshape(-1, SAMPLES)
    return np.concatenate(found)


def in_blocks(batches: FloatArray) -> FloatArray:
    """Sums along the last dim as NumPy adds them: eight at a time."""
    return np.asarray(batches.sum(axis=-1, dtype=np.float32))


def correlations(z: FloatArray, f: FloatArray, add: Callable[[FloatArray], FloatArray] = in_blocks) -> FloatArray:
    """|Correlations| of rows of samples of float32, between 0 and 1.

    Parameters
    ----------
    z, f : ndarray of float32, shape (..., samples)
    add : callable
        Sums of batches along the last dim; these are added one after another.
    """
    mean_z, mean_f = _mean(z, add), _mean(f, add)
    covariance = _mean(z * f, add) - mean_z * mean_f
    variances = [_mean(x * x, add) - mean * mean for x, mean in ((z, mean_z), (f, mean_f))]
    scale = np.sqrt(np.maximum(variances[0], 0.0)) * np.sqrt(np.maximum(variances[1], 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(covariance) / scale
    ratio[(np.abs(covariance) < NO_CORRELATION) & (scale < NO_CORRELATION)] = 0.0
    return np.minimum(ratio, 1.0)


def _mean(x: FloatArray, add: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Means over samples, from sums in the order of batches."""
    batches = add(x.reshape(*x.shape[:-1], -1, BATCH))
    return np.asarray(np.cumsum(batches, axis=-1, dtype=np.float32)[..., -1] / np.float32(SAMPLES))
