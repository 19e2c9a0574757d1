"""Covariance of the order parameters over runs of SGD, which is C/N to leading order.

It obeys dC/dt = J C + C J^T + S, with the Jacobian J of the rates and the covariance S of a step, from that of the
start. Samples of steps come in groups, each with a covariance of its own: by how much these differ is the error by
sampling. Source: hidden_manifold.md, section 8.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator
from scipy.interpolate import make_interp_spline

from meanfield.families.hidden_manifold.expectations.choice import QUADRATURE
from meanfield.families.hidden_manifold.order_parameters.fluctuations.start import start_covariance
from meanfield.families.hidden_manifold.order_parameters.fluctuations.step_noise import sampled_steps
from meanfield.families.hidden_manifold.order_parameters.integration import follow
from meanfield.families.hidden_manifold.order_parameters.jacobian import (
    Coordinates,
    coordinates_of,
    jacobian_at,
    rates_at,
)
from meanfield.families.hidden_manifold.order_parameters.observables import observables
from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import System, packed, start_of, unpacked
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.numerics.ode import Tolerance, solve_ode
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
    """Whether the covariance is known and cheap: for few eigenvalues, means on the teacher, closed expectations."""
    count = problem.inputs.spectrum.exact_nodes()
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
    coordinates, start = coordinates_of(system), start_of(problem, system)
    # These samples' stream of the seed.
    place, numbers = coordinates.place, np.random.default_rng([problem.particles.seed, 1])
    nodes = np.expm1(np.linspace(0.0, np.log1p(times[-1]), NOISE_TIMES))
    nodes = np.unique(np.append(np.minimum(nodes, times[-1]), times[:: math.ceil(len(times) / NOISE_TIMES)]))
    path = packed(follow(system, start, nodes, TOLERANCE.relative).state)
    steps = np.array([_noise(problem, system, y, numbers)[:, place][:, :, place] for y in path])
    S, n, shape = make_interp_spline(nodes, steps, k=1), len(start), steps.shape[1:]

    def rate(t: float, z: FloatArray) -> FloatArray:
        y, C = z[:n], z[n:].reshape(shape)
        drift = jacobian_at(system, coordinates, y) @ C
        return np.append(rates_at(system, y), drift + drift.swapaxes(1, 2) + S(t))

    first = start_covariance(problem, system)[np.ix_(place, place)]
    z = solve_ode(rate, np.append(start, np.tile(first, (GROUPS, 1, 1))), times, TOLERANCE, integrator="RK45").values
    return _observed(system, coordinates, z[:, :n], z[:, n:].reshape(-1, *shape))


def _noise(problem: Problem, system: System, y: FloatArray, numbers: Generator) -> FloatArray:
    """Covariance S of a step by each group of samples, shape (groups, n, n)."""
    steps = sampled_steps(problem, system, y, GROUPS * SAMPLES, numbers).reshape(GROUPS, SAMPLES, -1)
    away = steps - steps.mean(axis=1, keepdims=True)
    return np.asarray(away.swapaxes(1, 2) @ away / (SAMPLES - 1))


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
