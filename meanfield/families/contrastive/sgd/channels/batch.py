"""Batch of a step of several channels, in the span of features and weights (several_channels.md, section 4).

Write w_k = U q_k + sqrt(N) sum_j L_kj p_j with orthonormal p_j, orthogonal to the features, and a lower triangular L.
Row k of the matrix X = (q^T, L) then has the d1 + d2 coordinates of channel k along U/sqrt(N) and the p_j, and X X^T is
the overlap M of the channels. A sample enters the outputs through the same coordinates x_l of its views alone: hidden
variables c and a normal number for each p_j, with noise on all of them, so that z_l = X x_l holds exactly at finite N.
What a batch adds to the weights, sum_b (alpha_b x1_b + beta_b x2_b), has known coordinates in the span; orthogonally to
it, it is Gaussian with the covariance S between channels, the same for each coordinate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.ensembles.hidden_variables import draw_hidden
from meanfield.families.contrastive.closures.outputs import mean_outputs
from meanfield.families.contrastive.sgd.training import BATCH, BUFFERED, POPULATION, Training, enter_step, first_slot
from meanfield.numerics.compiled.array_operations import dot
from meanfield.numerics.compiled.scalar_functions import call_loop, call_scalar
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.triangular import factorise_products
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray


class Room(NamedTuple):
    """Working arrays of a step, for compiled code; `views` is 1 where both views are the sample itself.

    Parameters
    ----------
    normals, uniforms : ndarray
        Random numbers of some steps.
    chosen : ndarray of int, shape (m,)
    c : ndarray, shape (d1, m)
        Hidden variables.
    x : ndarray, shape (views, d1 + d2, m)
        Coordinates of the samples.
    z, y, slope : ndarray, shape (views, d2, m)
        Projections, centred outputs, and sigma'(z).
    means : ndarray, shape (2, d2)
        What population centring subtracts.
    coupling : ndarray, shape (d2, d2)
        A = -dF/dC, where C is the covariance of outputs.
    gains : ndarray, shape (2, d2, m)
        alpha and beta.
    spreads : ndarray, shape (d2, views m)
        Vectors, one for each channel, whose products are S.
    inside : ndarray, shape (d2, d1 + d2)
        What the batch adds in the span.
    outside : ndarray, shape (d2, d2)
        Lower triangular factor of S.
    """

    normals: FloatArray
    uniforms: FloatArray
    chosen: IntArray
    c: FloatArray
    x: FloatArray
    z: FloatArray
    y: FloatArray
    slope: FloatArray
    means: FloatArray
    coupling: FloatArray
    gains: FloatArray
    spreads: FloatArray
    inside: FloatArray
    outside: FloatArray


def room_for(training: Training) -> Room:
    """Working arrays for a training."""
    m, d1, d2, views = training.batch_size, training.hidden.mean.shape[1], training.channels, 1 + training.noisy
    steps = max(1, BUFFERED // (training.normals + training.uniforms))
    return Room(
        np.empty(steps * training.normals),
        np.empty(steps * training.uniforms),
        np.empty(m, np.int64),
        np.empty((d1, m)),
        np.empty((views, d1 + d2, m)),
        np.empty((views, d2, m)),
        np.empty((views, d2, m)),
        np.empty((views, d2, m)),
        np.zeros((2, d2)),
        np.empty((d2, d2)),
        np.empty((2, d2, m)),
        np.empty((d2, views * m)),
        np.empty((d2, d1 + d2)),
        np.empty((d2, d2)),
    )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def find_means(training, outputs, X, means):  # type: ignore[no-untyped-def]
    """Write the means that population centring subtracts to `means`; nothing for other centrings."""
    if training.centering == POPULATION:
        d1 = X.shape[1] - X.shape[0]
        for k in range(X.shape[0]):
            means[0, k], means[1, k] = call(mean_outputs, outputs, X[k, :d1])


@without_reference_counts()
def add_batch(training, key, replica, step, place, X, room):  # type: ignore[no-untyped-def]
    """Draw the batch of a step, whose numbers the training gets; `room.inside` and `room.outside` are what it adds.

    Parameters
    ----------
    training : Training
    key, replica, step
        Address of the numbers that rejections ask for.
    place : int
        Where the numbers of this step are among those of the room, counted in steps.
    X : ndarray, shape (d2, d1 + d2)
        Coordinates of the channels.
    room : Room
    """
    enter_step(training, step)
    normals, uniforms = room.normals[place * training.normals :], room.uniforms[place * training.uniforms :]
    draw_hidden(training.hidden, key, replica, first_slot(training, step), uniforms, normals, room.chosen, room.c)
    _draw_views(training, normals[training.batch_size * training.hidden.normals[-1] :], room.c, room.x)
    _project(X, room.x, room.z)
    call_loop(training.value, room.z, room.y)
    call_loop(training.derivative, room.z, room.slope)
    _centre(training.centering, room.means, room.y)
    _couple(training.rates[2], training.penalty, room.y, room.coupling)
    _weigh(room.coupling, room.y, room.slope, room.gains)
    _add_up(training.view_factor, room.gains, room.x, room.spreads, room.inside)
    factorise_products(room.spreads, room.outside)


@without_reference_counts(inline="always")
def _draw_views(training, normals, c, x):  # type: ignore[no-untyped-def]
    """Coordinates of the views: hidden variables with noise, then those beyond the features."""
    (d1, m), (views, coordinates, _) = c.shape, x.shape
    noise, view = training.noise_factor, training.view_factor
    place = 0
    for i in range(d1, coordinates):
        for b in range(m):
            x[0, i, b] = view[0, 0] * normals[place + b]
        if views > 1:
            for b in range(m):
                x[1, i, b] = view[1, 0] * normals[place + b] + view[1, 1] * normals[place + m + b]
        place += views * m
    for i in range(d1):
        if views == 1:
            for b in range(m):
                x[0, i, b] = c[i, b]
            continue
        for b in range(m):
            x[0, i, b] = c[i, b] + noise[0, 0] * normals[place + b]
        for b in range(m):
            x[1, i, b] = c[i, b] + noise[1, 0] * normals[place + b] + noise[1, 1] * normals[place + m + b]
        place += 2 * m


@without_reference_counts(inline="always")
def _project(X, x, z):  # type: ignore[no-untyped-def]
    """Projections z_l = X x_l."""
    views, channels, m = z.shape
    for view in range(views):
        for k in range(channels):
            for b in range(m):
                z[view, k, b] = 0.0
            for i in range(x.shape[1]):
                for b in range(m):
                    z[view, k, b] += X[k, i] * x[view, i, b]


@without_reference_counts(inline="always")
def _centre(centering, means, y):  # type: ignore[no-untyped-def]
    """Subtract from the outputs what centring asks for."""
    views, channels, m = y.shape
    for view in range(views):
        for k in range(channels):
            mean = means[view, k]
            if centering == BATCH:
                mean = 0.0
                for b in range(m):
                    mean += y[view, k, b] / m
            for b in range(m):
                y[view, k, b] -= mean


@without_reference_counts(inline="always")
def _couple(strength, penalty, y, coupling):  # type: ignore[no-untyped-def]
    """A_kk = 1, and A_kj = -lambda psi'(C_kj) with C_kj = (1/m) sum_b y1_kb y2_jb."""
    _, channels, m = y.shape
    for k in range(channels):
        for j in range(channels):
            if k == j or strength == 0.0:
                coupling[k, j] = 1.0 if k == j else 0.0
                continue
            covariance = 0.0
            for b in range(m):
                covariance += y[0, k, b] * y[-1, j, b]
            coupling[k, j] = -strength * call_scalar(penalty, covariance / m)


@without_reference_counts(inline="always")
def _weigh(coupling, y, slope, gains):  # type: ignore[no-untyped-def]
    """Gains alpha_k = sigma'(z1_k) sum_j A_kj y2_j and beta_k = sigma'(z2_k) sum_j A_jk y1_j."""
    _, channels, m = y.shape
    for k in range(channels):
        for b in range(m):
            gains[0, k, b] = 0.0
            gains[1, k, b] = 0.0
        for j in range(channels):
            for b in range(m):
                gains[0, k, b] += coupling[k, j] * y[-1, j, b]
            for b in range(m):
                gains[1, k, b] += coupling[j, k] * y[0, j, b]
        for b in range(m):
            gains[0, k, b] *= slope[0, k, b]
        for b in range(m):
            gains[1, k, b] *= slope[-1, k, b]


@without_reference_counts(inline="always")
def _add_up(factor, gains, x, spreads, inside):  # type: ignore[no-untyped-def]
    """Sums over the batch: of the coordinates with their gains, and vectors whose products are S."""
    _, channels, m = gains.shape
    views = x.shape[0]
    for k in range(channels):
        for b in range(m):
            spreads[k, b] = factor[0, 0] * gains[0, k, b] + factor[1, 0] * gains[1, k, b]
        if views > 1:
            for b in range(m):
                spreads[k, m + b] = factor[1, 1] * gains[1, k, b]
        for i in range(x.shape[1]):
            inside[k, i] = dot(gains[0, k], x[0, i]) + dot(gains[1, k], x[-1, i])
