"""Batch of one SGD step of one channel, projected on the span of features and weights (theory.md, section 3).

Write w = U q + sqrt(N) s p with a unit vector p orthogonal to the features, so that |q|^2 + s^2 = 1. A sample enters
the outputs through its hidden variables c, its component e along p, and the noises zeta_l along w/sqrt(N) alone:
z_l = c.q + s e + zeta_l. What the batch adds to the weights, sum_b (alpha_b x1_b + beta_b x2_b), has known components
in the span of U and p, but for noise orthogonal to w whose variance the batch decides; orthogonally to the span it is
one Gaussian vector, of variance S per coordinate. All of this is exact at finite N.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.ensembles.hidden_variables import draw_hidden
from meanfield.families.contrastive.closures.outputs import mean_outputs
from meanfield.families.contrastive.sgd.training import BATCH, POPULATION, enter_step, first_slot
from meanfield.numerics.compiled.array_operations import add, dot, scale
from meanfield.numerics.compiled.scalar_functions import call_loop
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba


@numba.njit(cache=True, nogil=True, error_model="numpy")
def numbers_for(training, steps):  # type: ignore[no-untyped-def]
    """Empty arrays for the random numbers of `steps` steps."""
    return np.empty(steps * training.normals), np.empty(steps * training.uniforms)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def room_for(training):  # type: ignore[no-untyped-def]
    """Working arrays of `add_batch`: c, zeta, z, y = sigma(z), sigma'(z), (alpha, beta), and their sum."""
    m, views = training.batch_size, 2 if training.noisy else 1
    c, zeta = np.empty((training.hidden.mean.shape[1], m)), np.empty((2, m))
    z, y, slope = np.empty((views, m)), np.empty((views, m)), np.empty((views, m))
    return np.empty(m, np.int64), c, zeta, z, y, slope, np.empty((2, m)), np.empty(m)


@numba.njit(inline="always", error_model="numpy")
def population_means(centering, outputs, q):  # type: ignore[no-untyped-def]
    """Population means that population centring subtracts from the two outputs; 0 for other centrings."""
    if centering == POPULATION:
        return call(mean_outputs, outputs, q)
    return 0.0, 0.0


@numba.njit(inline="always", error_model="numpy")
def squared(q):  # type: ignore[no-untyped-def]
    """|q|^2."""
    total = 0.0
    for k in range(q.size):
        total += q[k] * q[k]
    return total


@numba.njit(inline="always", error_model="numpy")
def add_batch(training, key, replica, step, place, q, s, means, numbers, room, inside):  # type: ignore[no-untyped-def]
    """Draw the batch of a step, whose numbers the training gets, and add its contribution to the weights.

    Parameters
    ----------
    training : Training
    key, replica, step
        Address of the numbers that rejections ask for.
    place : int
        Where the numbers of this step are among `numbers`, counted in steps.
    q : ndarray, shape (d1,)
    s : float
        sqrt(1 - |q|^2).
    means : tuple of float
        From `population_means`.
    numbers, room
        From `draw_numbers` and `room_for`.
    inside : ndarray, shape (d1 + 1,)
        Receives the components of sum_b (alpha_b x1_b + beta_b x2_b) along U_k/sqrt(N) and along p.

    Returns
    -------
    float
        S, the variance of its other components.
    """
    enter_step(training, step)
    m, d1 = training.batch_size, q.size
    chosen, c, zeta, z, y, slope, gains, both = room
    normals, uniforms = numbers[0][place * training.normals :], numbers[1][place * training.uniforms :]
    draw_hidden(training.hidden, key, replica, first_slot(training, step), uniforms, normals, chosen, c)
    e = normals[m * training.hidden.normals[-1] :]  # and behind it the numbers of the noise
    _project(c, q, e, s, z[0])
    if training.noisy:
        _add_views(training.noise_factor, e[m:], e[2 * m :], zeta, z)
    call_loop(training.value, z, y)
    call_loop(training.derivative, z, slope)
    if training.centering == BATCH:
        means = y[0].mean(), y[-1].mean()
    _weigh(y, means, slope, gains, both)
    for k in range(d1):
        inside[k] = dot(both, c[k])
    inside[d1] = dot(both, e)
    S = dot(both, both)
    if training.noisy:
        alpha, beta, v = gains[0], gains[1], training.noise
        own = v[0, 0] * dot(alpha, alpha) + 2.0 * v[0, 1] * dot(alpha, beta) + v[1, 1] * dot(beta, beta)
        own = max(own, 0.0)  # opposite views may leave -1e-17
        along = dot(alpha, zeta[0]) + dot(beta, zeta[1])
        _add_noise(q, s, along, math.sqrt(own), e[3 * m :], inside)
        S += own
    return S


@numba.njit(inline="always", error_model="numpy")
def _project(c, q, e, s, z):  # type: ignore[no-untyped-def]
    """Projections z = c.q + s e, which all views of a sample share."""
    scale(e, s, z)
    for k in range(q.size):
        add(z, q[k], c[k])


@numba.njit(inline="always", error_model="numpy")
def _add_views(factor, first, second, zeta, z):  # type: ignore[no-untyped-def]
    """Draw the noises zeta_l, and replace z_1, which holds the part common to both views, by z_1 and z_2."""
    l11, l21, l22 = factor[0, 0], factor[1, 0], factor[1, 1]
    for b in range(zeta.shape[1]):  # short loops vectorise, and one with all of it does not
        zeta[0, b] = l11 * first[b]
    for b in range(zeta.shape[1]):
        zeta[1, b] = l21 * first[b] + l22 * second[b]
    for b in range(zeta.shape[1]):
        z[1, b] = z[0, b] + zeta[1, b]
    for b in range(zeta.shape[1]):
        z[0, b] += zeta[0, b]


@numba.njit(inline="always", error_model="numpy")
def _weigh(y, means, slope, gains, both):  # type: ignore[no-untyped-def]
    """Gains alpha = (y_2 - mean_2) sigma'(z_1), beta = (y_1 - mean_1) sigma'(z_2), and their sum."""
    for b in range(both.size):
        gains[0, b] = (y[-1, b] - means[1]) * slope[0, b]
    for b in range(both.size):
        gains[1, b] = (y[0, b] - means[0]) * slope[-1, b]
    for b in range(both.size):
        both[b] = gains[0, b] + gains[1, b]


@numba.njit(inline="always", error_model="numpy")
def _add_noise(q, s, along, deviation, normals, inside):  # type: ignore[no-untyped-def]
    """Add the components of the noise in the span: `along` the weights (q, s), and a Gaussian orthogonal to them.

    The reflection that takes the last axis to -(q, s) takes the other axes to an orthonormal basis of its complement.
    """
    d1 = q.size
    dot = 0.0
    for k in range(d1):
        dot += q[k] * normals[k]
    for k in range(d1):
        inside[k] += along * q[k] + deviation * (normals[k] - q[k] * dot / (1.0 + s))
    inside[d1] += along * s - deviation * dot
