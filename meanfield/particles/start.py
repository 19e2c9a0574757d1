"""Features U and weights w at t = 0, with exactly the overlap that the problem asks for."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from meanfield.problem import Problem
from meanfield.typing import FloatArray

DEPENDENT = 1e-8
"""Columns with a smaller eigenvalue of Z^T Z / N are linearly dependent, and drawn again."""


def draw_features(problem: Problem, rng: Generator) -> FloatArray:
    """U with rows of independent coordinates, made orthogonal: U^T U = N I, shape (N, d1).

    The symmetric orthogonalisation Z (Z^T Z / N)^(-1/2) moves coordinates by O(1/sqrt(N)) only.
    """
    N = problem.particles.dimension
    values = np.zeros(1)
    while values.min() < DEPENDENT:  # two Rademacher columns of a small N may coincide
        Z = np.stack([feature.coordinate.sample(rng, (N,)) for feature in problem.features], axis=1)
        values, vectors = np.linalg.eigh(Z.T @ Z / N)
    return np.ascontiguousarray(Z @ (vectors / np.sqrt(values)) @ vectors.T)


def draw_weights(problem: Problem, U: FloatArray, rng: Generator) -> FloatArray:
    """W = U q(0) + sqrt(1 - |q(0)|^2) xi with xi orthogonal to U and |xi|^2 = N; uniform for a random start."""
    N = len(U)
    xi = problem.initial_residual.sample(rng, N)
    if problem.random_start:  # then the residual is Gaussian
        return np.asarray(xi * np.sqrt(N / (xi @ xi)))
    xi -= U @ (U.T @ xi) / N
    xi *= np.sqrt(N / (xi @ xi))
    q = problem.initial_overlap
    return np.asarray(U @ q + np.sqrt(1 - q @ q) * xi)
