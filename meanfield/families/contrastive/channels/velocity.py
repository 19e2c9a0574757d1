"""Overlaps of one or several channels under a momentum 1 - b/N, whose velocities last as long as learning takes.

In units in which w_k moves by b p_k/N velocities go p_k <- (1 - b/N) p_k + x F_k/sqrt(N) - tau phi(w_k)/N. In the limit
they are more vectors, the ones that have the noise, and weights go along them on the sphere:

    dp_k = [ u.a_k + tau sum_j H_kj w_j - tau phi(w_k) - b p_k ] dt + dB_k,      dw_k = b (p_k - E[w_k p_k] w_k) dt

with a, H and <B_k, B_l> = Lambda_kl of `channels.limit.WeightEquation`. With a linear phi the overlaps of u, w, p and
moving averages w' of the weights close. Source: update_rules.md, section 8.
"""

from __future__ import annotations

import numpy as np

from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.field import OverlapField
from meanfield.families.contrastive.channels.limit import coefficients
from meanfield.typing import FloatArray


class FieldWithVelocity(OverlapField):
    """Velocity of q and M, and behind them of E[u p], E[w p], E[p p], E[u w'], E[w w'], E[w' w'] and E[p w'].

    Parameters
    ----------
    closure : ChannelClosure
    b : float
        Rate at which velocities p are forgotten.
    a : float
        Rate of the averages w'; they stay where they start if it is 0.
    """

    def __init__(self, closure: ChannelClosure, b: float, a: float) -> None:
        super().__init__(closure)
        self._b, self._a, d1, d2 = b, a, *self._shape
        self._rows = np.cumsum([d1, d2, d2, d1, d2, d2])

    def start(self, q: FloatArray, M: FloatArray) -> FloatArray:
        """See `OverlapField.start`: velocities begin with 0, and averages with the weights."""
        d1, d2 = self._shape
        averages = np.concatenate([q.reshape(d1, d2), M, M])
        return np.concatenate([self.packed(q, M), np.zeros((d1 + 2 * d2) * d2), averages.ravel(), np.zeros(d2 * d2)])

    def averages(self, vectors: FloatArray) -> FloatArray:
        """E[u w'], E[w w'] and E[w' w'] of some vectors below each other, shape (times, d1 + 2 d2, d2)."""
        return np.array([np.concatenate(self._others(vector)[3:6]) for vector in vectors])

    def __call__(self, vector: FloatArray) -> FloatArray:
        """Velocity of the vector."""
        a, b, problem, (q, M) = self._a, self._b, self.closure.problem, self.unpacked(vector)
        along, inward, square, of_u, of_w, of_itself, of_p = self._others(vector)
        averages, tau = self.closure(q, M), problem.model.rate
        pull = tau * float(problem.prior.force(np.ones(1))[0])
        found = coefficients(averages, q, M, tau)
        of_weights, n = found.of_weights - pull * np.eye(len(M)), np.diag(inward)
        outward = found.of_features @ along + of_weights @ inward  # what moves p_k, by p_l
        moved = b * (along - q * n), b * (inward + inward.T - M * (n[:, None] + n))
        others = (
            tau * averages.P - pull * q - b * along,
            b * (square - n[:, None] * inward - inward) + tau * averages.D.T - pull * M,
            found.noise + outward + outward.T - 2.0 * b * square,
            a * (q - of_u),
            b * (of_p - n[:, None] * of_w) + a * (M - of_w),
            a * (of_w + of_w.T - 2.0 * of_itself),
            found.of_features @ of_u + of_weights @ of_w - b * of_p + a * (inward.T - of_p),
        )
        return np.concatenate([self.packed(*moved), np.concatenate(others).ravel()])

    def _others(self, vector: FloatArray) -> list[FloatArray]:
        """What is behind q and M, each with the channels of its last factor in columns."""
        return np.split(vector[self.unknowns :].reshape(-1, self._shape[1]), self._rows)
