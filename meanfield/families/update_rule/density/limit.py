"""McKean-Vlasov equation of one student of an update rule (update_rules.md, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from meanfield.families.update_rule.averages import averages_of, sum_of
from meanfield.families.update_rule.density.tables import Table
from meanfield.families.update_rule.order_parameters.equations import Equations, Rules, Stretch
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.rule import arguments_of
from meanfield.ingredients.laws import GaussianResidual
from meanfield.ingredients.part import with_unchecked
from meanfield.mckean_vlasov.closure_in_time import DIFFERENCE
from meanfield.mckean_vlasov.closures import NO_TABLE
from meanfield.mckean_vlasov.drive import STRENGTH, drive_of
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.gaussian_moments.rules import Rule
from meanfield.problems.base import schedules_of
from meanfield.problems.phases import piece_at
from meanfield.typing import FloatArray

SLOWER = "lower the rates among model.rule_parameters"

TABLE_SHARE = 0.1
"""Error of tables of averages in units of that of averages."""

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
    accuracy : float
        Of averages, relative to their size.

    Attributes
    ----------
    clock : ndarray, shape (2,)
        The time, and the step of differences in time; 0 if nothing changes.
    """

    def __init__(
        self, stretch: Stretch, means: Sequence[Rule], draws: Sequence[Rule], moves: bool, accuracy: float
    ) -> None:
        low, high = stretch.times[[0, -1]]
        self._stretch, self._means, self._draws = stretch, means, draws
        self.clock = np.array([low, DIFFERENCE * (high - low) if moves else 0.0])
        problem, one = stretch.at(low), stretch.system.features == 1 and not moves
        kept = problem.constraints[0][0] != "none"
        norm = float(problem.initial_Q[0, 0])
        self._table = Table(self._of_numbers, norm, TABLE_SHARE * accuracy, kept) if one else None

    def __call__(self, q: FloatArray, norm: float) -> tuple[FloatArray, float, float]:
        """Coefficients g, Lambda and the gain along the student itself, which is G where the norm is free."""
        values = self._exact(q, norm) if self._table is None else self._table(float(q[0]), norm)
        return values[:-2], max(float(values[-2]), 0.0), float(values[-1])

    def _exact(self, q: FloatArray, norm: float) -> FloatArray:
        """The same in one vector, by quadrature."""
        system, time = self._stretch.system, float(self.clock[0])
        R, Q = q[None], np.array([[norm]])
        G = system.gram(R, Q)
        constants = system.constants(self._stretch.at(time), time, R, Q, np.empty(0), self._means)
        pairs = zip(system.draws, self._draws, strict=True)
        E, B, diffusion, _ = sum_of((1.0, averages_of(draw, 0, G, constants, rule)) for draw, rule in pairs)
        gains = np.linalg.lstsq(G, E[:, 0])[0] + B[:, 0]  # the features of a student that is one of them fit, too
        return np.array([*-gains[:-1], diffusion[0, 0], gains[-1]])

    def _of_numbers(self, R: float, Q: float) -> FloatArray:
        return self._exact(np.array([R]), Q)


class OnSphere:
    """Coefficients g and Lambda of a student that goes back to its length, which undoes gains along itself.

    Parameters
    ----------
    closure : RuleClosure
    norm : float
        Its length squared, over N.
    """

    compiled = NO_TABLE
    """The closure has tables of its own."""

    def __init__(self, closure: RuleClosure, norm: float) -> None:
        self._closure, self._norm = closure, norm

    def __call__(self, q: FloatArray) -> tuple[FloatArray, float]:
        """Evaluate them."""
        return self._closure(q, self._norm)[:2]


def limit_of(equations: Equations, rules: Rules, accuracy: float) -> Limit:
    """Equation of a problem, stretch by stretch, with some rules of quadrature of an accuracy."""
    parts = zip(equations.stretches, rules.means, rules.draws, strict=True)
    first, *later = [(float(each.times[0]), _limit_in(equations.problem, accuracy, each, *own)) for each, *own in parts]
    return first[1].followed_by(later)


def _limit_in(
    problem: Problem, accuracy: float, stretch: Stretch, means: Sequence[Rule], draws: Sequence[Rule]
) -> Limit:
    """Equation from one corner of a schedule or end of a phase to the next."""
    low, high = stretch.times[[0, -1]].tolist()
    phase, free = piece_at(problem, low).problem, problem.constraints[0][0] == "none"
    probed = np.linspace(low, np.nextafter(high, low), PROBED)
    values = {key: schedule.values_at(probed) for key, schedule in schedules_of(phase).items()}
    moving = {key for key, each in values.items() if np.any(each != each[0])}
    closure = RuleClosure(stretch, means, draws, bool(moving - {STRENGTH}) or _reads_time(phase), accuracy)
    norm, prior = float(problem.initial_Q[0, 0]), stretch.at(low).prior
    largest = float(values[STRENGTH].max()) if STRENGTH in moving else 1.0
    limit = Limit(
        closure if free else OnSphere(closure, norm),
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
