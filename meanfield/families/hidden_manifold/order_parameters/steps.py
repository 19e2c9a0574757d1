"""Steps of SGD on hidden manifolds, sampled at a state: what they add to the order parameters, and its covariance.

A step adds Y/N to the state, with E[Y] = dy/dt. In each eigenspace the input x of a sample has projections of order
sqrt(n) on vectors of n dimensions, jointly Gaussian with the fields, and a squared length without fluctuations.
Source: hidden_manifold.md, section 8.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from meanfield.families.hidden_manifold.order_parameters.system import State, System, packed, unpacked
from meanfield.families.hidden_manifold.particles.start import gaussian_means
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.numerics.exact_products import root
from meanfield.typing import FloatArray


def covariance_of_step(system: System, samples: FloatArray, groups: int) -> FloatArray:
    """Covariance of the mean over the samples of a step, by each group of samples, shape (groups, n, n)."""
    samples = samples.reshape(groups, -1, samples.shape[1])
    away = samples - samples.mean(axis=1, keepdims=True)
    return np.asarray(away.swapaxes(1, 2) @ away / (away.shape[1] - 1) / system.training[2])


def sampled_steps(problem: Problem, system: System, y: FloatArray, samples: int, numbers: Generator) -> FloatArray:
    """What samples add to the change Y of a state in N steps, which is their mean over a step, shape (samples, n).

    Components are taken in proportion to their weights, so that samples differ from each other as those of a step do.

    Parameters
    ----------
    problem : Problem
    system : System
        With the eigenvalues themselves as nodes.
    y : ndarray, shape (n,)
    samples : int
    numbers : Generator
    """
    K = system.students
    M = system.teachers
    state = unpacked(system, y)
    spaces = spaces_of(system)
    grams, delta = grams_of(system, spaces, state), system.aspect_ratio
    q = numbers.choice(len(system.chance), size=samples, p=system.chance)
    b = system.slope[q]
    s = system.scale[q]
    rest = system.rest[q]
    means = gaussian_means(problem)[:, :M]
    own, nu = np.zeros((samples, K)), np.zeros((samples, M))
    projections = np.zeros((len(spaces.rho), samples, K + M))
    for j, gram in enumerate(grams):
        factor, size = root(gram), spaces.latents[j] ** 0.5
        latent = s[:, None] * (numbers.standard_normal((samples, K + M)) @ factor)
        latent += size * (means @ gram[K:])[q]
        along = b / s * (spaces.rho[j] / delta) ** 0.5
        noise = numbers.standard_normal((samples, K + M)) @ factor
        projections[j] = along[:, None] * latent + rest[:, None] ** 0.5 * noise
        own += spaces.inputs[j] ** 0.5 * projections[j, :, :K]
        nu += size * latent[:, K:]
    student, teacher = problem.student.activation_functions, problem.teacher.activation_functions
    output = evaluate(student.value, own)
    delta_y = output @ state.v - evaluate(teacher.value, nu) @ system.teacher_weights
    eta, eta_v, _, label_noise, weight_decay = system.training
    if label_noise > 0.0:
        delta_y -= label_noise**0.5 * numbers.standard_normal(samples)
    force = delta_y[:, None] * state.v * evaluate(student.slope, own)
    changes = _changes(system, means, projections, force, delta_y[:, None] * output, b, rest)
    kept = State(eta * state.r, 2.0 * eta * state.sigma, 2.0 * eta * state.Omega, eta_v * state.v)
    return np.asarray(changes - weight_decay * packed(kept))


def _changes(
    system: System,
    means: FloatArray,
    projections: FloatArray,
    force: FloatArray,
    outputs: FloatArray,
    b: FloatArray,
    rest: FloatArray,
) -> FloatArray:
    """Y from projections of inputs on students and teachers, and from what steps multiply them with."""
    eta, eta_v, batch_size, _, _ = system.training
    K = system.students
    M = system.teachers
    spaces = spaces_of(system)
    samples, n = len(force), len(system.rho)
    squares = eta**2 / batch_size * force[:, :, None] * force[:, None, :]
    r = np.zeros((samples, n, K, system.t.shape[1]))
    sigma = np.zeros((samples, n, K, K))
    Omega = np.zeros((samples, K, K))
    columns = np.vstack([np.eye(M), means[system.column >= 0]])
    for j, (rho, share) in enumerate(zip(spaces.rho, spaces.inputs, strict=True)):
        if share == 0.0:
            continue
        moved = -eta / share**0.5 * force[:, :, None] * projections[j, :, None, :]  # per dimension of the space
        length = (b**2 * rho / system.aspect_ratio + rest)[:, None, None] * squares
        own = moved[..., :K] + moved[..., :K].swapaxes(1, 2) + length
        Omega += share * own
        if j < n:
            r[:, j] = rho**0.5 * moved[..., K:] @ columns.T
            sigma[:, j] = rho * own
    return packed(State(r, sigma, Omega, -eta_v * outputs))


class LimitSpaces(NamedTuple):
    """Spaces with inputs or latents: one for each eigenvalue, and last the inputs that the features do not reach.

    Parameters
    ----------
    rho : ndarray, shape (spaces,)
        Eigenvalues, 0 for the last space.
    inputs : ndarray, shape (spaces,)
        Dimensions divided by N, of inputs; 0 of latents that reach no input.
    latents : ndarray, shape (spaces,)
        Dimensions divided by D, of latents; 0 of the last space.
    """

    rho: FloatArray
    inputs: FloatArray
    latents: FloatArray


def spaces_of(system: System) -> LimitSpaces:
    """Spaces of a system whose nodes are the eigenvalues themselves."""
    reached = np.where(system.rho > 0.0, system.aspect_ratio * system.weight, 0.0)
    rest = max(1.0 - reached.sum(), 0.0)
    return LimitSpaces(
        np.append(system.rho, 0.0),
        np.append(reached, rest if rest > 1e-9 else 0.0),  # none, to rounding
        np.append(system.weight, 0.0),
    )


def grams_of(system: System, spaces: LimitSpaces, state: State) -> FloatArray:
    """Products per dimension of students and teachers in each space, shape (spaces, students + teachers, ...)."""
    K = system.students
    M = system.teachers
    n = len(system.rho)
    grams = np.zeros((n + 1, K + M, K + M))
    size = np.where(system.rho > 0.0, system.rho, 1.0)[:, None, None]
    grams[:n, :K, :K] = state.sigma / size
    grams[:n, :K, K:] = state.r[..., :M] / np.sqrt(size)
    grams[:n, K:, :K] = grams[:n, :K, K:].swapaxes(1, 2)
    grams[:n, K:, K:] = system.t[:, :M, :M]
    if spaces.inputs[n] > 0.0:
        rest = state.Omega - np.einsum("j,jkl->kl", spaces.inputs[:n], grams[:n, :K, :K])
        grams[n, :K, :K] = rest / spaces.inputs[n]
    return grams
