"""Covariance of the order parameters over runs of SGD, which is C/N to leading order.

It obeys dC/dt = J C + C J^T + S, with the Jacobian J of the rates and the covariance S of a step, from that of the
start. Samples of steps come in groups, each with a covariance of its own: by how much these differ is the error by
sampling. Source: hidden_manifold.md, section 8.

The start: to leading order products of weights that are drawn at random are linear in normal numbers, in each
eigenspace those of the products of random vectors with the teacher, and with each other. A start with exact overlaps
fixes their sums over all spaces, not those in each.

A step adds Y/N to the state, with E[Y] = dy/dt. In each eigenspace the input x of a sample has projections of order
sqrt(n) on vectors of n dimensions, jointly Gaussian with the fields, and a squared length without fluctuations.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.interpolate import make_interp_spline

from meanfield.families.hidden_manifold.expectations.choice import QUADRATURE
from meanfield.families.hidden_manifold.order_parameters.integration import follow
from meanfield.families.hidden_manifold.order_parameters.jacobian import (
    Coordinates,
    coordinates_of,
    jacobian_at,
    rates_at,
)
from meanfield.families.hidden_manifold.order_parameters.legs import steadily
from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import (
    State,
    System,
    observables,
    packed,
    start_of,
    unpacked,
)
from meanfield.families.hidden_manifold.particles.start import gaussian_means
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.numerics.exact_products import root
from meanfield.numerics.ode import Tolerance, solve_ode
from meanfield.problems.base import schedules_of
from meanfield.typing import FloatArray

MOST_NUMBERS = 100
"""Largest number of order parameters at all eigenvalues whose covariance is followed: the cost grows with its cube."""

GROUPS, SAMPLES = 8, 512
"""Number of groups of samples, and of samples in each at a time."""

NOISE_TIMES = 16
"""Number of times at which steps are sampled: so many at equal distances of log(1 + t), and among output times."""

TOLERANCE = Tolerance(relative=1e-4, absolute=1e-6)
"""Tolerance of a step: errors by sampling are larger."""


def has_fluctuations(problem: Problem, system: System) -> bool:
    """Whether the covariance is known and cheap.

    It is for few eigenvalues, means on the teacher, closed expectations, and where nothing changes in time. What runs
    that start from a file scatter by at its time is not known.
    """
    if (
        schedules_of(problem)
        or problem.phases is not None
        or problem.initial is not None
        or problem.training.momentum_rate
    ):
        return False
    count = problem.inputs.eigenvalues.exact_nodes()
    elsewhere = any(component.mean_elsewhere > 0.0 for component in problem.inputs.mixture)
    if count is None or count != len(system.rho) or elsewhere or system.kind == QUADRATURE:
        return False
    return len(coordinates_of(system).place) <= MOST_NUMBERS


def fluctuations(problem: Problem, system: System, times: FloatArray) -> dict[str, FloatArray]:
    """N times covariances of Q, R, v and the generalisation error over runs, with three standard errors.

    Parameters
    ----------
    problem : Problem
    system : System
        With the eigenvalues themselves as nodes.
    times : ndarray, shape (times,)
        From 0 on.

    Returns
    -------
    dict of str to ndarray
        `Q_covariance`, `Q_covariance_error` and so on, at all times.
    """
    coordinates = coordinates_of(system)
    start = start_of(problem, system)
    # These samples' stream of the seed.
    place = coordinates.place
    numbers = np.random.default_rng([problem.particles.seed, 1])
    nodes = np.expm1(np.linspace(0.0, np.log1p(times[-1]), NOISE_TIMES))
    nodes = np.unique(np.append(np.minimum(nodes, times[-1]), times[:: math.ceil(len(times) / NOISE_TIMES)]))
    path = packed(follow(steadily(system), start, nodes, TOLERANCE.relative).state)
    steps = np.array([_noise(problem, system, y, numbers)[:, place][:, :, place] for y in path])
    S = make_interp_spline(nodes, steps, k=1)
    n = len(start)
    shape = steps.shape[1:]

    def rate(t: float, z: FloatArray) -> FloatArray:
        y, C = z[:n], z[n:].reshape(shape)
        drift = jacobian_at(system, coordinates, y) @ C
        return np.append(rates_at(system, y), drift + drift.swapaxes(1, 2) + S(t))

    first = start_covariance(problem, system)[np.ix_(place, place)]
    z = solve_ode(rate, np.append(start, np.tile(first, (GROUPS, 1, 1))), times, TOLERANCE, integrator="RK45").values
    return _observed(system, coordinates, z[:, :n], z[:, n:].reshape(-1, *shape))


def _noise(problem: Problem, system: System, y: FloatArray, numbers: Generator) -> FloatArray:
    """Covariance S of a step by each group of samples, shape (groups, n, n)."""
    return covariance_of_step(system, sampled_steps(problem, system, y, GROUPS * SAMPLES, numbers), GROUPS)


def covariance_of_step(system: System, samples: FloatArray, groups: int) -> FloatArray:
    """Covariance of the mean over the samples of a step, by each group of samples, shape (groups, n, n)."""
    samples = samples.reshape(groups, -1, samples.shape[1])
    away = samples - samples.mean(axis=1, keepdims=True)
    return np.asarray(away.swapaxes(1, 2) @ away / (away.shape[1] - 1) / system.training[2])


def _observed(system: System, coordinates: Coordinates, states: FloatArray, C: FloatArray) -> dict[str, FloatArray]:
    """Covariances of what is compared from those of independent numbers, shape (times, groups, numbers, numbers)."""
    size = C.shape[-1]
    one_at_a_time = np.array([coordinates.moved(np.zeros(states.shape[1]), x) for x in np.eye(size)])
    maps = observables(system, unpacked(system, one_at_a_time))
    found = {}
    for name in ("Q", "R", "v"):
        along = maps[name].reshape(size, -1)
        products = np.einsum("ai,tgab,bj->tgij", along, C, along)
        found[f"{name}_covariance"] = products.reshape(*C.shape[:2], *maps[name].shape[1:], *maps[name].shape[1:])
    slopes = np.array([_error_slopes(system, coordinates, y) for y in states])
    found["generalisation_error_variance"] = np.einsum("ta,tgab,tb->tg", slopes, C, slopes)
    # Errors are stated as 3 standard errors.
    errors = {f"{name}_error": 3.0 * each.std(axis=1, ddof=1) / math.sqrt(GROUPS) for name, each in found.items()}
    return {name: _without_rounding(each.mean(axis=1)) for name, each in found.items()} | errors


def _without_rounding(values: FloatArray) -> FloatArray:
    """Covariances without those that are 0 to rounding, which may be negative."""
    return np.where(np.abs(values) > 1e-12 * np.abs(values).max(initial=0.0), values, 0.0)  # smaller ones are none


def _error_slopes(system: System, coordinates: Coordinates, y: FloatArray) -> FloatArray:
    """Derivatives of the generalisation error by independent numbers of a state."""
    slopes, waste = np.empty(len(coordinates.place)), np.empty(len(y))
    for i, place in enumerate(coordinates.place):
        x = y[coordinates.place]
        ends = []
        for step in (1e-5, -1e-5):  # differences are off by about 1e-10
            x[i] = y[place] + step
            ends.append(rates(coordinates.moved(y, x), system, waste))
        slopes[i] = (ends[0] - ends[1]) / 2e-5
    return slopes


def start_covariance(problem: Problem, system: System) -> FloatArray:
    """N times the covariance of the state at t = 0, shape (n, n)."""
    K = system.students
    M = system.teachers
    spaces = spaces_of(system)
    rows = []
    for j in map(int, np.flatnonzero(spaces.inputs > 0.0)):
        for k in range(K):
            if spaces.rho[j] > 0.0:
                rows += [_state(problem, system, j, np.zeros((K, K)), np.outer(np.eye(K)[k], e)) for e in np.eye(M)]
            for i in range(k + 1):
                products = np.zeros((K, K))
                products[k, i] = products[i, k] = 2.0**0.5 if i == k else 1.0
                rows.append(_state(problem, system, j, products, np.zeros((K, M))))
    changes = np.array(rows)
    return np.asarray(changes.T @ changes)


def _state(problem: Problem, system: System, j: int, products: FloatArray, along: FloatArray) -> FloatArray:
    """Change of the state by a normal number of space j.

    It is one of the products of random vectors with each other, or of those with the teacher, per dimension.
    """
    K = system.students
    M = system.teachers
    n = len(system.rho)
    spaces = spaces_of(system)
    g, X = root(problem.student.rest), problem.initial_on_teacher
    share = spaces.inputs
    random = problem.student.initial == "random"
    t = np.append(system.t[:, :M, :M], np.zeros((1, M, M)), axis=0)
    each = np.zeros((n + 1, K, K))  # of P^T P per dimension of each space, with P the random part of the weights
    each[j] = products / share[j] ** 0.5
    total = share[j] ** 0.5 * products
    features = np.zeros((n + 1, K, M))  # of P^T F^T Wt/sqrt(N) per dimension
    features[j] = (spaces.rho[j] / share[j]) ** 0.5 * along @ root(t[j])
    if not random:
        each -= np.where(share > 0.0, 1.0, 0.0)[:, None, None] * total
        gram = np.einsum("j,jab->ab", share * spaces.rho, t)
        features -= share[j] * features[j] @ np.linalg.pinv(gram) @ (spaces.rho[:, None, None] * t)
        total = np.zeros((K, K))
    each, features = g @ each @ g, g @ features
    crossed = X @ features.swapaxes(1, 2)
    own = each + crossed + crossed.swapaxes(1, 2)
    means = gaussian_means(problem)[system.column >= 0, :M]
    columns = np.vstack([np.eye(M), means])
    rho = spaces.rho[:n, None, None]
    return packed(State(features[:n] @ columns.T, rho * own[:n], g @ total @ g, np.zeros(K)))


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
