"""Motion of the weights of several channels at fixed overlaps, whose stationary law a state is.

    dw = [a.u + L w - tau phi(w)] dt + dB,    d<B, B^T> = Lambda dt,    L = tau H - diag(n).

Source: several_channels.md, section 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.families.contrastive.channels.closure import BatchAverages
from meanfield.typing import FloatArray

SINGULAR = 1e-9
"""Eigenvalue of K, of which 1 is the largest that there may be, below which channels have no width in a direction."""


class Motion(NamedTuple):
    """Coefficients of the weights' motion: a, shape (d1, d2), and L and Lambda, shape (d2, d2)."""

    gain: FloatArray
    L: FloatArray
    Lambda: FloatArray

    @classmethod
    def of(cls, averages: BatchAverages, q: FloatArray, M: FloatArray, tau: float, n: FloatArray) -> Motion:
        """Motion at overlaps q and M with the multipliers n, shape (d2,), of the norms.

        Where channels coincide K = M - q^T q has a pseudo-inverse: H loses what acts on nothing.
        """
        P, D, noise = averages
        H = (D - P.T @ q) @ np.linalg.pinv(M - q.T @ q, rcond=SINGULAR, hermitian=True)
        return cls(tau * (P - q @ H.T), tau * H - np.diag(n), noise)

    def multipliers(self, M: FloatArray) -> FloatArray:
        """G_k = sum_l L_kl M_kl, shape (d2,), the multiplier of the norm where there is a single channel."""
        return np.asarray(np.einsum("kl,kl->k", self.L, M))
