"""Field of a filter on the sphere for Gaussian mixtures, uniform importance, and activations with a kink at 0 at most.

With h(z) = a z + b max(z, 0) all averages are closed: s^2 = w.S w, t = w.mu/s, v = S w/s for each component
(alpha_contrastive.md, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from meanfield.typing import FloatArray


@dataclass(frozen=True)
class MixtureField:
    """Field of filters for a Gaussian mixture.

    Parameters
    ----------
    weight : ndarray, shape (components,)
    mean : ndarray, shape (components, coordinates)
    covariance : ndarray, shape (components, coordinates, coordinates)
    linear, rectified : float
        The numbers a and b of the activation.
    augments : bool
        Whether views share the component alone, so that means given it are all that counts.
    """

    weight: FloatArray
    mean: FloatArray
    covariance: FloatArray
    linear: float
    rectified: float
    augments: bool = False

    def _parts(self, w: FloatArray) -> tuple[FloatArray, ...]:
        """s, t, v, Phi(t) and phi(t) of filters, shapes (filters, components) and (..., coordinates)."""
        v = np.einsum("cij,fj->fci", self.covariance, w)
        s = np.sqrt(np.einsum("fci,fi->fc", v, w))
        t = w @ self.mean.T / s
        return s, t, v / s[..., None], ndtr(t), np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)

    def _moments(self, w: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """E h, E[h' x] and E[h' h x] of filters, with the mean of h given the component in the last for views."""
        a, b = self.linear, self.rectified
        s, t, v, Phi, phi = self._parts(w)
        z = t * s
        h = a * z + b * (z * Phi + s * phi)
        x = (a + b * Phi)[..., None] * self.mean + (b * phi)[..., None] * v
        if self.augments:
            mean, gated = h @ self.weight, np.einsum("c,fci->fi", self.weight, x)
            return mean, gated, np.einsum("c,fc,fci->fi", self.weight, h, x)
        # E[(h')^2 z x] with (h')^2 = a^2 + (2ab + b^2) 1(z > 0)
        square = 2.0 * a * b + b * b
        on_mean = a * a * z + square * (z * Phi + s * phi)
        on_v = (a * a + square * Phi) * s
        hx = on_mean[..., None] * self.mean + on_v[..., None] * v
        return h @ self.weight, np.einsum("c,fci->fi", self.weight, x), np.einsum("c,fci->fi", self.weight, hx)

    def field(self, w: FloatArray) -> FloatArray:
        """F, not projected, shape (filters, coordinates)."""
        h, x, hx = self._moments(w)
        return hx - h[:, None] * x

    def energy(self, w: FloatArray) -> FloatArray:
        """E(w) = Var h(w.x)/2, shape (filters,); the field is its gradient, and w.F twice the energy."""
        return np.asarray(0.5 * np.sum(w * self.field(w), axis=-1))

    @property
    def amplification(self) -> float:
        """See `DiscreteField.amplification`."""
        return 1.0

    def objective(self, w: FloatArray) -> FloatArray:
        """G, the same as the energy of the uniform importance."""
        return self.energy(w)

    def height_and_field(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Objective and field of filters, at the cost of one of them."""
        F = self.field(w)
        return np.asarray(0.5 * np.sum(w * F, axis=-1)), F

    def matrix(self, w: FloatArray) -> FloatArray:
        """A(w) = Cov[h'(w.x) x], shape (coordinates, coordinates)."""
        a, b = self.linear, self.rectified
        _, t, v, Phi, phi = (part[0] for part in self._parts(w[None]))
        if self.augments:
            x = (a + b * Phi)[:, None] * self.mean + b * phi[:, None] * v
            away = x - self.weight @ x
            return np.asarray((self.weight * away.T) @ away)
        mean, square = self.mean, 2.0 * a * b + b * b
        second = mean[:, :, None] * mean[:, None, :] + self.covariance
        mixed = mean[:, :, None] * v[:, None, :]
        on = second * Phi[:, None, None] + (mixed + np.swapaxes(mixed, 1, 2)) * phi[:, None, None]
        on -= (t * phi)[:, None, None] * v[:, :, None] * v[:, None, :]
        x = self._moments(w[None])[1][0]
        average = np.einsum("c,cij->ij", self.weight, a * a * second + square * on)
        return np.asarray(average - np.outer(x, x))

    def field_and_jacobians(self, w: FloatArray, basis: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Field of a filter with its Jacobians."""
        return self.field(w[None])[0], *self.jacobians(w, basis)

    def jacobians(self, w: FloatArray, basis: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Jacobians of the field of a filter on a subspace of its tangent space; see `DiscreteField.jacobians`.

        Both are the same, as the uniform importance does not move. Crossing the kink adds Cov of h with the density of
        inputs on the hyperplane w.x = 0, b E[delta(w.x) x x^T], or of its mean given the component for views.
        """
        s, t, v, Phi, phi = (part[0] for part in self._parts(w[None]))
        apart = self.mean - t[:, None] * v
        rest = self.covariance - v[:, :, None] * v[:, None, :]
        h = -self._moments(w[None])[0]  # on the hyperplane h is 0
        if self.augments:
            h = h + s * (self.linear * t + self.rectified * (t * Phi + phi))
        on_plane = np.einsum("c,cij->ij", h * self.weight * phi / s, apart[:, :, None] * apart[:, None, :] + rest)
        H = self.matrix(w) + self.rectified * on_plane
        radial = float(w @ self.field(w[None])[0])
        J = basis.T @ H @ basis - radial * np.eye(basis.shape[1])
        return J, J
