"""SGD on the weights of several channels with at most one vector of normals per channel and step, whatever the batch.

Given what a batch adds in the span of features and weights, the rest is Gaussian and orthogonal to them: vectors of
independent normals whose components in the span are taken away, mixed by the factor of S (several_channels.md,
section 4). The law is that of plain SGD at every N. Work is done in blocks that stay in the first-level cache.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.ensembles.streams import VECTOR, fill_normals
from meanfield.families.contrastive.sgd.channels.batch import add_batch, find_means
from meanfield.families.contrastive.sgd.projected import BLOCK
from meanfield.families.contrastive.sgd.training import Training, draw_numbers, steps_together
from meanfield.numerics.compiled.array_operations import add, dot, scale
from meanfield.numerics.compiled.scalar_functions import call_loop
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.triangular import factorise
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray


class Work(NamedTuple):
    """Working arrays of a projected step besides those of a batch, for compiled code; features come before channels.

    Parameters
    ----------
    vectors : ndarray, shape (d2, N + N % 2)
        Vectors of normals.
    factor : ndarray, shape (d1 + d2, d1 + d2)
        Lower triangular factor of the products of features and weights; its last rows are the coordinates X.
    X : ndarray, shape (d2, d1 + d2)
    basis : ndarray, shape (d2, d1 + d2)
        sqrt(N) p_j as a sum of features and weights; zero where the weights have no such direction.
    of_vectors : ndarray, shape (d2, d1 + d2)
        Products of the vectors of normals with features and weights.
    coefficients : ndarray, shape (d2, d1 + 2 d2)
        New weights as sums of features, weights and vectors of normals.
    block : ndarray, shape (d2, BLOCK)
        Weights before a step.
    force : ndarray, shape (BLOCK,)
    """

    vectors: FloatArray
    factor: FloatArray
    X: FloatArray
    basis: FloatArray
    of_vectors: FloatArray
    coefficients: FloatArray
    block: FloatArray
    force: FloatArray


def work_for(training: Training) -> Work:
    """Working arrays for a training."""
    N, d2, size = training.dimension, training.channels, training.hidden.mean.shape[1] + training.channels
    return Work(
        np.empty((d2, N + N % 2)),
        np.zeros((size, size)),
        np.empty((d2, size)),
        np.empty((d2, size)),
        np.empty((d2, size)),
        np.empty((d2, size + d2)),
        np.empty((d2, BLOCK)),
        np.empty(BLOCK),
    )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def projected_steps(  # type: ignore[no-untyped-def]
    training, outputs, pull, force, strength, key, first_replica, first, steps, W, U, gram, scales, reached,
    room, work,
):  # fmt: skip
    """Take steps `first`, `first` + 1, ... of some replicas, changing their states in place.

    Parameters
    ----------
    training, outputs, pull, force, strength, key, first, steps
        See `meanfield.families.contrastive.sgd.projected.projected_steps`.
    first_replica : int
    W : ndarray, shape (replicas, d2, N)
        Weights, each channel up to a factor.
    U : ndarray, shape (replicas, d1, N)
        Features, one in each row, with U U^T = N I.
    gram : ndarray, shape (replicas, d1 + d2, d1 + d2)
        Products of features and weights, divided by N.
    scales : ndarray, shape (replicas, d2)
        The factors of the weights.
    reached : ndarray of int, shape (replicas,)
        Receives the step after which the weights were still finite: first + steps unless they blew up, now or earlier.
    room : Room
    work : Work
    """
    some = room.normals.size // training.normals
    for i in range(W.shape[0]):
        for chunk in range(first, first + steps, some):
            if reached[i] < chunk:
                break
            last = min(chunk + some, first + steps)
            draw_numbers(training, key, first_replica + i, chunk, last - chunk, (room.normals, room.uniforms))
            together = steps_together(training, last - chunk)
            for step in range(chunk, last, together):
                call(_coordinates, gram[i], work.factor, work.X)
                call(find_means, training, outputs, work.X, room.means)
                reached[i] = call(
                    _steps, training, pull, force, strength, key, first_replica + i, chunk, step, step + together,
                    W[i], U[i], gram[i], scales[i], room, work,
                )  # fmt: skip
                if reached[i] < step + together:
                    break


@without_reference_counts()
def _coordinates(gram, factor, X):  # type: ignore[no-untyped-def]
    """Write the coordinates of the channels to `X`, and the factor whose last rows they are."""
    factorise(gram, factor)
    d1 = X.shape[1] - X.shape[0]
    for k in range(X.shape[0]):
        for i in range(X.shape[1]):
            X[k, i] = factor[d1 + k, i]


@without_reference_counts()
def _steps(  # type: ignore[no-untyped-def]
    training, pull, force, strength, key, replica, chunk, first, end, W, U, gram, scales, room, work
):
    """Steps `first` to `end` - 1; their numbers are among those that begin with step `chunk`."""
    for step in range(first, end):
        _coordinates(gram, work.factor, work.X)
        call(add_batch, training, key, replica, step, step - chunk, work.X, room)
        _draw_vectors(key, replica, step, room.outside, scales, W, U, work.vectors, work.of_vectors)
        _find_basis(work.X, work.basis)
        tau, share = training.rates[0], training.rates[1]
        shrink = 1.0 - tau * (share * pull) / training.dimension
        rate = tau / (training.batch_size * training.dimension)
        _combine(training.dimension, shrink, rate, room.inside, room.outside, work)
        of_force = -tau * (share * strength) / training.dimension
        _move(W, U, force, of_force, scales, gram, work)
        if not _normalise(training.dimension, gram, scales):
            return step
    return end


@without_reference_counts()
def _draw_vectors(key, replica, step, outside, scales, W, U, vectors, products):  # type: ignore[no-untyped-def]
    """Draw the vectors of a step, those that S needs, and their products with features and weights."""
    (channels, N), d1 = W.shape, U.shape[0]
    for r in range(channels):
        for i in range(d1 + channels):
            products[r, i] = 0.0
        if outside[r, r] == 0.0:
            continue
        for low in range(0, vectors.shape[1], BLOCK):
            high = min(low + BLOCK, vectors.shape[1])
            place = (step * channels + r) * vectors.shape[1] + low
            call(fill_normals, key, replica, VECTOR, place, vectors[r, low:high])
            high = min(high, N)
            for f in range(d1):
                products[r, f] += dot(U[f, low:high], vectors[r, low:high])
            for k in range(channels):
                products[r, d1 + k] += scales[k] * dot(W[k, low:high], vectors[r, low:high])


@without_reference_counts()
def _find_basis(X, basis):  # type: ignore[no-untyped-def]
    """Solve w_k = U q_k + sqrt(N) sum_j L_kj p_j for the orthonormal p_j."""
    channels, d1 = X.shape[0], X.shape[1] - X.shape[0]
    for j in range(channels):
        diagonal = X[j, d1 + j]
        for i in range(X.shape[1]):
            if diagonal == 0.0:
                basis[j, i] = 0.0
                continue
            rest = -X[j, i] if i < d1 else 0.0
            if i == d1 + j:
                rest = 1.0
            for k in range(j):
                rest -= X[j, d1 + k] * basis[k, i]
            basis[j, i] = rest / diagonal


@without_reference_counts()
def _combine(N, shrink, rate, inside, outside, work):  # type: ignore[no-untyped-def]
    """Write the new weights as sums of features, weights and vectors of normals; the vectors less their projections."""
    basis, of_vectors, coefficients = work.basis, work.of_vectors, work.coefficients
    (channels, size), root = inside.shape, math.sqrt(N)
    d1 = size - channels
    for k in range(channels):
        for i in range(size + channels):
            coefficients[k, i] = 0.0
        coefficients[k, d1 + k] = shrink
        for j in range(channels):
            along = inside[k, d1 + j]
            for r in range(k + 1):
                along -= outside[k, r] * dot(basis[j], of_vectors[r]) / root
            add(coefficients[k, :size], rate * along, basis[j])
        for f in range(d1):
            along = inside[k, f]
            for r in range(k + 1):
                along -= outside[k, r] * of_vectors[r, f] / root
            coefficients[k, f] += rate * along
        for r in range(k + 1):
            coefficients[k, size + r] = rate * root * outside[k, r]


@without_reference_counts()
def _move(W, U, force, of_force, scales, gram, work):  # type: ignore[no-untyped-def]
    """Replace the weights by the sums of `work.coefficients` and the force; their new products are N times `gram`."""
    (channels, N), d1 = W.shape, U.shape[0]
    before, coefficients, vectors = work.block, work.coefficients, work.vectors
    for k in range(channels):
        for i in range(d1 + k + 1):
            gram[d1 + k, i] = 0.0
    for low in range(0, N, BLOCK):
        high = min(low + BLOCK, N)
        for k in range(channels):
            scale(W[k, low:high], scales[k], before[k, : high - low])
        for k in range(channels):
            part = W[k, low:high]
            scale(before[k], coefficients[k, d1 + k], part)
            for j in range(channels):
                if j != k:
                    add(part, coefficients[k, d1 + j], before[j])
            for f in range(d1):
                add(part, coefficients[k, f], U[f, low:high])
            for r in range(channels):
                if coefficients[k, d1 + channels + r] != 0.0:
                    add(part, coefficients[k, d1 + channels + r], vectors[r, low:high])
            if force != 0:
                call_loop(force, before[k, : high - low], work.force)
                add(part, of_force, work.force)
            for f in range(d1):
                gram[d1 + k, f] += dot(part, U[f, low:high])
            for j in range(k + 1):
                gram[d1 + k, d1 + j] += dot(part, W[j, low:high])


@without_reference_counts()
def _normalise(N, gram, scales):  # type: ignore[no-untyped-def]
    """Write the factors that bring the channels back to the sphere, and products of what they then are divided by N.

    False if the weights are no longer finite.
    """
    channels, d1 = scales.size, gram.shape[0] - scales.size
    for k in range(channels):
        scales[k] = math.sqrt(N / gram[d1 + k, d1 + k])
        if not (scales[k] > 0.0 and math.isfinite(scales[k])):
            return False
    for k in range(channels):
        for f in range(d1):
            gram[d1 + k, f] *= scales[k] / N
        for j in range(k + 1):
            gram[d1 + k, d1 + j] *= scales[k] * scales[j] / N
    return True
