"""Cells in w and quadrature nodes in u, and the density at t = 0 on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from meanfield.families.contrastive.problem import Problem
from meanfield.typing import FloatArray


@dataclass(frozen=True)
class Grid:
    """Finite-volume cells times quadrature nodes.

    Parameters
    ----------
    edges : ndarray, shape (cells + 1,)
        Equally spaced, symmetric about 0, and 0 is one of them: kinks of priors lie on a face.
    u : ndarray, shape (nodes, d1)
        Quadrature nodes of the feature law.
    u_weight : ndarray, shape (nodes,)
        Their weights, adding up to one.
    """

    edges: FloatArray
    u: FloatArray
    u_weight: FloatArray

    @cached_property
    def h(self) -> float:
        """Cell width."""
        return float(self.edges[1] - self.edges[0])

    @cached_property
    def centres(self) -> FloatArray:
        """Cell centres, shape (cells,)."""
        return 0.5 * (self.edges[1:] + self.edges[:-1])

    @property
    def shape(self) -> tuple[int, int]:
        """(nodes, cells)."""
        return len(self.u_weight), len(self.centres)

    def refined(self, factor: int) -> Grid:
        """`factor` cells in place of each."""
        cells = factor * self.shape[1]
        edges = np.linspace(self.edges[0], self.edges[-1], cells + 1)
        edges[cells // 2] = 0.0
        return Grid(edges, self.u, self.u_weight)


def initial_density(problem: Problem, grid: Grid) -> FloatArray:
    """W = u.q(0) + sqrt(1 - |q(0)|^2) xi, as cell averages of unit mass, shape (nodes, cells)."""
    q = problem.initial_overlap
    P = problem.initial_residual.cell_average(grid.edges, grid.u @ q, float(np.sqrt(1 - q @ q)))
    return np.asarray(P / (P.sum(axis=1, keepdims=True) * grid.h))


SAME = 1e-13
"""Rounding of what should be equal, relative to the largest value."""

NEGLIGIBLE_NODE = 1e-13
"""Corners of a tensor product that weigh less are left out: they only widen the range of w."""


def feature_quadrature(problem: Problem, nodes: int | None, scale: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Tensor-product quadrature over the feature coordinates.

    Parameters
    ----------
    problem : Problem
    nodes : int or None
        Nodes for each coordinate whose law is continuous; None for the law's own default.
    scale : float
        Factor on that number.

    Returns
    -------
    u : ndarray, shape (nodes, d1)
    weight : ndarray, shape (nodes,)
    """
    laws = [feature.coordinate for feature in problem.features]
    rules = [law.quadrature(math.ceil(scale * (nodes or law.default_nodes[len(laws) - 1]))) for law in laws]
    u = np.stack(np.meshgrid(*(x for x, _ in rules), indexing="ij"), axis=-1).reshape(-1, len(laws))
    weight = reduce(np.multiply.outer, (w for _, w in rules)).ravel()
    kept = weight > NEGLIGIBLE_NODE
    return u[kept], weight[kept] / weight[kept].sum()


@dataclass(frozen=True)
class Mirror:
    """Nodes that need not be solved, because (w, u) -> (-w, -u) takes the density to that of their mirror image.

    Parameters
    ----------
    grid : Grid
        All nodes.
    holds : bool
        Whether the problem has the symmetry.
    """

    grid: Grid
    holds: bool

    @classmethod
    def of(cls, problem: Problem, grid: Grid) -> Mirror:
        """Nodes and start are mirror images of themselves, and the prior does not tell w from -w."""
        u, weight, P = grid.u, grid.u_weight, initial_density(problem, grid)
        steps = problem.prior.potential_steps(grid.centres)
        pairs = ((u, -u[::-1]), (weight, weight[::-1]), (P, P[::-1, ::-1]), (steps, -steps[::-1]))
        return cls(grid, all(np.allclose(a, b, rtol=0, atol=SAME * np.abs(a).max()) for a, b in pairs))

    @property
    def solved(self) -> Grid:
        """The nodes to solve, with the weights of their images."""
        if not self.holds:
            return self.grid
        nodes = len(self.grid.u_weight)
        kept = (nodes + 1) // 2
        weight = self.grid.u_weight[:kept].copy()
        weight[: nodes // 2] *= 2.0
        return Grid(self.grid.edges, self.grid.u[:kept], weight)

    def unfold(self, P: FloatArray) -> FloatArray:
        """Densities of all nodes from those that were solved, shape (..., nodes, cells)."""
        if not self.holds:
            return P
        images = len(self.grid.u_weight) // 2
        return np.concatenate([P, P[..., :images, :][..., ::-1, ::-1]], axis=-2)
