"""Features U and weights w at t = 0, or their overlaps alone, as the problem asks for exactly; the escape from them."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from meanfield.ensembles.gamma_variables import chi_squared
from meanfield.ensembles.streams import START, fill_normals, fill_uniforms
from meanfield.families.contrastive.problem import Problem
from meanfield.numerics.compiled.separate_calls import call
from meanfield.one_vector.start import orthogonal_columns, weights_with_overlap
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray


def draw_features(problem: Problem, rng: Generator) -> FloatArray:
    """Features U of a problem; see `meanfield.one_vector.start.orthogonal_columns`."""
    return orthogonal_columns(problem.coordinates, problem.particles.dimension, rng)


def draw_weights(problem: Problem, U: FloatArray, rng: Generator) -> FloatArray:
    """Weights with the overlaps q(0); uniform on the sphere for a random start."""
    if problem.random_start:  # then the residual is Gaussian
        xi = problem.initial_residual.sample(rng, len(U))
        return np.asarray(xi * np.sqrt(len(U) / (xi @ xi)))
    return weights_with_overlap(U, problem.initial_overlap, problem.initial_residual, rng)


def draw_overlap(problem: Problem, key: FloatArray, replicas: range) -> tuple[FloatArray, FloatArray]:
    """q(0), shape (replicas, d1), and s = sqrt(1 - |q|^2), shape (replicas,), without any vector of N numbers.

    From a random start sqrt(N) (q, s) is a Gaussian vector on the sphere, whose part beyond the features enters by
    its length alone.
    """
    q = np.tile(problem.initial_overlap, (len(replicas), 1))
    if not problem.random_start:
        return q, np.sqrt(1 - np.einsum("rk,rk->r", q, q))
    s: FloatArray = _random_overlap(key, replicas.start, problem.particles.dimension, q)
    return q, s


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _random_overlap(key, first_replica, N, q):  # type: ignore[no-untyped-def]
    replicas, d1 = q.shape
    s = np.empty(replicas)
    normals, uniforms = np.empty(d1 + 1 + (d1 + 1) % 2), np.empty(2)
    for i in range(replicas):
        call(fill_normals, key, first_replica + i, START, 0, normals)
        call(fill_uniforms, key, first_replica + i, START, normals.size, uniforms)
        rest = chi_squared(N - d1, normals[d1], uniforms[0], key, first_replica + i, -1)
        length = rest
        for k in range(d1):
            length += normals[k] * normals[k]
        for k in range(d1):
            q[i, k] = normals[k] / math.sqrt(length)
        s[i] = math.sqrt(rest / length)
    return s


def escape_level(problem: Problem) -> float:
    """Square of the overlap that counts as escape; infinite if the problem names none."""
    overlap = problem.particles.escape_overlap
    return math.inf if overlap is None else overlap * overlap


def initial_escape(q: FloatArray, level: float) -> IntArray:
    """0 for the replicas whose overlap begins at the level or above, else -1."""
    return np.asarray(np.where(np.einsum("rk,rk->r", q, q) >= level, 0, -1))


def winners(q: FloatArray, escape: IntArray) -> IntArray:
    """Winning feature of each replica: the one with the largest |q_k| at the end, if |q| has escaped by then.

    Right after the escape the order may still change: the replica may have to pass a saddle between recovery states.

    Parameters
    ----------
    q : ndarray, shape (replicas, d1)
        Overlaps at the end; NaN where they are not finite.
    escape : ndarray of int, shape (replicas,)
        The step of the escape, or -1.

    Returns
    -------
    ndarray of int, shape (replicas,)
        Index of the feature; -1 where there is none.
    """
    decided = (escape >= 0) & np.isfinite(q).all(axis=1)
    return np.asarray(np.where(decided, np.abs(q).argmax(axis=1), -1))
