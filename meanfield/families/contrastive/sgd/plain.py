"""Plain SGD, step by step as in theory.md, section 1: the reference for all other steps.

One call of the kernel takes one replica from one output time to the next. It draws whole samples, so a step
costs m N normals (3 m N with augmentation noise); it releases the interpreter lock, so replicas run in parallel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.random import Generator

from meanfield.ensembles.stepper import replica_generator
from meanfield.families.contrastive.closures.outputs import mean_outputs
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.batch import squared
from meanfield.families.contrastive.sgd.training import BATCH, POPULATION, enter_step
from meanfield.ingredients.laws.base import HiddenPart
from meanfield.numerics.compiled.scalar_functions import call_scalar
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba
from meanfield.results.initial_state import seed_of
from meanfield.typing import FloatArray

LawsAt = Callable[[int, int], tuple[HiddenPart, ...]]
"""Function of a step and a number of steps to the hidden laws of these."""

DRAWN_AT_ONCE = 1 << 18
"""Number of hidden variables that plain SGD draws at a time."""

START, NOISE, HIDDEN = range(3)
"""Streams of NumPy's generators that belong to a replica; each group of hidden variables has one, from HIDDEN on."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def sgd_steps(  # type: ignore[no-untyped-def]
    training, outputs, addresses, force, strength, rng, hidden, first_step, level, w, v, U, escape
):
    """Take len(hidden) steps of one-pass SGD, changing `w` and `v` in place.

    Parameters
    ----------
    training : Training
    outputs : MeanOutputs
        Gives the population mean of the outputs.
    addresses : tuple of int
        Addresses of sigma and sigma'.
    force : int
        Address of phi of unit strength.
    strength : float
        Of the prior.
    rng : numpy.random.Generator
        Source of the background a and of the augmentation noise.
    hidden : ndarray, shape (steps, m, d1)
        Hidden variables c of all samples.
    first_step : int
        Its number.
    level : float
        Square of the overlap |q| that counts as escape.
    w : ndarray, shape (N,)
        Weights with |w|^2 = N.
    v : ndarray, shape (N,)
        Velocity, the last step of the weights before they went back to the sphere; empty without momentum.
    U : ndarray, shape (N, d1)
        Features with U^T U = N I.
    escape : ndarray of int, shape (1,)
        Receives the step after which |q|^2 first reached `level`, where it is still negative.

    Returns
    -------
    int
        The step after which w was still finite: first_step + len(hidden) unless it blew up.
    """
    steps, m, d1 = hidden.shape
    N = w.size
    root = math.sqrt(N)
    centering = training.centering
    noisy, noise_factor = training.noisy, training.noise_factor
    value, derivative = addresses
    x1 = np.empty((m, N))
    x2 = np.empty((m, N)) if noisy else x1
    z1 = np.empty(m)
    z2 = np.empty(m)
    y1 = np.empty(m)
    y2 = np.empty(m)
    shift = np.empty(d1)
    q = np.empty(d1)
    change = np.empty(N)
    for step in range(steps):
        enter_step(training, first_step + step)
        for b in range(m):
            # x = U c / sqrt(N) + a with a ~ N(0, 1 - U U^T / N), a projected Gaussian vector
            shift[:] = 0.0
            for i in range(N):
                normal = rng.standard_normal()
                x1[b, i] = normal
                for k in range(d1):
                    shift[k] += U[i, k] * normal
            for k in range(d1):
                shift[k] = hidden[step, b, k] / root - shift[k] / N
            for i in range(N):
                for k in range(d1):
                    x1[b, i] += U[i, k] * shift[k]
            # the two views and their pre-activations
            if noisy:
                for i in range(N):
                    first = rng.standard_normal()
                    second = rng.standard_normal()
                    x2[b, i] = x1[b, i] + noise_factor[1, 0] * first + noise_factor[1, 1] * second
                    x1[b, i] += noise_factor[0, 0] * first
            z1[b] = np.dot(w, x1[b]) / root
            z2[b] = np.dot(w, x2[b]) / root
            y1[b] = call_scalar(value, z1[b])
            y2[b] = call_scalar(value, z2[b])
        mean1 = mean2 = 0.0
        if centering == POPULATION:
            _overlap(U, w, q)
            mean1, mean2 = call(mean_outputs, outputs, q)
        elif centering == BATCH:
            mean1 = y1.mean()
            mean2 = y2.mean()
        # w~ = w + v, v = momentum v + tau/(m sqrt(N)) sum_b (alpha_b x1_b + beta_b x2_b) - (tau/N) phi(w)
        change[:] = 0.0
        for b in range(m):
            alpha = (y2[b] - mean2) * call_scalar(derivative, z1[b])
            beta = (y1[b] - mean1) * call_scalar(derivative, z2[b])
            for i in range(N):
                change[i] += alpha * x1[b, i] + beta * x2[b, i]
        length = 0.0
        learning_rate, share = training.rates[0], training.rates[1]
        for i in range(N):
            pull = share * strength * call_scalar(force, w[i])
            move = learning_rate / (m * root) * change[i] - learning_rate / N * pull
            if v.size > 0:
                v[i] = move = training.momentum * v[i] + move
            w[i] += move
            length += w[i] * w[i]
        # back to the sphere
        scale = root / math.sqrt(length)
        if not (math.isfinite(length) and scale > 0.0):
            return first_step + step
        for i in range(N):
            w[i] *= scale
        if escape[0] < 0 and level < math.inf:
            _overlap(U, w, q)
            if squared(q) >= level:
                escape[0] = first_step + step + 1
    return first_step + steps


@numba.njit(inline="always", error_model="numpy")
def _overlap(U, w, q):  # type: ignore[no-untyped-def]
    """Write U^T w / N to q."""
    for k in range(q.size):
        q[k] = 0.0
        for i in range(w.size):
            q[k] += U[i, k] * w[i] / w.size


def generators_of(problem: Problem, replica: int) -> list[Generator]:
    """Generators of plain SGD: one for each kind of draw, so that none depends on how another is cut into calls."""
    streams = range(NOISE, HIDDEN + len(problem.hidden_laws))
    return [replica_generator(seed_of(problem), replica, stream) for stream in streams]


def hidden_variables(
    problem: Problem, laws_at: LawsAt, generators: list[Generator], first: int, steps: int
) -> Iterator[tuple[int, FloatArray]]:
    """Hidden variables of some steps after another, shape (some, m, d1), with the number of their first step."""
    m = problem.model.batch_size
    piece = max(1, DRAWN_AT_ONCE // (m * len(problem.features)))
    for start in range(first, first + steps, piece):
        size = min(piece, first + steps - start), m
        draws = [law.sample(rng, size) for law, rng in zip(laws_at(start, size[0]), generators, strict=True)]
        yield start, np.concatenate(draws, axis=2)
