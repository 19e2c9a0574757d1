"""Particles of the limit of several vectors at the start: drawn from their law, or from a sample of weights."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from meanfield.ensembles.streams import START, fill_normals
from meanfield.several_vectors.limit import JointLimit
from meanfield.typing import FloatArray

RUNS = 8
"""Number of independent runs, from whose spread standard errors follow, as from randomisations of a closure."""

SINGULAR = 1e-10
"""Eigenvalue of K below which weights are taken as functions of the features and of each other in its direction.

H multiplies what is left of the weights there, of the size of the root of the eigenvalue: left out it is below 1e-5,
while errors of the averages, 1e-9 or less, are divided by that root."""


def draw_sample(limit: JointLimit, count: int, key: FloatArray, run: int) -> FloatArray:
    """Ones, features and normal numbers of the particles of a run, orthonormal in the sample: q(0), M(0) are exact.

    From a sample of weights they are some of these, others in each run, and in place of normal numbers are what weights
    have besides the part along their features.

    Returns
    -------
    ndarray, shape (1 + d1 + d2, n)
    """
    d2 = len(limit.lengths)
    rng = np.random.default_rng([*key.tolist(), run])
    if limit.sample is not None:
        return _of_sample(limit, *limit.sample, count, run, np.random.default_rng(key.tolist()), rng)
    draws = [law.sample(rng, (count,)) for law in limit.coordinates]
    normals = np.empty(d2 * count + d2 * count % 2)
    fill_normals(key, run, START, 0, normals)
    rows = np.vstack([np.ones(count), *draws, normals[: d2 * count].reshape(d2, count)])
    return np.asarray(np.linalg.solve(np.linalg.cholesky(rows @ rows.T / count), rows))


def _of_sample(
    limit: JointLimit,
    weights: FloatArray,
    features: FloatArray,
    count: int,
    run: int,
    shared: Generator,
    own: Generator,
) -> FloatArray:
    """Sample of a run from its share of a sample of weights and features, each as often as any other, or once more.

    Shares of runs have no coordinate in common, so that the spread of runs also tells what a sample leaves unknown.
    """
    share = np.array_split(shared.permutation(len(weights)), RUNS)[run % RUNS]
    chosen = own.permutation(np.resize(own.permutation(share), count))
    rows = np.vstack([np.ones(count), features[chosen].T])
    rows = np.linalg.solve(np.linalg.cholesky(rows @ rows.T / count), rows)
    w, u = weights[chosen].T, rows[1:]
    rest = w - (w @ u.T / count) @ u
    q, M = limit.initial_q, limit.initial_M
    _, vectors = np.linalg.eigh(M - q.T @ q)  # axes of the factor that these numbers are multiplied with
    values, axes = np.linalg.eigh(rest @ rest.T / count)
    inverse = np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > SINGULAR)
    return np.vstack([rows, vectors.T @ (axes * inverse) @ axes.T @ rest])
