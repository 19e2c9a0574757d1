"""Coefficients of the equation of the weights of several channels at one coordinate, given its features u.

    dw_k = [ u.a_k + tau sum_l H_kl w_l - tau phi(w_k) - n_k w_k ] dt + dB_k,      d<B_k, B_l> = Lambda_kl dt
    H = (D - P^T q) K^{-1},    a_k = tau (P_k - sum_l q_l H_kl),    n_k = tau D_kk + Lambda_kk/2 - tau r_k

with K = M - q^T q. Source: several_channels.md, section 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.families.contrastive.channels.closure import BatchAverages
from meanfield.typing import FloatArray

SINGULAR = 1e-10
"""Eigenvalue of K below which weights are taken as functions of the features and of each other in its direction.

H multiplies what is left of the weights there, of the size of the root of the eigenvalue: left out it is below 1e-5,
while errors of the averages, 1e-9 or less, are divided by that root."""


class Coefficients(NamedTuple):
    """Linear part of the drift, without the prior and the multiplier, and the covariance of the noise.

    Parameters
    ----------
    of_features : ndarray, shape (d2, d1)
        a.
    of_weights : ndarray, shape (d2, d2)
        tau H.
    multiplier : ndarray, shape (d2,)
        n + tau r.
    noise : ndarray, shape (d2, d2)
        Lambda.
    """

    of_features: FloatArray
    of_weights: FloatArray
    multiplier: FloatArray
    noise: FloatArray


def coefficients(averages: BatchAverages, q: FloatArray, M: FloatArray, tau: float) -> Coefficients:
    """Coefficients at overlaps q, shape (d1, d2), and M, shape (d2, d2), from the averages there.

    Where K is singular, channels are equal or lie in the span of the features, H is the one of least size: the rest of
    it acts on nothing.
    """
    P, D, noise = averages
    values, vectors = np.linalg.eigh(M - q.T @ q)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > SINGULAR)
    H = (D - P.T @ q) @ (vectors * inverse) @ vectors.T
    return Coefficients(tau * (P.T - H @ q.T), tau * H, tau * np.diag(D) + 0.5 * np.diag(noise), noise)


def semidefinite_factor(covariance: FloatArray) -> FloatArray:
    """F with F F^T = covariance, shape (d2, d2); rows that are equal in the covariance are equal."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
