"""Velocity of the overlaps q and M of several channels.

For linear phi the overlaps close, with n_k = tau D_kk + Lambda_kk/2 the multiplier that keeps |w_k|^2 = N:

    dq_k/dt  = tau P_k - q_k n_k
    dM_kl/dt = tau (D_kl + D_lk) + Lambda_kl - M_kl (n_k + n_l)

M_kk = 1 is conserved. Source: several_channels.md, section 2.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from meanfield.families.contrastive.channels.closure import BatchAverages, ChannelClosure
from meanfield.typing import FloatArray


class OverlapField:
    """Velocity of the overlaps as a vector field of q and the pairs of M in one vector.

    Attributes
    ----------
    unknowns : int
        Length of the vector.
    """

    def __init__(self, closure: ChannelClosure) -> None:
        self.closure = closure
        self._shape = len(closure.problem.features), closure.problem.model.channels
        self._pairs = np.triu_indices(self._shape[1], 1)
        self.unknowns = self._shape[0] * self._shape[1] + len(self._pairs[0])

    def at(self, closure: ChannelClosure) -> OverlapField:
        """The same field with the averages of another time."""
        if closure is self.closure:
            return self
        field = copy(self)
        field.closure = closure
        return field

    def start(self, q: FloatArray, M: FloatArray) -> FloatArray:
        """Vector with which a run begins."""
        return self.packed(q, M)

    def packed(self, q: FloatArray, M: FloatArray) -> FloatArray:
        """Vector of shape (d1 d2 + d2 (d2 - 1)/2,)."""
        return np.concatenate([np.ravel(q), M[self._pairs]])

    def unpacked(self, vector: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Overlaps q, shape (d1, d2), and M, shape (d2, d2)."""
        d1, d2 = self._shape
        M = np.eye(d2)
        M[self._pairs] = vector[d1 * d2 : self.unknowns]
        M.T[self._pairs] = vector[d1 * d2 : self.unknowns]
        return vector[: d1 * d2].reshape(d1, d2), M

    def __call__(self, vector: FloatArray) -> FloatArray:
        """Velocity of the vector."""
        q, M = self.unpacked(vector)
        return self.packed(*velocity(self.closure(q, M), q, M, self.closure.problem.model.rate))

    def jacobian(self, vector: FloatArray) -> FloatArray:
        """Jacobian of the velocity by central differences; NaN where K is singular."""
        # The truncation of differences is about 1e-9 of the velocity; they take a tenth of the least eigenvalue of K.
        step = min(1e-4, 0.1 * -self.excess(vector))
        if not step > 0.0:
            return np.full((self.unknowns, self.unknowns), np.nan)
        shifts = step * np.eye(self.unknowns)
        return np.array([self(vector + shift) - self(vector - shift) for shift in shifts]).T / (2.0 * step)

    def covariances(self, C: FloatArray) -> dict[str, FloatArray]:
        """Covariances of q, shape (..., d1, d1, d2, d2), and variances of M, shape (..., d2, d2), of all there are."""
        d1, d2 = self._shape
        of_q = C[..., : d1 * d2, : d1 * d2].reshape(*C.shape[:-2], d1, d2, d1, d2)
        of_M = np.zeros((*C.shape[:-2], d2, d2))
        k, j = self._pairs
        of_M[..., k, j] = of_M[..., j, k] = np.einsum("...ii->...i", C)[..., d1 * d2 :]
        return {"q_covariance": of_q.swapaxes(-3, -2), "M_variance": of_M}

    def excess(self, vector: FloatArray) -> float:
        """Negative of the least eigenvalue of K = M - q^T q, NaN if an overlap is not finite."""
        if not np.isfinite(vector).all():
            return np.nan
        q, M = self.unpacked(vector)
        return -float(np.linalg.eigvalsh(M - q.T @ q).min())


def velocity(averages: BatchAverages, q: FloatArray, M: FloatArray, tau: float) -> tuple[FloatArray, FloatArray]:
    """Velocities dq/dt, shape (d1, d2), and dM/dt, shape (d2, d2), for linear phi."""
    P, D, noise = averages
    n = tau * np.diag(D) + 0.5 * np.diag(noise)
    return tau * P - q * n, tau * (D + D.T) + noise - M * (n[:, None] + n)
