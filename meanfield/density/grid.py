"""Cells in w and quadrature nodes in u, and the density at t = 0 on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from meanfield.problem import Problem
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


def initial_density(problem: Problem, grid: Grid) -> FloatArray:
    """W = u.q(0) + sqrt(1 - |q(0)|^2) xi, as cell averages of unit mass, shape (nodes, cells)."""
    q = problem.initial_overlap
    P = problem.initial_residual.cell_average(grid.edges, grid.u @ q, float(np.sqrt(1 - q @ q)))
    return np.asarray(P / (P.sum(axis=1, keepdims=True) * grid.h))


NEGLIGIBLE_NODE = 1e-13
"""Corners of a tensor product that weigh less are left out: they only widen the range of w."""


def feature_quadrature(problem: Problem, nodes: int | None) -> tuple[FloatArray, FloatArray]:
    """Tensor-product quadrature over the feature coordinates.

    Parameters
    ----------
    problem : Problem
    nodes : int or None
        Nodes for each coordinate whose law is continuous; None for the law's own default.

    Returns
    -------
    u : ndarray, shape (nodes, d1)
    weight : ndarray, shape (nodes,)
    """
    laws = [feature.coordinate for feature in problem.features]
    rules = [law.quadrature(nodes or law.default_nodes[len(laws) - 1]) for law in laws]
    u = np.stack(np.meshgrid(*(x for x, _ in rules), indexing="ij"), axis=-1).reshape(-1, len(laws))
    weight = reduce(np.multiply.outer, (w for _, w in rules)).ravel()
    kept = weight > NEGLIGIBLE_NODE
    return u[kept], weight[kept] / weight[kept].sum()
