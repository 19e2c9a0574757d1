"""McKean-Vlasov equation of one student of an update rule (update_rules.md, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from meanfield.families.update_rule.averages import averages_of, sum_of
from meanfield.families.update_rule.order_parameters.equations import Equations, Rules, Stretch
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.rule import arguments_of
from meanfield.ingredients.laws import GaussianResidual
from meanfield.ingredients.part import with_unchecked
from meanfield.mckean_vlasov.closure_in_time import DIFFERENCE
from meanfield.mckean_vlasov.drive import STRENGTH, drive_of
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.gaussian_moments.rules import Rule
from meanfield.problems.base import schedules_of
from meanfield.problems.phases import piece_at
from meanfield.typing import FloatArray

SLOWER = "lower the rates among model.rule_parameters"

PROBED = 1000
"""Number of times at which schedules are asked whether they change."""


class RuleClosure:
    """Coefficients of the limit of one student from averages of the rule, at the time of a clock.

    Parameters
    ----------
    stretch : Stretch
    means, draws : sequence of Rule
        Rules of quadrature for averages that functions read, and for the draws.
    moves : bool
        Whether these coefficients change in time at fixed overlaps.

    Attributes
    ----------
    clock : ndarray, shape (2,)
        The time, and the step of differences in time; 0 if nothing changes.
    """

    def __init__(self, stretch: Stretch, means: Sequence[Rule], draws: Sequence[Rule], moves: bool) -> None:
        low, high = stretch.times[[0, -1]]
        self._stretch, self._means, self._draws = stretch, means, draws
        self.clock = np.array([low, DIFFERENCE * (high - low) if moves else 0.0])

    def __call__(self, q: FloatArray, norm: float) -> tuple[FloatArray, float, float]:
        """Coefficients g, Lambda and the gain along the student itself, which is G where the norm is free."""
        system, time = self._stretch.system, float(self.clock[0])
        R, Q = q[None], np.array([[norm]])
        G = system.gram(R, Q)
        constants = system.constants(self._stretch.at(time), time, R, Q, np.empty(0), self._means)
        pairs = zip(system.draws, self._draws, strict=True)
        E, B, diffusion, _ = sum_of((1.0, averages_of(draw, 0, G, constants, rule)) for draw, rule in pairs)
        gains = np.linalg.lstsq(G, E[:, 0])[0] + B[:, 0]  # the features of a student that is one of them fit, too
        return -gains[:-1], float(diffusion[0, 0]), float(gains[-1])

    def on_sphere(self, norm: float, q: FloatArray) -> tuple[FloatArray, float]:
        """Coefficients g and Lambda of a student that goes back to its length, which undoes gains along itself."""
        return self(q, norm)[:2]


def limit_of(equations: Equations, rules: Rules) -> Limit:
    """Equation of a problem, stretch by stretch, with some rules of quadrature."""
    parts = zip(equations.stretches, rules.means, rules.draws, strict=True)
    first, *later = [(float(each.times[0]), _limit_in(equations.problem, each, *own)) for each, *own in parts]
    return first[1].followed_by(later)


def _limit_in(problem: Problem, stretch: Stretch, means: Sequence[Rule], draws: Sequence[Rule]) -> Limit:
    """Equation from one corner of a schedule or end of a phase to the next."""
    low, high = stretch.times[[0, -1]].tolist()
    phase, free = piece_at(problem, low).problem, problem.constraints[0][0] == "none"
    probed = np.linspace(low, np.nextafter(high, low), PROBED)
    values = {key: schedule.values_at(probed) for key, schedule in schedules_of(phase).items()}
    moving = {key for key, each in values.items() if np.any(each != each[0])}
    closure = RuleClosure(stretch, means, draws, bool(moving - {STRENGTH}) or _reads_time(phase))
    norm, prior = float(problem.initial_Q[0, 0]), stretch.at(low).prior
    largest = float(values[STRENGTH].max()) if STRENGTH in moving else 1.0
    limit = Limit(
        closure if free else partial(closure.on_sphere, norm),
        1.0,
        with_unchecked(prior, strength=largest) if STRENGTH in moving else prior,
        problem.coordinates,
        problem.initial_R[0],
        GaussianResidual(),
        problem.time.outputs_at,
        SLOWER,
        SLOWER,
        initial_norm=norm,
        free_norm=free,
    )
    if not moving and not closure.clock[1]:
        return limit

    def factors(times: FloatArray) -> FloatArray:
        strengths = np.ones(times.shape)
        if STRENGTH in moving:
            strengths = np.array([stretch.at(time).prior.strength for time in times.tolist()]) / largest
        return np.array([np.ones(times.shape), np.ones(times.shape), strengths])

    drive = drive_of(factors, np.array([low, high]), float(problem.time.stop))
    return replace(limit, schedules=drive.setting(closure.clock) if closure.clock[1] else drive)


def _reads_time(problem: Problem) -> bool:
    """Whether a function of the problem reads the time itself."""
    functions = [each for kind in problem.kinds for each in problem.functions_of(kind)]
    return any("t" in arguments_of(function, what) for what, function in functions)
