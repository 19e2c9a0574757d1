"""The chain of q beside its limit: first corrections in 1/N, and replicas that resolve the error of the mean at any N.

For one feature, sigma(x) = x^2 and no noise on the views. Helps `finite_size.py`, whose first lines say what for.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor, as_completed

import numba
import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.hermite_e import hermegauss
from scipy.integrate import solve_ivp

from meanfield.ensembles.gamma_variables import chi_squared
from meanfield.ensembles.streams import stream_key
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.batch import add_batch, numbers_for, room_for
from meanfield.families.contrastive.sgd.training import draw_numbers, first_slot, steps_at_once, training_of
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.process.progress import progress_bar

Array = np.ndarray

STEPS_AT_ONCE = 10**6
"""Approximate number of steps of one call of compiled code; a replica is not divided."""


def growth_rate(problem: Problem) -> Polynomial:
    """B with b(q) = q B(q^2), for sigma(x) = x^2 and no noise (theory.md, section 8)."""
    tau, m = problem.model.learning_rate, problem.model.batch_size
    probability, values, _ = problem.hidden_laws[0].components(6)
    kappa, nu, beta = probability @ np.hstack([values**4, values**2, values**6]) - [3, 1, 15]
    Q = Polynomial([0, 1])
    sixth = 15 + 45 * nu * Q * (1 - Q) ** 2 + 15 * kappa * Q**2 * (1 - Q) + beta * Q**3
    result: Polynomial = 4 * tau * (1 - Q) * (3 * nu + (kappa - 6 * nu) * Q) - 8 * tau**2 / m * sixth
    return result


def step_expansion(problem: Problem, q: float) -> tuple[float, float, float]:
    """Of N times a step of q: mean b and variance S to leading order, and b_1, N times the next order of the mean.

    With A, A_p = sum_b (alpha_b + beta_b) (c_b, e_b) and S the variance of the rest, a step is
    q <- (q + r A)/sqrt(1 + x), x = 2 r (q A + s A_p) + r^2 (A^2 + A_p^2 + S chi^2_{N-2}), r = tau/(m N).
    """
    m, s = problem.model.batch_size, math.sqrt(1 - q * q)
    rho = problem.model.learning_rate / m
    probability, values, _ = problem.hidden_laws[0].components(6)
    e, weight = hermegauss(10)  # exact up to e^19; S^2 has e^12
    c, e = values, e[None]
    of_sample = 4 * (q * c + s * e) ** 3
    sums = np.stack([of_sample * c, of_sample * e, of_sample**2])  # of one sample: A, A_p, S
    weight = np.outer(probability, weight / weight.sum())
    mean = m * np.einsum("ice,ce->i", sums, weight)
    covariance = m * np.einsum("ice,jce,ce->ij", sums, sums, weight) - np.outer(mean, mean) / m
    second = covariance + np.outer(mean, mean)
    step = np.array([rho * (1 - q * q), -rho * q * s, -0.5 * rho**2 * q])
    x = np.array([2 * rho * q, 2 * rho * s, rho**2])
    squares = second[0, 0] + second[1, 1] - 2 * mean[2]
    next_order = q * (0.375 * x @ second @ x - 0.5 * rho**2 * squares) - 0.5 * rho * x @ second[0]
    return step @ mean, step @ covariance @ step, next_order


def solve_corrections(problem: Problem) -> tuple[float, float, float]:
    """q, C and beta at the final time: E[q_N] = q + beta/N and Var[q_N] = C/N to leading order."""
    q = Polynomial([0, 1])
    b = q * growth_rate(problem)(q * q)
    first, second = b.deriv(), b.deriv(2)

    def derivative(_: float, y: Array) -> list[float]:
        _, S, b_1 = step_expansion(problem, y[0])
        J = first(y[0])
        return [b(y[0]), 2 * J * y[1] + S, J * (y[2] - 0.5 * b(y[0])) + 0.5 * second(y[0]) * y[1] + b_1]

    start = [problem.initial_overlap[0], 0.0, 0.0]
    solution = solve_ivp(derivative, (0, problem.time.stop), start, method="DOP853", rtol=1e-13, atol=1e-15)
    return tuple(solution.y[:, -1])


@numba.njit(inline="always")
def horner(coefficients, x):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(coefficients.size - 1, -1, -1):
        total = total * x + coefficients[i]
    return total


@without_reference_counts()
def coupled_steps(training, B, J, key, replica, steps, state, numbers, room, inside):  # type: ignore[no-untyped-def]
    """Take all steps of one replica from state = (q, delta); B and J are coefficients of b(q)/q and b'(q) in q^2."""
    N, q = training.dimension, state[:1]
    rate, some = training.rates[0] / (training.batch_size * N), steps_at_once(training)
    s, limit, delta = math.sqrt(1.0 - q[0] * q[0]), q[0], 0.0
    for chunk in range(0, steps, some):
        draw_numbers(training, key, replica, chunk, min(some, steps - chunk), numbers)
        for step in range(chunk, min(chunk + some, steps)):
            place, x = step - chunk, q[0]
            S = add_batch(training, key, replica, step, place, q, s, (0.0, 0.0), numbers, room, inside)
            normal = numbers[0][place * training.normals + training.spare_normal]
            uniform = numbers[1][place * training.uniforms + training.spare_uniform]
            outside = chi_squared(N - 2, normal, uniform, key, replica, first_slot(training, step + 1) - 1)
            # the step of q to leading order; N S stands for S (chi^2_{N-2} + 2), which has the same mean given S
            leading = rate * (inside[0] - x * (x * inside[0] + s * inside[1]))
            leading -= 0.5 * x * rate * rate * S * (outside + 2.0)
            delta += (horner(J, limit * limit) * delta - x * horner(B, x * x)) / N + leading
            # the limit enters delta as a factor alone, where Euler's error of order 1/N does no harm
            limit += limit * horner(B, limit * limit) / N
            # the step itself, as in meanfield.families.contrastive.sgd.chain
            along = s + rate * inside[1]
            rest = along * along + rate * rate * S * outside
            x += rate * inside[0]
            scale = 1.0 / math.sqrt(rest + x * x)
            q[0], s = x * scale, math.sqrt(rest) * scale
    state[1] = delta


@numba.njit(cache=True, nogil=True, error_model="numpy")
def coupled_block(training, B, J, key, first, steps, states):  # type: ignore[no-untyped-def]
    numbers, room = numbers_for(training, steps_at_once(training)), room_for(training)
    inside = np.empty(2)
    for i in range(states.shape[0]):
        coupled_steps(training, B, J, key, first + i, steps, states[i], numbers, room, inside)


def coupled_replicas(problem: Problem) -> tuple[Array, Array]:
    """Q and delta of all replicas at the final time, computed on all cores."""
    training, B = training_of(problem), growth_rate(problem).coef
    J = B * (2 * np.arange(B.size) + 1)
    N, replicas, key = problem.particles.dimension, problem.particles.replicas, stream_key(problem.particles.seed)
    steps = round(problem.time.stop * N)
    states = np.tile([problem.initial_overlap[0], 0.0], (replicas, 1))
    size = max(1, STEPS_AT_ONCE // steps)
    with progress_bar(replicas, f"chain, N = {N:.0e}", "replica") as bar, ThreadPoolExecutor(os.cpu_count()) as pool:
        blocks = {
            pool.submit(coupled_block, training, B, J, key, low, steps, states[low : low + size]): low
            for low in range(0, replicas, size)
        }
        for block in as_completed(blocks):
            block.result()
            bar.update(min(size, replicas - blocks[block]))
    return states[:, 0], states[:, 1]
