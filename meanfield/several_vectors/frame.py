"""The frame w = mu_u(t) + S(t) x in which the density of two vectors is nearly at rest.

The weights of two vectors given u follow dw = [g.u + L w - tau phi(w)] dt + dB with d<B, B^T> = Lambda dt. Let mu_u be
their mean at u and S S^T their covariance, averaged over u:

    dmu_u/dt = g.u + L mu_u - tau E[phi | u],    dS/dt = L S + Lambda S^{-T}/2 - tau G,    G = E_u[Cov(phi, x | u)].

In the coordinates x that is dx = [-Q x/2 - tau S^{-1} (phi(w) - E[phi | u] - G x)] dt + dW with d<W, W^T> = Q dt and
Q = S^{-1} Lambda S^{-T}. Where phi is linear the bracket is zero, and the standard normal law is at rest whatever the
overlaps do: only what is not Gaussian moves in the frame. Cells neither follow the mean nor shrink with K by advection,
and vectors that come close to each other do not distort them. Source: several_channels.md, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.typing import FloatArray


@dataclass(frozen=True)
class Drift:
    """Coefficients of the weights' motion, constant over a step.

    Parameters
    ----------
    gain : ndarray, shape (nodes, 2)
        g.u at each node.
    L, Lambda : ndarray, shape (2, 2)
        Linear drift, and diffusion.
    force : ndarray, shape (nodes, 2)
        tau E[phi | u].
    slope : ndarray, shape (2, 2)
        tau G.
    pull : float
        tau times the strength of the prior.
    """

    gain: FloatArray
    L: FloatArray
    Lambda: FloatArray
    force: FloatArray
    slope: FloatArray
    pull: float

    @property
    def moves(self) -> bool:
        """Whether anything moves: not where all rates are 0."""
        return self.pull > 0.0 or any(part.any() for part in (self.gain, self.L, self.Lambda))


@dataclass(frozen=True)
class Frame:
    """Mean mu of each node, shape (nodes, 2), and the common factor S, shape (2, 2)."""

    mean: FloatArray
    S: FloatArray

    def velocity(self, drift: Drift) -> Frame:
        """Velocities of the mean and of S."""
        mean = drift.gain + self.mean @ drift.L.T - drift.force
        return Frame(mean, drift.L @ self.S + 0.5 * np.linalg.solve(self.S, drift.Lambda).T - drift.slope)

    def moved(self, velocity: Frame, dt: float) -> Frame:
        """Frame after a time at a constant velocity."""
        return Frame(self.mean + dt * velocity.mean, self.S + dt * velocity.S)

    def advanced(self, drift: Drift, dt: float) -> Frame:
        """Frame after a step, by the classical Runge-Kutta rule."""
        first = self.velocity(drift)
        second = self.moved(first, 0.5 * dt).velocity(drift)
        third = self.moved(second, 0.5 * dt).velocity(drift)
        fourth = self.moved(third, dt).velocity(drift)
        mean = (first.mean + 2.0 * (second.mean + third.mean) + fourth.mean) / 6.0
        return self.moved(Frame(mean, (first.S + 2.0 * (second.S + third.S) + fourth.S) / 6.0), dt)


def first_factor(K: FloatArray, Lambda: FloatArray) -> FloatArray:
    """The S with S S^T = K for which Q is diagonal: cells then need no oblique neighbours at first.

    Raises
    ------
    numpy.linalg.LinAlgError
        If K is not positive definite.
    """
    root = np.linalg.cholesky(K)
    inverse = np.linalg.inv(root)
    _, vectors = np.linalg.eigh(inverse @ Lambda @ inverse.T)
    return np.asarray(root @ vectors)
