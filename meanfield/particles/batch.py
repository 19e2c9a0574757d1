"""The batch of one SGD step, seen from the span of features and weights (theory.md, section 3).

Write w = U q + sqrt(N) s p with a unit vector p orthogonal to the features, so that |q|^2 + s^2 = 1. A sample enters
the outputs through its hidden variables c, its component e along p, and the noises zeta_l along w/sqrt(N) alone:
z_l = c.q + s e + zeta_l. What the batch adds to the weights, sum_b (alpha_b x1_b + beta_b x2_b), has known components
in the span of U and p, but for noise orthogonal to w whose variance the batch decides; orthogonally to the span it is
one Gaussian vector, of variance S per coordinate. All of this is exact at finite N.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from meanfield.closures.closure import CENTERINGS
from meanfield.closures.expectation import mean_outputs
from meanfield.particles.draws import HiddenDraws, draw_hidden, hidden_draws
from meanfield.particles.streams import NORMALS, UNIFORMS, fill_normals, fill_uniforms
from meanfield.problem import Problem
from meanfield.scalar_functions import call_loop, compile_loop
from meanfield.typing import FloatArray

POPULATION, BATCH = CENTERINGS["population"], CENTERINGS["batch"]

BUFFERED = 1024
"""Numbers that are drawn at once, at least: enough to vectorise, few enough for the first-level cache."""


class Training(NamedTuple):
    """What compiled code needs to know of a problem to take a step of SGD.

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
    # for each sample its hidden variables, e, zeta1 and zeta2; then the noise orthogonal to w
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
    """How many steps' numbers are drawn at a time."""
    return max(1, BUFFERED // (training.normals + training.uniforms))


@numba.njit(inline="always", error_model="numpy")
def steps_together(training, steps):  # type: ignore[no-untyped-def]
    """How many of `steps` steps need no new population means, which cannot be taken where arrays are borrowed."""
    return 1 if training.centering == POPULATION else steps


@numba.njit(cache=True, nogil=True, error_model="numpy")
def numbers_for(training, steps):  # type: ignore[no-untyped-def]
    """Room for the numbers of `steps` steps."""
    return np.empty(steps * training.normals), np.empty(steps * training.uniforms)


@numba.njit(inline="always", error_model="numpy")
def draw_numbers(training, key, replica, first, steps, numbers):  # type: ignore[no-untyped-def]
    """Draw the numbers of steps `first`, `first` + 1, ..."""
    normals, uniforms = numbers
    fill_normals(key, replica, NORMALS, first * training.normals, normals[: steps * training.normals])
    fill_uniforms(key, replica, UNIFORMS, first * training.uniforms, uniforms[: steps * training.uniforms])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def room_for(training):  # type: ignore[no-untyped-def]
    """Working space for `add_batch`: c, and e, zeta_l, z_l, y_l = sigma(z_l) and sigma'(z_l) of all samples."""
    m = training.batch_size
    e, zeta1, zeta2 = np.empty(m), np.empty(m), np.empty(m)
    z1, z2, y1, y2, slope1, slope2 = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    return np.empty((m, training.hidden.mean.shape[1])), (e, zeta1, zeta2, z1, z2, y1, y2, slope1, slope2)


@numba.njit(inline="always", error_model="numpy")
def population_means(centering, expectation, q):  # type: ignore[no-untyped-def]
    """What population centring takes off the two outputs; nothing for other centrings."""
    if centering == POPULATION:
        return mean_outputs(expectation, q)
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
    """The first of the rejections' slots that belong to a step: one per group and sample, and one more."""
    return step * (training.batch_size * training.hidden.box.size + 1)


@numba.njit(inline="always", error_model="numpy")
def add_batch(training, key, replica, step, place, q, s, means, numbers, room, inside):  # type: ignore[no-untyped-def]
    """Draw a batch and sum up what it adds to the weights.

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
    c, (e, zeta1, zeta2, z1, z2, y1, y2, slope1, slope2) = room
    _draw_samples(training, key, replica, step, place, q, s, numbers, room)
    call_loop(training.value, z1, y1)
    call_loop(training.derivative, z1, slope1)
    if training.noisy:
        call_loop(training.value, z2, y2)
        call_loop(training.derivative, z2, slope2)
    mean1, mean2 = means
    if training.centering == BATCH:
        mean1 = y1.mean()
        mean2 = y2.mean() if training.noisy else mean1
    inside[:] = 0.0
    along = clean = own = 0.0
    for b in range(m):
        if training.noisy:
            alpha, beta = (y2[b] - mean2) * slope1[b], (y1[b] - mean1) * slope2[b]
            along += alpha * zeta1[b] + beta * zeta2[b]
            v = training.noise
            own += alpha * alpha * v[0, 0] + 2.0 * alpha * beta * v[0, 1] + beta * beta * v[1, 1]
        else:
            alpha = beta = (y1[b] - mean1) * slope1[b]
        both = alpha + beta
        for k in range(d1):
            inside[k] += both * c[b, k]
        inside[d1] += both * e[b]
        clean += both * both
    if training.noisy:
        own = max(own, 0.0)  # opposite views may leave -1e-17
        noise = numbers[0][place * training.normals + training.spare_normal - d1 :]
        _add_noise(q, s, along, math.sqrt(own), noise, inside)
    return clean + own


@numba.njit(inline="always", error_model="numpy")
def _draw_samples(training, key, replica, step, place, q, s, numbers, room):  # type: ignore[no-untyped-def]
    """Fill in c, e, zeta_l and z_l of all samples."""
    m, d1 = training.batch_size, q.size
    hidden = training.hidden
    groups, width, wide = hidden.box.size, hidden.uniforms[-1], hidden.normals[-1]
    each = 1 + wide + (2 if training.noisy else 0)
    normals, uniforms = numbers[0][place * training.normals :], numbers[1][place * training.uniforms :]
    slot = first_slot(training, step)
    l11, l21, l22 = training.noise_factor[0, 0], training.noise_factor[1, 0], training.noise_factor[1, 1]
    c, (e, zeta1, zeta2, z1, z2, _, _, _, _) = room
    for b in range(m):
        n = b * each
        draw_hidden(hidden, key, replica, slot + b * groups, uniforms[b * width :], normals[n:], c[b])
        n += wide
        e[b] = normals[n]
        z = s * e[b]
        for k in range(d1):
            z += c[b, k] * q[k]
        z1[b] = z
        if training.noisy:
            zeta1[b] = l11 * normals[n + 1]
            zeta2[b] = l21 * normals[n + 1] + l22 * normals[n + 2]
            z1[b], z2[b] = z + zeta1[b], z + zeta2[b]


@numba.njit(inline="always", error_model="numpy")
def _add_noise(q, s, along, deviation, normals, inside):  # type: ignore[no-untyped-def]
    """Add the noise's components in the span: `along` the weights (q, s), and a Gaussian orthogonal to them.

    The reflection that takes the last axis to -(q, s) takes the other axes to an orthonormal basis of its complement.
    """
    d1 = q.size
    dot = 0.0
    for k in range(d1):
        dot += q[k] * normals[k]
    for k in range(d1):
        inside[k] += along * q[k] + deviation * (normals[k] - q[k] * dot / (1.0 + s))
    inside[d1] += along * s - deviation * dot
