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
    chance, _, alpha, beta, angles, hidden = _all_batches(
        weight, theta, x, sigma, slope, psi_slope, strength, centering, m
    )

    def mean(first, second):
        return np.einsum("n,inb,jnb->ij", chance, first, second) / m

    P = mean(hidden[0], alpha) + mean(hidden[1], beta)
    D = mean(alpha, angles[0]) + mean(beta, angles[1])
    noise = (1 + V[0, 0]) * mean(alpha, alpha) + (1 + V[1, 1]) * mean(beta, beta)
    noise += (1 + V[0, 1]) * (mean(alpha, beta) + mean(beta, alpha))
    return P, D, noise / m


def step_covariance(weight, theta, x, unseen, sigma, slope, psi_slope, strength, centering, m, V, tau, q, M):
    """Mean and covariance of N times a step of the overlaps, q first and then the pairs of M, by enumeration.

    Parameters
    ----------
    unseen : ndarray, shape (n, 2, d1, 2, d1)
        Covariance of c + eta_l at a node about their values x.
    tau : float
    q, M : ndarray

    Others are those of `batch_averages`.
    """
    d1, d2 = q.shape
    chance, batches, alpha, beta, angles, hidden = _all_batches(
        weight, theta, x, sigma, slope, psi_slope, strength, centering, m
    )
    gains = np.stack([alpha, beta])  # view, channel, batch, b
    a = np.einsum("vknb,vfnb->nfk", gains, hidden) / m
    d = np.einsum("vknb,vlnb->nkl", gains, angles) / m
    s = np.einsum("vknb,wlnb,vw->nkl", gains, gains, 1.0 + V) / m**2
    n = tau * np.einsum("nkk->nk", d) + 0.5 * tau**2 * np.einsum("nkk->nk", s)
    of_q = tau * a - q * n[:, None]
    of_M = tau * (d + d.swapaxes(1, 2)) + tau**2 * s - M * (n[:, :, None] + n[:, None])
    X = np.concatenate([of_q.reshape(len(n), -1), of_M[(slice(None), *np.triu_indices(d2, 1))]], axis=1)
    mean = chance @ X
    covariance = np.einsum("n,ni,nj->ij", chance, X, X) - np.outer(mean, mean)
    spread = np.einsum("n,vknb,wlnb,nbvfwg->fkgl", chance, gains, gains, unseen[batches], optimize=True)
    covariance[: d1 * d2, : d1 * d2] += (tau / m) ** 2 * spread.reshape(d1 * d2, d1 * d2)
    return mean, covariance


def _all_batches(weight, theta, x, sigma, slope, psi_slope, strength, centering, m):
    """Probabilities of all batches, their samples, and alpha, beta, Theta and c + eta at each of these."""
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
    return chance, batches, alpha, beta, angles, hidden
