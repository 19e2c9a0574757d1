"""Field of a filter on the sphere, for data of finitely many atoms (alpha_contrastive.md, section 3).

Energies, fields and Jacobians of many filters at once. With outputs h_i = h(w.x_i) and the Laplacian L of the
importance, E = h.L h/2 and F = sum_i (L h)_i h'_i x_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanfield.families.alpha_contrastive.limit.activation import Filter
from meanfield.families.alpha_contrastive.limit.pairs import Pairs, half_squares, laplacian
from meanfield.typing import FloatArray

MOST_PAIRS = 2_000_000
"""Largest number of pairs of atoms and filters that are kept at once."""


@dataclass(frozen=True)
class DiscreteField:
    """Field of filters, each of which moves the importance by itself, or with an importance that is held fixed.

    Parameters
    ----------
    atoms : ndarray, shape (atoms, coordinates)
    pairs : Pairs
    filter : Filter
    frozen : ndarray, shape (atoms, atoms), optional
        L, the Laplacian of an importance that is held fixed.
    """

    atoms: FloatArray
    pairs: Pairs
    filter: Filter
    frozen: FloatArray | None = None

    @cached_property
    def amplification(self) -> float:
        """Rounding of the field, relative to its size and to that of a double.

        Shares e^{-D/tau} of an importance that is normalised have the rounding of D, divided by tau.
        """
        if self.frozen is not None or not self.pairs.normalised:
            return 1.0
        reach = np.linalg.norm(self.atoms, axis=1).max()
        outputs = self.filter.value(np.array([-reach, reach]))
        return 1.0 + 2.0 * float(np.abs(outputs).max()) ** 2 / self.pairs.normalised

    def pull(self, h: FloatArray) -> FloatArray:
        """L h, the derivative of the objective by each output, shape (filters, atoms)."""
        if self.frozen is not None:
            return h @ self.frozen
        if self.pairs.uniform and self.pairs.views is not None:
            return h @ self._uniform
        if self.pairs.uniform:
            p = self.pairs.probability
            return p * (h - (h @ p)[:, None])
        step = max(1, MOST_PAIRS // h.shape[1] ** 2)
        parts = [self._pull(h[k : k + step]) for k in range(0, len(h), step)]
        return np.concatenate(parts) if parts else np.empty_like(h)

    @cached_property
    def _uniform(self) -> FloatArray:
        """L of the uniform importance."""
        return laplacian(self.pairs.importance(np.zeros((len(self.atoms), len(self.atoms)))))

    def _pull(self, h: FloatArray) -> FloatArray:
        M = self.pairs.importance(half_squares(h))
        return np.asarray(np.sum(M * (h[..., :, None] - h[..., None, :]), axis=-1))

    def field(self, w: FloatArray) -> FloatArray:
        """F, not projected, shape (filters, coordinates)."""
        z = w @ self.atoms.T
        return (self.pull(self.filter.value(z)) * self.filter.slope(z)) @ self.atoms

    def energy(self, w: FloatArray) -> FloatArray:
        """E_alpha(w) = C_alpha[h(w.x)]/2, shape (filters,)."""
        h = self.filter.value(w @ self.atoms.T)
        return np.asarray(0.5 * np.sum(h * self.pull(h), axis=-1))

    def objective(self, w: FloatArray) -> FloatArray:
        """G of a network of this filter alone, shape (filters,)."""
        return self.height(self.filter.value(w @ self.atoms.T))

    def height(self, h: FloatArray) -> FloatArray:
        """Objective of filters with outputs h, shape (filters,): G, or E_alpha if the importance is held fixed."""
        if self.frozen is not None or self.pairs.uniform:
            return np.asarray(0.5 * np.sum(h * self.pull(h), axis=-1))
        step = max(1, MOST_PAIRS // h.shape[1] ** 2)
        parts = [self.pairs.objective(half_squares(h[k : k + step])) for k in range(0, len(h), step)]
        return np.concatenate(parts) if parts else np.empty(0)

    def laplacian(self, w: FloatArray) -> FloatArray:
        """L at a filter, shape (atoms, atoms)."""
        if self.frozen is not None:
            return self.frozen
        return laplacian(self.pairs.importance(half_squares(self.filter.value(self.atoms @ w))))

    def matrix(self, w: FloatArray, slope: FloatArray | None = None) -> FloatArray:
        """A(w) = C_alpha[h'(w.x) x], shape (coordinates, coordinates), with h' of each atom if given."""
        x = (self.filter.slope(self.atoms @ w) if slope is None else slope)[:, None] * self.atoms
        return x.T @ self.laplacian(w) @ x

    def jacobians(
        self, w: FloatArray, basis: FloatArray, slope: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Jacobians of the field of a filter on a subspace of its tangent space: alpha moving, and held fixed.

        Parameters
        ----------
        w : ndarray, shape (coordinates,)
        basis : ndarray, shape (coordinates, k)
            Orthonormal tangent vectors.
        slope : ndarray, shape (atoms,), optional
            h' of each atom, for those on a wall.
        """
        z = self.atoms @ w
        h, L = self.filter.value(z), self.laplacian(w)
        slope = self.filter.slope(z) if slope is None else slope
        pull, along = L @ h, self.atoms @ basis
        g = slope[:, None] * along
        radial = float((pull * slope) @ z)
        held = g.T @ L @ g + along.T @ ((pull * self.filter.curvature(z))[:, None] * along)
        held = held - radial * np.eye(basis.shape[1])
        if self.frozen is not None or self.pairs.uniform:
            return held, held
        D, apart = half_squares(h), h[:, None] - h[None]
        u = apart * (g.T[:, :, None] - g.T[:, None, :])  # shape (k, atoms, atoms)
        moving = self.pairs.response(D, u[:, None], u[None])
        return held + moving, held
