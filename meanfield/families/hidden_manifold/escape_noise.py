"""Noise of SGD that tells students apart on the way from a plateau: the covariance over profiles of single steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from scipy.interpolate import make_interp_spline

from meanfield.families.hidden_manifold.order_parameters.integration import follow
from meanfield.families.hidden_manifold.order_parameters.legs import Leg, train_at
from meanfield.families.hidden_manifold.order_parameters.steps import covariance_of_step, sampled_steps
from meanfield.families.hidden_manifold.order_parameters.system import System, packed, unpacked
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.ingredients.schedules.shapes import CHECKED_TIMES
from meanfield.problems.phases import piece_at
from meanfield.typing import FloatArray

NOISE_TIMES = 16
"""Number of times between two corners of schedules at which steps are sampled."""

GROUPS, SAMPLES = 4, 512
"""Number of groups of sampled steps, which give the error by sampling, and of steps in each at a time."""


def noise_of_steps(
    problem: Problem, legs: Sequence[Leg], start: FloatArray, times: FloatArray
) -> list[Callable[[float], FloatArray]]:
    """Covariance over profiles of a step of the pattern by each group of samples, in each leg a function of time.

    It has the factor eta^2/tau, which may begin with 0: steps are sampled with the numbers of the largest rate.
    """
    system = legs[0].system
    pattern = pattern_of(system)
    numbers = np.random.default_rng([problem.particles.seed, 2])  # these samples' stream of the seed
    ends = [*(leg.start for leg in legs), times[-1]]
    nodes = [np.expm1(np.linspace(np.log1p(low), np.log1p(high), NOISE_TIMES)) for low, high in pairwise(ends)]
    for corner, before, after in zip(ends[1:-1], nodes[:-1], nodes[1:], strict=True):
        before[-1] = after[0] = corner  # without rounding
    known, place = np.unique(np.concatenate(nodes), return_inverse=True)
    states = packed(follow(legs, start, known, 1e-6).state)  # the noise is known less accurately

    def noise_in(leg: Leg, at: FloatArray, path: FloatArray) -> Callable[[float], FloatArray]:
        system, phase = leg.system, piece_at(problem, leg.start).problem
        eta, _, batch, *_ = phase.training.limits_at(np.linspace(0.0, times[-1], CHECKED_TIMES))
        largest = float(eta.max()) or 1.0, float(batch[eta.argmax()])

        def sampled(time: float, y: FloatArray) -> FloatArray:
            train_at(leg, time)
            system.training[0], system.training[2] = largest
            r = unpacked(system, sampled_steps(phase, system, y, GROUPS * SAMPLES, numbers)).r
            return covariance_of_step(system, np.einsum("snkm,km->sn", r[..., : system.teachers], pattern), GROUPS)

        none = np.zeros((GROUPS, len(system.rho), len(system.rho)))
        each = [sampled(t, y) if np.isfinite(y).all() else none for t, y in zip(at.tolist(), path, strict=True)]
        between = make_interp_spline(at, np.array(each), k=1)

        def noise(t: float) -> FloatArray:
            if not leg.drive.moves:
                return np.asarray(between(t))
            train_at(leg, t)
            now = system.training
            return np.asarray((now[0] / largest[0]) ** 2 * largest[1] / now[2] * between(t))

        return noise

    paths = states[place].reshape(len(legs), NOISE_TIMES, -1)
    return [noise_in(*each) for each in zip(legs, nodes, paths, strict=True)]


def no_noise(nodes: int) -> Callable[[float], FloatArray]:
    """No noise, of informed starts, whose differences it does not change at large N."""
    return lambda _: np.zeros((GROUPS, nodes, nodes))


def pattern_of(system: System) -> FloatArray:
    """Perturbation of r with rows and columns that add up to 0, of length 1, shape (students, teachers)."""
    pattern = np.zeros((system.students, system.teachers))
    pattern[:2, :2] = [[0.5, -0.5], [-0.5, 0.5]]
    return pattern
