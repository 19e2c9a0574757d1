"""Averages over batches by enumeration of all batches of a discrete law of one sample, from the definition.

The definitions are those of SGD: each batch has its outputs, its covariances C, its couplings A and its sensitivities,
sample by sample. No moment, no partition and no polynomial is used.
"""

from __future__ import annotations

from itertools import product

import numpy as np


def batch_averages(weight, theta, x, sigma, slope, psi_slope, strength, centering, m, V):
    """P, D and Lambda / tau^2 by enumeration.

    Parameters
    ----------
    weight : ndarray, shape (n,)
        Probabilities of the values of one sample.
    theta : ndarray, shape (2, d2, n)
        Pre-activations of both views.
    x : ndarray, shape (2, d1, n)
        c + eta_l.
    sigma, slope, psi_slope : callable
        sigma, sigma' and psi'.
    strength : float
        lambda.
    centering : {"none", "population", "batch"}
    m : int
    V : ndarray, shape (2, 2)
    """
    d1, d2 = x.shape[1], theta.shape[1]
    outputs, slopes = sigma(theta), slope(theta)
    if centering == "population":
        outputs = outputs - (outputs @ weight)[..., None]
    P, D, noise = np.zeros((d1, d2)), np.zeros((d2, d2)), np.zeros((d2, d2))
    for batch in product(range(len(weight)), repeat=m):
        chance = np.prod(weight[list(batch)])
        y, s, angles, hidden = (values[..., list(batch)] for values in (outputs, slopes, theta, x))
        if centering == "batch":
            y = y - y.mean(axis=-1, keepdims=True)
        C = y[0] @ y[1].T / m
        A = np.where(np.eye(d2), 1.0, -strength * psi_slope(C))
        alpha, beta = s[0] * (A @ y[1]), s[1] * (A.T @ y[0])
        for b in range(m):
            P += chance / m * (np.outer(hidden[0, :, b], alpha[:, b]) + np.outer(hidden[1, :, b], beta[:, b]))
            D += chance / m * (np.outer(alpha[:, b], angles[0, :, b]) + np.outer(beta[:, b], angles[1, :, b]))
            mixed = np.outer(alpha[:, b], beta[:, b])
            noise += chance / m**2 * (
                (1 + V[0, 0]) * np.outer(alpha[:, b], alpha[:, b])
                + (1 + V[1, 1]) * np.outer(beta[:, b], beta[:, b])
                + (1 + V[0, 1]) * (mixed + mixed.T)
            )  # fmt: skip
    return P, D, noise
