"""Covariance of the order parameters over runs of SGD, which is C/N to leading order.

It obeys dC/dt = J C + C J^T + S, with the Jacobian J of the rates and the covariance S of a step, from that of the
start. Samples of steps come in groups, each with a covariance of its own: by how much these differ is the error by
sampling. Source: hidden_manifold.md, section 8.

The start: to leading order products of weights that are drawn at random are linear in normal numbers, in each
eigenspace those of the products of random vectors with the teacher, and with each other. A start with exact overlaps
fixes their sums over all spaces, not those in each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

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
from meanfield.families.hidden_manifold.order_parameters.legs import Leg, numbers_at, train_at
from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.steps import covariance_of_step, sampled_steps, spaces_of
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
from meanfield.numerics.exact_products import root
from meanfield.numerics.ode import Rate, Tolerance, solve_in_stretches
from meanfield.problems.phases import piece_at
from meanfield.typing import FloatArray

MOST_NUMBERS = 100
"""Largest number of order parameters at all eigenvalues whose covariance is followed: the cost grows with its cube."""

GROUPS, SAMPLES = 8, 512
"""Number of groups of samples, and of samples in each at a time."""

NOISE_TIMES = 16
"""Number of times at which steps are sampled: so many at equal distances of log(1 + t), and among output times."""

TOLERANCE = Tolerance(relative=1e-4, absolute=1e-6)
"""Tolerance of a step: errors by sampling are larger."""


def has_fluctuations(problem: Problem, legs: Sequence[Leg]) -> bool:
    """Whether the covariance is known and cheap.

    It is for few eigenvalues, means on the teacher that are the same in all phases, and closed expectations. By what
    runs scatter at the time of a file that they start from is not known, nor is it for velocities of weights.
    """
    if problem.initial is not None or problem.training.momentum_rate:
        return False
    for leg in legs:
        inputs = piece_at(problem, leg.start).problem.inputs
        elsewhere = any(component.mean_elsewhere > 0.0 for component in inputs.mixture)
        own = leg.system.teachers + np.count_nonzero(leg.system.column >= 0)  # columns of these means
        if inputs.eigenvalues.exact_nodes() != len(leg.system.rho) or elsewhere or leg.system.kind == QUADRATURE:
            return False
        if leg.system.t.shape[1] != own:
            return False
    return len(_coordinates_along(legs).place) <= MOST_NUMBERS


def _coordinates_along(legs: Sequence[Leg]) -> Coordinates:
    """Numbers that may move on some leg: with the second layer unless it rests at all times."""
    system = legs[0].system
    trains = any(leg.drive.moves or leg.system.training[1] > 0.0 for leg in legs)
    return coordinates_of(system._replace(training=np.full(len(system.training), float(trains))))


def fluctuations(problem: Problem, legs: Sequence[Leg], times: FloatArray) -> dict[str, FloatArray]:
    """N times covariances of Q, R, v and the generalisation error over runs, with three standard errors.

    Parameters
    ----------
    problem : Problem
    legs : sequence of Leg
        With the eigenvalues themselves as nodes.
    times : ndarray, shape (times,)
        From 0 on.

    Returns
    -------
    dict of str to ndarray
        `Q_covariance`, `Q_covariance_error` and so on, at all times.
    """
    system, coordinates, last = legs[0].system, _coordinates_along(legs), float(times[-1])
    place, start = coordinates.place, start_of(problem, system)
    # These samples' stream of the seed.
    numbers = np.random.default_rng([problem.particles.seed, 1])
    known = np.expm1(np.linspace(0.0, np.log1p(last), NOISE_TIMES))
    known = np.unique(np.append(np.minimum(known, last), times[:: math.ceil(len(times) / NOISE_TIMES)]))
    legs = [leg for leg in legs if leg.start < last or leg is legs[0]]
    ends = [*(leg.start for leg in legs), last]
    nodes = [_inside(known, low, high, leg.drive.moves) for leg, (low, high) in zip(legs, pairwise(ends), strict=True)]
    together = np.unique(np.concatenate(nodes))
    path = packed(follow(legs, start, together, TOLERANCE.relative).state)
    first = start_covariance(problem, system)[np.ix_(place, place)]
    n, shape = len(start), (GROUPS, *first.shape)

    def rate_in(leg: Leg, at: FloatArray) -> Rate:
        phase = piece_at(problem, leg.start).problem

        def noise_at(time: float) -> FloatArray:
            train_at(leg, time)
            return _noise(phase, leg.system, path[np.searchsorted(together, time)], numbers)[:, place][:, :, place]

        S = make_interp_spline(at, np.array([noise_at(time) for time in at.tolist()]), k=1)

        def rate(t: float, z: FloatArray) -> FloatArray:
            train_at(leg, t)
            y, C = z[:n], z[n:].reshape(shape)
            drift = jacobian_at(leg.system, coordinates, y) @ C
            return np.append(rates_at(leg.system, y), drift + drift.swapaxes(1, 2) + S(t))

        return rate

    stretches = [
        (np.unique([at[0], *times[(times >= at[0]) & (times <= at[-1])], at[-1]]), rate_in(leg, at))
        for leg, at in zip(legs, nodes, strict=True)
    ]
    z = np.append(start, np.tile(first, (GROUPS, 1, 1)))
    found = solve_in_stretches(stretches, z, times, TOLERANCE, integrator="RK45").values
    return _observed(legs, coordinates, times, found[:, :n], found[:, n:].reshape(-1, *shape))


def _inside(known: FloatArray, low: float, high: float, moves: bool) -> FloatArray:
    """Times of a leg at which steps are sampled: those that are known, and more of them where the training changes."""
    inside = known[(known > low) & (known < high)]
    more = np.linspace(low, high, max(NOISE_TIMES - len(inside), 2) if moves else 2)
    return np.unique(np.concatenate([more, inside]))


def _noise(problem: Problem, system: System, y: FloatArray, numbers: Generator) -> FloatArray:
    """Covariance S of a step by each group of samples, shape (groups, n, n)."""
    return covariance_of_step(system, sampled_steps(problem, system, y, GROUPS * SAMPLES, numbers), GROUPS)


def _observed(
    legs: Sequence[Leg], coordinates: Coordinates, times: FloatArray, states: FloatArray, C: FloatArray
) -> dict[str, FloatArray]:
    """Covariances of what is compared from those of independent numbers, shape (times, groups, numbers, numbers)."""
    size, system = C.shape[-1], legs[0].system
    one_at_a_time = np.array([coordinates.moved(np.zeros(states.shape[1]), x) for x in np.eye(size)])
    maps = observables(system, unpacked(system, one_at_a_time))
    found = {}
    for name in ("Q", "R", "v"):
        along = maps[name].reshape(size, -1)
        products = np.einsum("ai,tgab,bj->tgij", along, C, along)
        found[f"{name}_covariance"] = products.reshape(*C.shape[:2], *maps[name].shape[1:], *maps[name].shape[1:])
    at = [legs[number].system for number in numbers_at(legs, times)]
    slopes = np.array([_error_slopes(each, coordinates, y) for each, y in zip(at, states, strict=True)])
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
