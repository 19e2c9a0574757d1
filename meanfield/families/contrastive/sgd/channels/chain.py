"""SGD of several channels as a Markov chain of their overlaps, for linear phi: any N at the cost of a few numbers.

What a batch adds orthogonally to features and weights is Gaussian in N - d1 - d2 dimensions, and under a linear phi it
enters through the products of the channels' parts alone: a Wishart matrix. The chain of the coordinates X has the law
of plain SGD at every N (several_channels.md, section 4). It never subtracts q^T q from M, so that it resolves
channels that are nearly equal, or nearly in the span of the features.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.ensembles.gamma_variables import chi_squared
from meanfield.families.contrastive.sgd.channels.batch import add_batch, find_means
from meanfield.families.contrastive.sgd.training import Training, draw_numbers, first_slot, steps_together
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.triangular import factorise_products
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray


def work_for(training: Training) -> tuple[FloatArray, FloatArray]:
    """Working arrays of a step of the chain besides those of a batch: coordinates to be factorised, and a factor."""
    d2 = training.channels
    return np.empty((d2, 2 * d2)), np.empty((d2, d2))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def chain_steps(training, outputs, pull, key, first_replica, first, steps, X, reached, room, work):  # type: ignore[no-untyped-def]
    """Take steps `first`, `first` + 1, ... of several replicas, changing their states in place.

    Parameters
    ----------
    training, outputs, pull, key, first_replica, first, steps, reached
        See `meanfield.families.contrastive.sgd.chain.chain_steps`.
    X : ndarray, shape (replicas, d2, d1 + d2)
        Coordinates of the channels.
    room : Room
    work : tuple of ndarray
        From `work_for`.
    """
    some = room.normals.size // training.normals
    for i in range(X.shape[0]):
        for chunk in range(first, first + steps, some):
            if reached[i] < chunk:
                break
            last = min(chunk + some, first + steps)
            draw_numbers(training, key, first_replica + i, chunk, last - chunk, (room.normals, room.uniforms))
            together = steps_together(training, last - chunk)
            for step in range(chunk, last, together):
                call(find_means, training, outputs, X[i], room.means)
                reached[i] = call(
                    _steps, training, pull, key, first_replica + i, chunk, step, step + together, X[i], room, work,
                )  # fmt: skip
                if reached[i] < step + together:
                    break


@without_reference_counts()
def _steps(training, pull, key, replica, chunk, first, end, X, room, work):  # type: ignore[no-untyped-def]
    """Steps `first` to `end` - 1; their numbers are among those that begin with step `chunk`."""
    for step in range(first, end):
        call(add_batch, training, key, replica, step, step - chunk, X, room)
        if not _move(training, pull, key, replica, step, step - chunk, X, room, work):
            return step
    return end


@without_reference_counts(inline="always")
def _move(training, pull, key, replica, step, place, X, room, work):  # type: ignore[no-untyped-def]
    """Add a batch to the coordinates, and go back to the sphere; false if they are not finite."""
    (parts, factor), inside = work, room.inside
    channels, d1 = X.shape[0], X.shape[1] - X.shape[0]
    tau, strength = training.rates[0], training.rates[1]
    rate = tau / (training.batch_size * training.dimension)
    shrink = 1.0 - tau * (strength * pull) / training.dimension
    _draw_outside(training, key, replica, step, place, X.shape[1], room, factor)
    for k in range(channels):
        for j in range(channels):
            parts[k, j] = shrink * X[k, d1 + j] + rate * inside[k, d1 + j]
            parts[k, channels + j] = rate * factor[k, j]
    factorise_products(parts, factor)
    for k in range(channels):
        length = 0.0
        for i in range(d1):
            X[k, i] = shrink * X[k, i] + rate * inside[k, i]
            length += X[k, i] * X[k, i]
        for j in range(k + 1):
            X[k, d1 + j] = factor[k, j]
            length += factor[k, j] * factor[k, j]
        scale = 1.0 / math.sqrt(length)
        if not (scale > 0.0 and math.isfinite(scale)):  # also where the length is not finite
            return False
        for i in range(d1 + k + 1):
            X[k, i] *= scale
    return True


@without_reference_counts(inline="always")
def _draw_outside(training, key, replica, step, place, coordinates, room, out):  # type: ignore[no-untyped-def]
    """Draw a lower triangular matrix whose products have the Wishart law of what a batch adds outside of the span.

    With S = L L^T these are the rows of L T, where T is lower triangular with independent entries: normals, and roots
    of chi-squared variables on the diagonal (Bartlett's decomposition).
    """
    outside, channels = room.outside, room.outside.shape[0]
    normal, uniform = (
        place * training.normals + training.spare_normal,
        place * training.uniforms + training.spare_uniform,
    )
    slot = first_slot(training, step + 1) - channels
    for i in range(channels):
        degrees = training.dimension - coordinates - i
        squared = chi_squared(degrees, room.normals[normal], room.uniforms[uniform + i], key, replica, slot + i)
        for k in range(i):
            out[k, i] = 0.0
        for k in range(i, channels):
            out[k, i] = outside[k, i] * math.sqrt(squared)
        for j in range(i + 1, channels):
            for k in range(j, channels):
                out[k, i] += outside[k, j] * room.normals[normal + j - i]
        normal += channels - i
