"""Covariance S of one step of SGD of the order parameters, by sampling steps in the limit.

A step adds Y/N to the state, with E[Y] = dy/dt. In each eigenspace the input x of a sample has projections of order
sqrt(n) on vectors of n dimensions, jointly Gaussian with the fields, and a squared length without fluctuations.
Source: hidden_manifold.md, section 8.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from meanfield.families.hidden_manifold.order_parameters.fluctuations.spaces import grams_of, spaces_of
from meanfield.families.hidden_manifold.order_parameters.system import State, System, packed, unpacked
from meanfield.families.hidden_manifold.particles.start import root
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.typing import FloatArray


def sampled_steps(problem: Problem, system: System, y: FloatArray, samples: int, numbers: Generator) -> FloatArray:
    """Changes Y of a state in N steps of one sample each, shape (samples, n).

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
    K, M, state, spaces = system.students, system.teachers, unpacked(system, y), spaces_of(system)
    grams, delta = grams_of(system, spaces, state), system.aspect_ratio
    q = numbers.choice(len(system.chance), size=samples, p=system.chance)
    b, s, rest, means = system.slope[q], system.scale[q], system.rest[q], problem_means(problem)
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
    force = delta_y[:, None] * state.v * evaluate(student.slope, own)
    return _changes(system, means, projections, force, delta_y[:, None] * output, b, rest)


def problem_means(problem: Problem) -> FloatArray:
    """Coefficients of the components' means on the teacher's vectors, one row for each of the Gaussians of latents."""
    means = problem.component_means
    if problem.inputs.components_drawn == "sample":
        return means
    return np.asarray([[component.weight for component in problem.inputs.mixture]] @ means)


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
    (eta, eta_v), K, M, spaces = system.rates, system.students, system.teachers, spaces_of(system)
    samples, n = len(force), len(system.rho)
    squares = eta**2 * force[:, :, None] * force[:, None, :]
    r, sigma = np.zeros((samples, n, K, system.t.shape[1])), np.zeros((samples, n, K, K))
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
