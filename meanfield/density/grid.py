"""Cells in w and quadrature nodes in u, and the density at t = 0 on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from scipy.special import ndtr

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


def gaussian_cell_average(edges: FloatArray, mean: FloatArray, deviation: float) -> FloatArray:
    """Averages over cells of the densities N(mean_j, deviation^2).

    Returns
    -------
    ndarray, shape (len(mean), len(edges) - 1)
    """
    z = (edges[None, :] - mean[:, None]) / deviation
    # Differences of the smaller tail keep relative accuracy far from the mean.
    upper = z[:, :-1] > 0
    mass = np.where(upper, ndtr(-z[:, :-1]) - ndtr(-z[:, 1:]), ndtr(z[:, 1:]) - ndtr(z[:, :-1]))
    return np.asarray(mass / np.diff(edges))


def initial_density(problem: Problem, grid: Grid) -> FloatArray:
    """W = u.q(0) + sqrt(1 - |q(0)|^2) xi with Gaussian xi, as cell averages of unit mass, shape (nodes, cells)."""
    q = problem.initial_overlap
    P = gaussian_cell_average(grid.edges, grid.u @ q, float(np.sqrt(1 - q @ q)))
    return np.asarray(P / (P.sum(axis=1, keepdims=True) * grid.h))


def feature_quadrature(problem: Problem, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Tensor-product quadrature over the feature coordinates."""
    rules = [feature.coordinate.quadrature(nodes) for feature in problem.features]
    u = np.array(list(product(*(x for x, _ in rules))))
    weight = np.array([np.prod(w) for w in product(*(w for _, w in rules))])
    return u, weight
