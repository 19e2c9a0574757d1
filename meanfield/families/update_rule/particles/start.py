"""Features and students at t = 0, with exactly the overlaps that the problem asks for, as vectors or as coordinates."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from meanfield.families.update_rule.problem import Problem
from meanfield.numerics.exact_products import root, with_products
from meanfield.one_vector.start import orthogonal_columns
from meanfield.typing import FloatArray


def draw_features(problem: Problem, rng: Generator) -> FloatArray:
    """Features U with U^T U = N I, shape (N, features)."""
    N, spectrum = problem.particles.dimension, problem.data.spectrum
    if not problem.features:
        return np.empty((N, 0))
    square = None if spectrum is None else spectrum.quantiles((np.arange(N) + 0.5) / N).teacher
    return orthogonal_columns(problem.coordinates, N, rng, square)


def draw_students(problem: Problem, U: FloatArray, rng: Generator) -> FloatArray:
    """Students W with the overlaps R(0) and Q(0), Gaussian given the features, shape (N, students).

    Parameters
    ----------
    U : ndarray, shape (N, features)
    """
    N, R = len(U), problem.initial_R
    normals = rng.standard_normal((N, len(R)))
    normals -= U @ (U.T @ normals / N)
    return np.asarray(U @ R.T + with_products(normals, N * (problem.initial_Q - R @ R.T)))


def initial_coordinates(problem: Problem) -> FloatArray:
    """Coordinates X = (R, L) of the students with L L^T = Q - R R^T, shape (students, features + students)."""
    R = problem.initial_R
    return np.hstack([R, root(problem.initial_Q - R @ R.T)])
