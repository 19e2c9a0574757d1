"""Density at t = 0, and the mirror symmetry that halves the nodes to solve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.finite_volumes.grid import Grid
from meanfield.typing import FloatArray

MIRROR_ROUNDING = 1e-13
"""Largest difference of two mirror images by rounding, relative to the largest value."""


def initial_density(limit: Limit, grid: Grid) -> FloatArray:
    """Density of W = u.q(0) + sqrt(1 - |q(0)|^2) xi as cell averages of unit mass, shape (nodes, cells)."""
    q = limit.initial_overlap
    P = limit.initial_residual.cell_average(grid.edges, grid.u @ q, float(np.sqrt(1 - q @ q)))
    return np.asarray(P / (P.sum(axis=1, keepdims=True) * grid.h))


@dataclass(frozen=True)
class Mirror:
    """Nodes that need not be solved, because (w, u) -> (-w, -u) takes the density to that of their mirror image.

    Parameters
    ----------
    grid : Grid
        All nodes.
    holds : bool
        Whether the limit has the symmetry.
    """

    grid: Grid
    holds: bool

    @classmethod
    def of(cls, limit: Limit, grid: Grid) -> Mirror:
        """Mirror symmetry of a limit: it holds if nodes, start and prior are their own mirror images."""
        u, weight, P = grid.u, grid.u_weight, initial_density(limit, grid)
        steps = limit.prior.potential_steps(grid.centres)
        pairs = ((u, -u[::-1]), (weight, weight[::-1]), (P, P[::-1, ::-1]), (steps, -steps[::-1]))
        return cls(grid, all(np.allclose(a, b, rtol=0, atol=MIRROR_ROUNDING * np.abs(a).max()) for a, b in pairs))

    @property
    def solved(self) -> Grid:
        """The nodes to solve, with the weights of their images."""
        if not self.holds:
            return self.grid
        return Grid(self.grid.edges, *without_images(self.grid.u, self.grid.u_weight))

    def unfold(self, P: FloatArray) -> FloatArray:
        """Densities of all nodes from those that were solved, shape (..., nodes, cells)."""
        if not self.holds:
            return P
        images = len(self.grid.u_weight) // 2
        return np.concatenate([P, P[..., :images, :][..., ::-1, ::-1]], axis=-2)


def without_images(u: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """First half of nodes that are mirror images of one another, with the weights of their images."""
    nodes = len(weight)
    kept = (nodes + 1) // 2
    weight = weight[:kept].copy()
    weight[: nodes // 2] *= 2.0
    return u[:kept], weight
