"""Nodes in u of the density of two channels, half of which need not be solved where there is a mirror symmetry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.cells import feature_quadrature
from meanfield.mckean_vlasov.density.start import without_images
from meanfield.typing import FloatArray


@dataclass(frozen=True)
class Nodes:
    """Nodes in u, those to solve and all of them.

    Parameters
    ----------
    u, weight : ndarray, shapes (nodes, d1) and (nodes,)
    mirrored : bool
        Whether (u, w) -> (-u, -w) takes the density to itself, so that half of the nodes tell of the others.
    """

    u: FloatArray
    weight: FloatArray
    mirrored: bool

    @classmethod
    def of(cls, problem: Problem, given: int | None, scale: float) -> Nodes:
        """Nodes of a problem: `given` for each feature, or `scale` times the default number."""
        u, weight = feature_quadrature(problem.coordinates, given, scale)
        w = np.linspace(-8.0, 8.0, 65)
        steps = problem.prior.potential_steps(w)
        pairs = ((u, -u[::-1]), (weight, weight[::-1]), (steps, -steps[::-1]))
        mirrored = all(np.allclose(a, b, rtol=0, atol=1e-12 * np.abs(a).max()) for a, b in pairs)
        return cls(u, weight, mirrored)

    @property
    def solved(self) -> tuple[FloatArray, FloatArray]:
        """The nodes to solve, with the weights of their images."""
        return without_images(self.u, self.weight) if self.mirrored else (self.u, self.weight)

    def unfolded(self, P: FloatArray, axes: int) -> FloatArray:
        """Densities of all nodes from those that were solved.

        Parameters
        ----------
        P : ndarray, shape (solved nodes, cells, ...)
        axes : int
            Number of axes of cells, which the mirror reverses.
        """
        if not self.mirrored:
            return P
        images = P[: len(self.weight) // 2][::-1]
        return np.concatenate([P, np.flip(images, tuple(range(1, 1 + axes)))])
