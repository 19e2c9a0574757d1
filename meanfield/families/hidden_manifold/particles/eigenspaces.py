"""Eigenspaces that the chain follows: their dimensions, the law of inputs in them, and Gram matrices at t = 0."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from meanfield.errors import InputError
from meanfield.families.hidden_manifold.particles.chain import Covariates
from meanfield.families.hidden_manifold.particles.features import blocks_of, latent_dimension
from meanfield.families.hidden_manifold.particles.measurement import gaussian_noise
from meanfield.families.hidden_manifold.particles.start import (
    draw_directions,
    draw_student,
    draw_teacher,
    extra_means,
    gaussian_means,
)
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.typing import FloatArray, IntArray


class Spaces(NamedTuple):
    """Eigenspaces of F F^T/N that have latents, and last the input dimensions that F does not reach, if there are any.

    Parameters
    ----------
    rho : ndarray, shape (spaces,)
        Eigenvalues; 0 for the inputs alone.
    size : ndarray of int, shape (spaces,)
        Dimensions.
    teacher : ndarray, shape (spaces,)
        Share t(rho)/T of the teacher.
    latent, inputs : ndarray of bool, shape (spaces,)
        Whether they are among the D dimensions of latents, and among the N of inputs.
    """

    rho: FloatArray
    size: IntArray
    teacher: FloatArray
    latent: FloatArray
    inputs: FloatArray


def spaces_of(problem: Problem) -> Spaces:
    """Spaces of a problem.

    Raises
    ------
    InputError
        If inputs are no Gaussian covariates of finitely many eigenvalues, or a space has no room for all vectors.
    """
    blocks, start = blocks_of(problem), "particles.method = 'chain'"
    if blocks is None:
        raise InputError(
            f"{start} with inputs.spectrum.law = 'marchenko_pastur': the chain follows one Gram matrix per eigenvalue, "
            "and all D are different here; set particles.method to 'plain', or give a spectrum of few atoms"
        )
    # In units of their standard deviation 1e-9 is 0 to the accuracy of moments.
    if problem.inputs.is_uneven or any(
        abs(moments.mean) > 1e-9 * np.sqrt(moments.square) for moments in problem.inputs.moments
    ):
        raise InputError(
            f"{start}: inputs have a mean, which the chain does not follow; set particles.method to 'plain', or "
            "inputs.centered to true"
        )
    rest = problem.particles.dimension - int(blocks.size[blocks.rho > 0].sum())
    more = [rest] if rest else []
    columns = problem.students + problem.teachers + len(extra_means(problem))
    size = np.append(blocks.size, more).astype(np.int64)
    training = problem.training
    in_place = training.batch_size == 1 and training.weight_decay == 0.0
    orthogonal = 1 if in_place else problem.students  # vectors that a step adds up
    if size.min() < columns + orthogonal:
        raise InputError(
            f"{start}: a space of {size.min()} dimensions has no room for {columns} vectors and what is orthogonal to "
            "them; raise particles.dimension, or set particles.method to 'plain'"
        )
    none = np.zeros(len(more))
    return Spaces(
        np.append(blocks.rho, none),
        size,
        np.append(blocks.teacher, none),
        np.append(np.ones(len(blocks.rho), bool), none.astype(bool)),
        np.append(blocks.rho > 0, np.ones(len(more), bool)),
    )


def covariates_of(problem: Problem, spaces: Spaces) -> Covariates:
    """Law of the inputs of a problem in its spaces."""
    D = latent_dimension(problem)
    N = problem.particles.dimension
    inputs = problem.inputs
    weight, scale = np.array(inputs.gaussians).T
    cumulated = np.cumsum(weight)
    coefficients = gaussian_means(problem)
    cumulated[-1] = 2.0  # no uniform number is above it, whatever rounding did to the sum
    slope = np.array([moments.slope for moments in inputs.moments]) / scale
    noise = np.sqrt([gaussian_noise(moments) for moments in inputs.moments])
    return Covariates(
        cumulated,
        scale,
        np.hstack([np.zeros((len(scale), problem.students)), coefficients]),
        np.outer(slope, np.sqrt(spaces.rho * N / D)),
        np.outer(noise, spaces.inputs),
        spaces.size - problem.students - coefficients.shape[1],
        float(D),
        float(N),
    )


def draw_gram(problem: Problem, spaces: Spaces, rng: Generator) -> FloatArray:
    """Products of students, teachers and directions of means at t = 0 in each space, shape (spaces, columns, columns).

    Normals of n rows have the products of a triangular matrix with chi-distributed diagonal (Bartlett).
    """
    K = problem.students
    M = problem.teachers
    E = len(extra_means(problem))
    D, columns = latent_dimension(problem), K + M + E
    normals = np.stack([_triangular_normals(rng, int(n), columns) for n in spaces.size])
    teacher = draw_teacher(problem, list(normals[:, :, K : K + M]), list(spaces.size * spaces.teacher))
    latent = (normals[:, :, K + M :] * spaces.latent[:, None, None]).reshape(len(teacher), E)
    directions = draw_directions(teacher, latent, D)
    factor = np.repeat(np.sqrt(spaces.rho), columns)[:, None]
    own = (normals[:, :, :K] * spaces.inputs[:, None, None]).reshape(len(teacher), K)
    W = draw_student(problem, factor * teacher, own)
    vectors = np.hstack([W, teacher, directions]).reshape(len(spaces.size), columns, columns)
    return np.asarray(np.einsum("jia,jib->jab", vectors, vectors))


def _triangular_normals(rng: Generator, rows: int, columns: int) -> FloatArray:
    """Upper triangular matrix whose columns have the products of `columns` vectors of `rows` independent normals."""
    triangle = np.triu(rng.standard_normal((columns, columns)), 1)
    triangle[np.diag_indices(columns)] = np.sqrt(rng.chisquare(rows - np.arange(columns)))
    return triangle
