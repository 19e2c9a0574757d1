"""Linear probe: how well a linear classifier of features tells classes apart."""

from __future__ import annotations

import numpy as np

from meanfield.typing import FloatArray, IntArray


def probe_accuracy(features: FloatArray, labels: IntArray, held_out: FloatArray, wanted: IntArray) -> float:
    """Share of held-out samples that a linear least-squares classifier with ridge gets right.

    Parameters
    ----------
    features : ndarray, shape (samples, features)
        Of the samples from which it learns.
    labels : ndarray, shape (samples,)
        Their classes from 0 on.
    held_out : ndarray, shape (others, features)
    wanted : ndarray, shape (others,)
        Classes of the others.

    Notes
    -----
    Features are standardised, and there is an intercept; the class with the largest output is the answer.
    """
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    kept = deviation > 1e-12 * max(float(deviation.max()), 1e-300)
    x, x_out = ((side[:, kept] - mean[kept]) / deviation[kept] for side in (features, held_out))
    targets = np.eye(int(max(labels.max(), wanted.max())) + 1)[labels]
    matrix = x.T @ x / len(x) + 1e-3 * np.eye(x.shape[1])  # a ridge, because features may depend on each other
    slope = np.linalg.solve(matrix, x.T @ (targets - targets.mean(axis=0)) / len(x))
    return float(np.mean((x_out @ slope + targets.mean(axis=0)).argmax(axis=1) == wanted))
