"""Teacher, means of components, and student at t = 0, with exactly the overlaps that the problem asks for.

They are combinations of Gaussian vectors whose coefficients depend on products of these vectors alone. So the same
functions serve plain SGD, which gives them vectors, and the chain, which gives them a few coordinates with the same
products.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.families.hidden_manifold.problem import Problem
from meanfield.numerics.exact_products import orthogonal_part, root, with_products
from meanfield.typing import FloatArray


def extra_means(problem: Problem) -> list[int]:
    """Components whose means have a part orthogonal to the teacher."""
    return [q for q, component in enumerate(problem.inputs.mixture) if component.mean_elsewhere > 0]


def mean_coefficients(problem: Problem) -> FloatArray:
    """Coefficients of sqrt(D) E[C] on teachers and on the vectors of `draw_directions`, a row per component."""
    extra = extra_means(problem)
    elsewhere = np.zeros((len(problem.inputs.mixture), len(extra)))
    for column, q in enumerate(extra):
        elsewhere[q, column] = problem.inputs.mixture[q].mean_elsewhere
    return np.hstack([problem.component_means, elsewhere])


def gaussian_means(problem: Problem) -> FloatArray:
    """Means for each Gaussian that latents are in the limit: one where coordinates draw components."""
    coefficients = mean_coefficients(problem)
    if problem.inputs.components_drawn == "sample":
        return coefficients
    return np.asarray(np.array([[component.weight for component in problem.inputs.mixture]]) @ coefficients)


def draw_teacher(problem: Problem, parts: Sequence[FloatArray], sizes: Sequence[float] | FloatArray) -> FloatArray:
    """Teacher's vectors Wt in columns, from Gaussian vectors in the same form.

    Parameters
    ----------
    parts : sequence of ndarray, shape (..., teachers)
        Components of the Gaussian vectors in subspaces.
    sizes : sequence of float, or ndarray
        Product of the teacher with itself in each subspace, in units of T.
    """
    T = problem.teacher_overlap
    return np.concatenate([with_products(part, size * T) for part, size in zip(parts, sizes, strict=True)])


def draw_directions(teacher: FloatArray, normals: FloatArray, size: float) -> FloatArray:
    """Vectors of length sqrt(size) in columns, orthogonal to each other and to the teacher."""
    return with_products(orthogonal_part(normals, teacher), size * np.eye(normals.shape[1]))


def draw_student(problem: Problem, features: FloatArray, normals: FloatArray) -> FloatArray:
    """Student's weights W in columns.

    Parameters
    ----------
    features : ndarray, shape (..., teachers)
        F^T Wt/sqrt(N).
    normals : ndarray, shape (..., students)
        Gaussian vectors.
    """
    N, G = problem.particles.dimension, problem.student.rest
    if problem.student.initial == "random":
        return np.asarray(normals @ root(G))
    return np.asarray(
        features @ problem.initial_on_teacher.T + with_products(orthogonal_part(normals, features), N * G)
    )
