"""Features and students at t = 0, with exactly the overlaps that the problem asks for, as vectors or as coordinates."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from meanfield.ensembles.stepper import replica_generator
from meanfield.families.update_rule.problem import Problem
from meanfield.numerics.exact_products import root, with_products
from meanfield.one_vector.start import orthogonal_columns
from meanfield.results.initial_state import seed_of
from meanfield.typing import FloatArray


def draw_features(problem: Problem, rng: Generator) -> FloatArray:
    """Features U with U^T U = N I, shape (N, features)."""
    N, spectrum = problem.particles.dimension, problem.data.spectrum
    if not problem.features:
        return np.empty((N, 0))
    square = None if spectrum is None else spectrum.quantiles((np.arange(N) + 0.5) / N).teacher
    return orthogonal_columns(problem.coordinates, N, rng, square)


def draw_vectors(problem: Problem, replica: int) -> tuple[FloatArray, FloatArray]:
    """Features U, shape (N, features), and students W, (N, students), of a replica: drawn, or those of a file."""
    rng = replica_generator(seed_of(problem), replica)
    state = None if problem.initial is None else problem.initial.atoms.of_run(replica)
    if state is not None and state.weights is not None and state.U is not None:
        return np.array(state.U), np.array(state.weights)
    U = draw_features(problem, rng)
    R, Q, _ = order_parameters_of(problem, replica)
    law = None if state is None else state.law
    parts = rng.standard_normal((len(U), len(R))) if law is None else law.sample(U, rng)[:, None]
    return U, draw_students(U, parts, R, Q)


def draw_students(U: FloatArray, parts: FloatArray, R: FloatArray, Q: FloatArray) -> FloatArray:
    """Students W with the overlaps R and Q, shape (N, students).

    Parameters
    ----------
    U : ndarray, shape (N, features)
    parts : ndarray, shape (N, students)
        What they are made of besides the features, such as normal numbers.
    """
    N = len(U)
    parts = parts - U @ (U.T @ parts / N)
    return np.asarray(U @ R.T + with_products(parts, N * (Q - R @ R.T)))


def order_parameters_of(problem: Problem, replica: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """R(0), Q(0) and v(0) of a replica."""
    if problem.initial is None:
        return problem.initial_R, problem.initial_Q, problem.initial_v
    state = problem.initial.atoms.of_run(replica)
    return state.R, state.Q, state.v


def initial_coordinates(problem: Problem, replica: int) -> FloatArray:
    """Coordinates X = (R, L) of the students with L L^T = Q - R R^T, shape (students, features + students)."""
    R, Q, _ = order_parameters_of(problem, replica)
    return np.hstack([R, root(Q - R @ R.T)])
