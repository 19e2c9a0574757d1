"""Averages over batches by enumeration of all batches of a discrete law of one sample, from the definition.

The definitions are those of SGD: each batch n has its outputs, its covariances C, its couplings A and its sensitivities
at each of its samples b. No moment, no partition and no polynomial is used.
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
    d2 = theta.shape[1]
    outputs, slopes = sigma(theta), slope(theta)
    if centering == "population":
        outputs = outputs - (outputs @ weight)[..., None]
    batches = np.array(list(product(range(len(weight)), repeat=m)))
    chance = weight[batches].prod(axis=1)
    y, s, angles, hidden = (values[..., batches] for values in (outputs, slopes, theta, x))  # view, index, batch, b
    if centering == "batch":
        y = y - y.mean(axis=-1, keepdims=True)
    C = np.einsum("knb,jnb->nkj", y[0], y[1]) / m
    A = np.where(np.eye(d2), 1.0, -strength * psi_slope(C))
    alpha = s[0] * np.einsum("nkj,jnb->knb", A, y[1])
    beta = s[1] * np.einsum("njk,jnb->knb", A, y[0])

    def mean(first, second):
        return np.einsum("n,inb,jnb->ij", chance, first, second) / m

    P = mean(hidden[0], alpha) + mean(hidden[1], beta)
    D = mean(alpha, angles[0]) + mean(beta, angles[1])
    noise = (1 + V[0, 0]) * mean(alpha, alpha) + (1 + V[1, 1]) * mean(beta, beta)
    noise += (1 + V[0, 1]) * (mean(alpha, beta) + mean(beta, alpha))
    return P, D, noise / m
