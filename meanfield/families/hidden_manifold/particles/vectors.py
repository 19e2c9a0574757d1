"""Features, teacher, means and student of a replica of plain SGD at t = 0: drawn, or those of a file.

Runs keep components S of their weights along eigenvectors of the features. The features themselves are drawn once more
from the seed of the run. Of the weights, the part that the features see follows from S; what is orthogonal to them acts
by its products alone in the limit, and is drawn with these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from meanfield.ensembles.stepper import replica_generator
from meanfield.errors import InputError
from meanfield.families.hidden_manifold.initial_state import OwnStart, second_layer
from meanfield.families.hidden_manifold.particles.features import Blocks, blocks_of, draw_features, latent_dimension
from meanfield.families.hidden_manifold.particles.start import (
    draw_directions,
    draw_student,
    draw_teacher,
    extra_means,
)
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.numerics.exact_products import orthogonal_part
from meanfield.results.initial_state import seed_of
from meanfield.typing import FloatArray

SAME_VECTORS = 1e-4
"""Largest difference of components of vectors that are the same: single precision, and eigenvalues that are close."""


class Vectors(NamedTuple):
    """What a replica starts with.

    Parameters
    ----------
    F : ndarray, shape (D, N)
    blocks : Blocks, optional
        Eigenspaces of F F^T/N whose eigenvectors are the axes.
    teacher : ndarray, shape (D, teachers)
        Wt in columns.
    directions : ndarray, shape (D, means)
        Of means that the teacher does not span.
    W : ndarray, shape (students, N)
    v : ndarray, shape (students,)
    """

    F: FloatArray
    blocks: Blocks | None
    teacher: FloatArray
    directions: FloatArray
    W: FloatArray
    v: FloatArray


def vectors_of(problem: Problem, replica: int) -> Vectors:
    """Vectors of a replica.

    Raises
    ------
    InputError
        If those of a file are not the ones that the problem draws.
    """
    state = None if problem.initial is None else problem.initial.atoms
    if state is None:
        return _drawn(problem, replica_generator(problem.particles.seed, replica))
    rng = replica_generator(seed_of(problem), replica)
    if state.matrices is not None:
        F, W, Wt, v = state.matrices
        teacher = np.ascontiguousarray(Wt.T)
        directions = _draw_directions(problem, teacher, rng)
        return Vectors(F, None, teacher, directions, W, second_layer(problem, v))
    assert state.seed is not None
    run = replica % state.runs
    drawn, own = _drawn(problem, replica_generator(state.seed, run)), state.own[run]
    return drawn._replace(W=_with_components(problem, drawn, own, rng), v=own.v)


def _drawn(problem: Problem, rng: Generator) -> Vectors:
    N, D = problem.particles.dimension, latent_dimension(problem)
    blocks = blocks_of(problem)
    F = draw_features(problem, blocks, rng)
    teacher = _draw_teacher(problem, blocks, D, rng)
    directions = _draw_directions(problem, teacher, rng)
    features = F.T @ teacher / np.sqrt(N)
    W = draw_student(problem, features, rng.standard_normal((N, problem.students)))
    return Vectors(F, blocks, teacher, directions, W.T, np.array(problem.student.output_weights, dtype=float))


def _draw_directions(problem: Problem, teacher: FloatArray, rng: Generator) -> FloatArray:
    D = len(teacher)
    return draw_directions(teacher, rng.standard_normal((D, len(extra_means(problem)))), D)


def _draw_teacher(problem: Problem, blocks: Blocks | None, D: int, rng: Generator) -> FloatArray:
    """Wt, shape (D, teachers), with the products that the problem asks for in each eigenspace that has room for it."""
    normals = rng.standard_normal((D, problem.teachers))
    if blocks is None:
        return draw_teacher(problem, [normals], [D])
    if blocks.size.min() <= problem.teachers:  # a single component would not be random
        return draw_teacher(problem, [normals * np.sqrt(np.repeat(blocks.teacher, blocks.size))[:, None]], [D])
    parts = np.split(normals, np.cumsum(blocks.size)[:-1])
    return draw_teacher(problem, parts, blocks.size * blocks.teacher)


def eigenvectors_of(F: FloatArray, factor: float, blocks: Blocks | None) -> tuple[FloatArray, FloatArray | None]:
    """Eigenvalues of F F^T times a factor, and eigenvectors in columns; None if these are the axes."""
    if blocks is not None:
        return np.repeat(blocks.rho, blocks.size), None
    rho, vectors = np.linalg.eigh(F @ F.T * factor)
    return np.maximum(rho, 0.0), vectors


def _with_components(problem: Problem, drawn: Vectors, own: OwnStart, rng: Generator) -> FloatArray:
    """Weights W, shape (students, N), with the components S along eigenvectors and the products of a file."""
    N = drawn.F.shape[1]
    rho, axes = eigenvectors_of(drawn.F, 1.0 / N, drawn.blocks)
    seen = rho > 1e-9 * rho.max()  # others are 0 to rounding
    teacher, along = (part if axes is None else axes.T @ part for part in (drawn.teacher, drawn.F))
    sign = np.where((teacher * own.teacher).sum(axis=1) < 0.0, -1.0, 1.0)[:, None]  # eigenvectors have either
    same = own.teacher.shape == teacher.shape and np.abs(rho - own.rho).max() <= SAME_VECTORS
    if not same or np.abs(sign * teacher - own.teacher)[seen].max() > SAME_VECTORS:
        raise InputError(
            f"initial.from = '{problem.initial and problem.initial.path}': its features and teacher are not those that "
            "inputs and teacher draw from its particles.seed; give both as in its problem"
        )
    W = ((sign * own.students)[seen] / rho[seen, None]).T @ along[seen] / np.sqrt(N)
    left = min(N - int(seen.sum()), len(W))
    if left > 0:
        values, vectors = np.linalg.eigh(own.Omega - W @ W.T / N)
        factor = vectors[:, -left:] * np.sqrt(np.maximum(values[-left:], 0.0) * N)
        apart, triangle = np.linalg.qr(orthogonal_part(rng.standard_normal((N, left)), drawn.F.T))
        W += factor @ (apart * np.sign(np.diag(triangle))).T  # uniform in law
    return np.asarray(W)
