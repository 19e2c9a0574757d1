"""Densities under a linear prior, where w given u is Gaussian with the mean q^T u and the covariance K = M - q^T q."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from meanfield.families.contrastive.channels.density.display import CELLS, COMBINATIONS, JOINT_CELLS, REACH
from meanfield.typing import FloatArray

LEAST_VARIANCE = 1e-12
"""Variance in place of smaller ones: where one weight is a function of the other its law has no width."""


def gaussian_reach(q: FloatArray, M: FloatArray, u: FloatArray) -> float:
    """Half-width that the laws need at overlaps q, shape (times, d1, 2), and M, shape (times, 2, 2)."""
    known = np.isfinite(M).all(axis=(1, 2))
    means = np.abs(np.einsum("nf,tfk,ck->tnc", u, q[known], COMBINATIONS)).max(axis=1)
    return float((means + REACH * np.sqrt(_variances(q[known], M[known]))).max())


def gaussian_singles(q: FloatArray, M: FloatArray, u: FloatArray, half_width: float) -> FloatArray:
    """Densities of w_1, w_2 and (w_1 +- w_2)/sqrt(2) given u, averaged over cells, shape (times, nodes, CELLS, 4)."""
    edges = np.linspace(-half_width, half_width, CELLS + 1)
    means = np.einsum("nf,tfk,ck->tnc", u, q, COMBINATIONS)
    scores = (edges[:, None] - means[:, :, None, :]) / np.sqrt(_variances(q, M))[:, None, None, :]
    return np.asarray(np.diff(ndtr(scores), axis=2) * (0.5 * CELLS / half_width))


def gaussian_joint(q: FloatArray, M: FloatArray, u: FloatArray, half_width: float) -> FloatArray:
    """Density of both weights given u at one time, averaged over cells, shape (nodes, JOINT_CELLS, JOINT_CELLS).

    The law of w_2 is that given w_1 at the centre of its cell.
    """
    edges = np.linspace(-half_width, half_width, JOINT_CELLS + 1)
    centres = 0.5 * (edges[1:] + edges[:-1])
    K, means = M - q.T @ q, u @ q
    variance = max(K[0, 0], LEAST_VARIANCE)
    left = max(K[1, 1] - K[0, 1] ** 2 / variance, LEAST_VARIANCE)
    first = np.diff(ndtr((edges - means[:, :1]) / np.sqrt(variance)), axis=1)
    second = means[:, 1:] + K[0, 1] / variance * (centres - means[:, :1])
    given = np.diff(ndtr((edges - second[:, :, None]) / np.sqrt(left)), axis=2)
    return np.asarray(first[:, :, None] * given * (0.5 * JOINT_CELLS / half_width) ** 2)


def _variances(q: FloatArray, M: FloatArray) -> FloatArray:
    """Variances of the combinations given u, shape (times, 4)."""
    K = M - np.swapaxes(q, 1, 2) @ q
    return np.asarray(np.maximum(np.einsum("ck,tkl,cl->tc", COMBINATIONS, K, COMBINATIONS), LEAST_VARIANCE))
