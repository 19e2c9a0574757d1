"""Features U and weights w at t = 0, or their overlaps alone, of one channel or several; the escape from them."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from meanfield.ensembles.gamma_variables import chi_squared
from meanfield.ensembles.streams import START, fill_normals, fill_uniforms
from meanfield.families.contrastive.problem import Problem
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.triangular import factorise
from meanfield.one_vector.start import orthogonal_columns, weights_with_overlap
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray


def draw_start(problem: Problem, replica: int, rng: Generator) -> tuple[FloatArray, FloatArray]:
    """Features U, shape (N, d1), and weights of a replica at t = 0, shape (N, d2): drawn, or those of a file."""
    state = None if problem.initial is None else problem.initial.atoms
    if state is not None and state.weights is not None and state.U is not None:
        run = replica % state.runs
        return np.array(state.U[run]), np.array(state.weights[run])
    U = draw_features(problem, rng)
    if problem.model.channels > 1:
        return U, draw_channel_weights(problem, U, rng).T
    return U, draw_weights(problem, U, rng)[:, None]


def draw_features(problem: Problem, rng: Generator) -> FloatArray:
    """Features U of a problem; see `meanfield.one_vector.start.orthogonal_columns`."""
    return orthogonal_columns(problem.coordinates, problem.particles.dimension, rng)


def draw_weights(problem: Problem, U: FloatArray, rng: Generator) -> FloatArray:
    """Weights with the overlaps q(0); uniform on the sphere for a random start."""
    if problem.random_start:  # then the residual is Gaussian
        xi = problem.initial_residual.sample(rng, len(U))
        return np.asarray(xi * np.sqrt(len(U) / (xi @ xi)))
    law = None if problem.initial is None else problem.initial.atoms.law
    xi = problem.initial_residual.sample(rng, len(U)) if law is None else law.sample(U, rng)
    return weights_with_overlap(U, problem.initial_overlap, xi)


def draw_overlap(problem: Problem, key: FloatArray, replicas: range) -> tuple[FloatArray, FloatArray]:
    """q(0), shape (replicas, d1), and s = sqrt(1 - |q|^2), shape (replicas,), without any vector of N numbers.

    From a random start sqrt(N) (q, s) is a Gaussian vector on the sphere, whose part beyond the features enters by
    its length alone.
    """
    q = np.tile(problem.initial_overlap, (len(replicas), 1))
    if problem.initial is not None:
        known = problem.initial.atoms.q[..., 0]
        q = known[np.array(replicas) % len(known)]
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


def initial_coordinates(problem: Problem) -> FloatArray:
    """Coordinates X = (q^T, L) of the channels with L L^T = M(0) - q^T q, shape (d2, d1 + d2)."""
    return coordinates_of(problem.initial_overlap, problem.initial_channel_overlap)


def coordinates_of(q: FloatArray, M: FloatArray) -> FloatArray:
    """Coordinates of channels with overlaps q and M; see `initial_coordinates`."""
    gram = np.block([[np.eye(len(q)), q], [q.T, M]])
    factor = np.zeros_like(gram)
    factorise(gram, factor)
    return factor[len(q) :]


def draw_channel_weights(problem: Problem, U: FloatArray, rng: Generator) -> FloatArray:
    """Weights with the overlaps q(0) and M(0), shape (d2, N); independent and uniform for a random start.

    Parameters
    ----------
    U : ndarray, shape (N, d1)
        Features with U^T U = N I.
    """
    N, d2 = len(U), problem.model.channels
    Z = rng.standard_normal((d2, N))
    if problem.random_start:
        return np.asarray(Z * np.sqrt(N / (Z * Z).sum(axis=1, keepdims=True)))
    Z -= Z @ U @ U.T / N
    p, R = np.linalg.qr(Z.T)
    p *= np.sign(np.diag(R))  # orthogonal to the features and uniform in law, as Z is
    axes = np.vstack([U.T, np.sqrt(N) * p.T])
    W = np.zeros((d2, N))
    for w, coordinates in zip(W, initial_coordinates(problem), strict=True):
        for axis, coordinate in zip(axes, coordinates, strict=True):
            w += coordinate * axis  # channels with equal coordinates are equal to the last bit
    return W


def products(W: FloatArray, U: FloatArray) -> FloatArray:
    """Products of features and weights divided by N, shape (replicas, d1 + d2, d1 + d2).

    Parameters
    ----------
    W : ndarray, shape (replicas, d2, N)
    U : ndarray, shape (replicas, d1, N)
    """
    rows = np.concatenate([U, W], axis=1)
    gram = rows @ rows.swapaxes(1, 2) / W.shape[2]
    gram[:, : U.shape[1], : U.shape[1]] = np.eye(U.shape[1])  # to rounding
    return np.asarray(gram)


def draw_channel_coordinates(problem: Problem, key: FloatArray, replicas: range) -> FloatArray:
    """Coordinates of the channels, shape (replicas, d2, d1 + d2), without any vector of N numbers."""
    d1, d2 = len(problem.features), problem.model.channels
    if problem.initial is not None:
        state = problem.initial.atoms
        return np.stack([coordinates_of(state.q[i % state.runs], state.M[i % state.runs]) for i in replicas])
    if not problem.random_start:
        return np.tile(initial_coordinates(problem), (len(replicas), 1, 1))
    X = np.zeros((len(replicas), d2, d1 + d2))
    _random_coordinates(key, replicas.start, problem.particles.dimension, X)
    return X


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _random_coordinates(key, first_replica, N, X):  # type: ignore[no-untyped-def]
    """Coordinates of independent channels that are uniform on the sphere, from those of Gaussian vectors.

    Beyond the features these are the triangular factor of a Wishart matrix, by Bartlett's decomposition.
    """
    replicas, channels, size = X.shape
    d1, count = size - channels, channels * size
    normals, uniforms = np.empty(count + count % 2), np.empty(channels + channels % 2)
    for i in range(replicas):
        call(fill_normals, key, first_replica + i, START, 0, normals)
        call(fill_uniforms, key, first_replica + i, START, normals.size, uniforms)
        for k in range(channels):
            own = normals[k * size : (k + 1) * size]
            rest = chi_squared(N - d1 - k, own[d1 + k], uniforms[k], key, first_replica + i, -1 - k)
            own[d1 + k] = math.sqrt(rest)
            length = rest
            for j in range(d1 + k):
                length += own[j] * own[j]
            for j in range(d1 + k + 1):
                X[i, k, j] = own[j] / math.sqrt(length)
