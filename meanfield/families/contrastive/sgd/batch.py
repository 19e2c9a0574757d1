"""Batch of one SGD step, projected on the span of features and weights (theory.md, section 3).

Write w = U q + sqrt(N) s p with a unit vector p orthogonal to the features, so that |q|^2 + s^2 = 1. A sample enters
the outputs through its hidden variables c, its component e along p, and the noises zeta_l along w/sqrt(N) alone:
z_l = c.q + s e + zeta_l. What the batch adds to the weights, sum_b (alpha_b x1_b + beta_b x2_b), has known components
in the span of U and p, but for noise orthogonal to w whose variance the batch decides; orthogonally to the span it is
one Gaussian vector, of variance S per coordinate. All of this is exact at finite N.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.ensembles.streams import NORMALS, UNIFORMS, fill_normals, fill_uniforms
from meanfield.families.contrastive.closures.closure import CENTERINGS
from meanfield.families.contrastive.closures.outputs import mean_outputs
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.draws import HiddenDraws, draw_hidden, hidden_draws
from meanfield.numerics.compiled.array_operations import add, dot, scale
from meanfield.numerics.compiled.scalar_functions import call_loop, compile_loop
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

POPULATION, BATCH = CENTERINGS["population"], CENTERINGS["batch"]

BUFFERED = 1024
"""Least number of random numbers that are drawn at once: enough to vectorise, few enough for the first-level cache."""


class Training(NamedTuple):
    """Parameters of a problem that compiled code needs to take a step of SGD.

    Parameters
    ----------
    dimension, batch_size : int
        N and m.
    learning_rate : float
    value, derivative : int
        Addresses of the loops of sigma and sigma'.
    centering : int
        A value of `CENTERINGS`.
    hidden : HiddenDraws
    noisy : bool
        Whether the views differ from the sample.
    noise_factor, noise : ndarray, shape (2, 2)
        V and its lower triangular factor.
    normals, uniforms : int
        Numbers that one step takes from either stream, even.
    spare_normal, spare_uniform : int
        Which of them are left to the caller; noise orthogonal to w takes the d1 normals before.
    """

    dimension: int
    batch_size: int
    learning_rate: float
    value: int
    derivative: int
    centering: int
    hidden: HiddenDraws
    noisy: bool
    noise_factor: FloatArray
    noise: FloatArray
    normals: int
    uniforms: int
    spare_normal: int
    spare_uniform: int


def training_of(problem: Problem) -> Training:
    """The training that a problem describes."""
    model, activation = problem.model, problem.model.activation_functions
    draws, noise = hidden_draws(problem.hidden_laws), problem.noise_covariance
    noisy = bool(np.any(noise != 0))
    # one of each kind for every sample: hidden variables, e, and two for zeta_l; then the noise orthogonal to w
    normals = model.batch_size * int(draws.normals[-1] + 1 + 2 * noisy) + noisy * len(problem.features)
    uniforms = model.batch_size * int(draws.uniforms[-1])
    return Training(
        problem.particles.dimension,
        model.batch_size,
        model.learning_rate,
        compile_loop(activation.value),
        compile_loop(activation.slope),
        CENTERINGS[model.centering],
        draws,
        noisy,
        _noise_factor(problem),
        noise,
        _even(normals + 1),
        _even(uniforms + 1),
        normals,
        uniforms,
    )


def _even(count: int) -> int:
    return count + count % 2


def _noise_factor(problem: Problem) -> FloatArray:
    """The lower triangular L with L L^T = V, shape (2, 2); V may be singular."""
    v = problem.noise_covariance
    l11 = np.sqrt(v[0, 0])
    l21 = v[0, 1] / l11 if l11 > 0 else 0.0
    return np.array([[l11, 0.0], [l21, np.sqrt(max(v[1, 1] - l21**2, 0.0))]])


@numba.njit(inline="always", error_model="numpy")
def steps_at_once(training):  # type: ignore[no-untyped-def]
    """Number of steps whose random numbers are drawn at a time."""
    return max(1, BUFFERED // (training.normals + training.uniforms))


@numba.njit(inline="always", error_model="numpy")
def steps_together(training, steps):  # type: ignore[no-untyped-def]
    """Number of `steps` steps without new population means, which need compiled code that counts references."""
    return 1 if training.centering == POPULATION else steps


@numba.njit(cache=True, nogil=True, error_model="numpy")
def numbers_for(training, steps):  # type: ignore[no-untyped-def]
    """Empty arrays for the random numbers of `steps` steps."""
    return np.empty(steps * training.normals), np.empty(steps * training.uniforms)


@numba.njit(inline="always", error_model="numpy")
def draw_numbers(training, key, replica, first, steps, numbers):  # type: ignore[no-untyped-def]
    """Draw the random numbers of steps `first`, `first` + 1, ..."""
    normals, uniforms = numbers
    call(fill_normals, key, replica, NORMALS, first * training.normals, normals[: steps * training.normals])
    call(fill_uniforms, key, replica, UNIFORMS, first * training.uniforms, uniforms[: steps * training.uniforms])


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
def first_slot(training, step):  # type: ignore[no-untyped-def]
    """First of the slots for rejections that belong to a step: one per group and sample, and one more."""
    return step * (training.batch_size * training.hidden.box.size + 1)


@numba.njit(inline="always", error_model="numpy")
def add_batch(training, key, replica, step, place, q, s, means, numbers, room, inside):  # type: ignore[no-untyped-def]
    """Draw a batch, and add its contribution to the weights.

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
