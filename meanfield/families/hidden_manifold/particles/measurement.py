"""Order parameters of SGD, from its weights and not from samples.

They are the formulas of the limit at the overlaps that the weights have. At finite N the fields of a sample differ in
law from these Gaussians by O(1/N), a test set of P samples by O(1/sqrt(P)).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from meanfield.families.hidden_manifold.problem import Problem
from meanfield.ingredients.nonlinearities import Moments
from meanfield.typing import FloatArray

LINEAR = 1e-10
"""Share of c* in the variance of f that is 0 to the accuracy of moments."""


class Overlaps(NamedTuple):
    """Overlaps of some replicas.

    Parameters
    ----------
    Omega, Sigma : ndarray, shape (replicas, students, students)
        W.W/N and S.S/D.
    teacher : ndarray, shape (replicas, students, teachers)
        S.Wt/D.
    mean : ndarray, shape (replicas, students, components)
        S.E[C]/sqrt(D).
    constant : ndarray, shape (replicas, students)
        W.(1, 1, ...)/sqrt(N), with which inputs that have a mean reach the student.
    v : ndarray, shape (replicas, students)
    """

    Omega: FloatArray
    Sigma: FloatArray
    teacher: FloatArray
    mean: FloatArray
    constant: FloatArray
    v: FloatArray


def gaussian_noise(moments: Moments) -> float:
    """Variance c* of the part of f(s u) that is uncorrelated with u; 0 for a linear f, to rounding."""
    noise = moments.square - moments.mean**2 - moments.slope**2
    return noise if noise > LINEAR * moments.square else 0.0


def row_shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    """Names and shapes of what `rows_of` returns for each replica."""
    K, M = problem.students, problem.teachers
    square = dict.fromkeys(("Q", "Omega", "Sigma"), (K, K))
    means = {"field_mean": (len(problem.inputs.gaussians), K)}
    return square | {"R": (K, M), "v": (K,), "generalisation_error": ()} | means


def rows_of(problem: Problem, overlaps: Overlaps) -> Mapping[str, FloatArray]:
    """Order parameters of each replica, averaged over components, with the means of fields in each."""
    T = problem.teacher_overlap
    Q, R, error = (np.zeros_like(array) for array in (overlaps.Omega, overlaps.teacher, overlaps.v[:, 0]))
    means = []
    for q, (weight, scale) in enumerate(problem.inputs.gaussians):
        moments = problem.inputs.moments[q]
        own = gaussian_noise(moments) * overlaps.Omega + moments.slope**2 * overlaps.Sigma
        cross = moments.slope * scale * overlaps.teacher
        mean = moments.mean * overlaps.constant + moments.slope / scale * overlaps.mean[:, :, q]
        error += weight * generalisation_error(problem, overlaps.v, own, cross, scale**2 * T)
        Q += weight * own
        R += weight * cross
        means.append(mean)
    return {
        "Q": Q,
        "R": R,
        "Omega": overlaps.Omega,
        "Sigma": overlaps.Sigma,
        "v": overlaps.v,
        "generalisation_error": error,
        "field_mean": np.stack(means, axis=1),
    }


def generalisation_error(problem: Problem, v: FloatArray, Q: FloatArray, R: FloatArray, T: FloatArray) -> FloatArray:
    """Placeholder."""
    vt = np.array(problem.teacher.output_weights)
    n = len(v)
    u = np.concatenate([v, -np.broadcast_to(vt, (n, len(vt)))], axis=1)
    lower = np.concatenate([R.transpose(0, 2, 1), np.broadcast_to(T, (n, *T.shape))], 2)
    C = np.concatenate([np.concatenate([Q, R], axis=2), lower], 1)
    d = np.einsum("raa->ra", C)
    name = problem.student.activation
    if name == "scaled_erf":
        E = 2 / np.pi * np.arcsin(C / np.sqrt((1 + d)[:, :, None] * (1 + d)[:, None, :]))
    elif name == "relu":
        s = np.sqrt(d[:, :, None] * d[:, None, :])
        q = np.clip(C / s, -1, 1)
        E = s / (2 * np.pi) * (np.sqrt(1 - q * q) + q * (np.pi - np.arccos(q)))
    else:
        E = C
    return np.asarray(0.5 * np.einsum("ra,rab,rb->r", u, E, u))
