"""McKean-Vlasov equation of one student of an update rule (update_rules.md, section 5)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from meanfield.families.update_rule.density.tables import SAME, Table
from meanfield.families.update_rule.density.totals import TotalEquations
from meanfield.families.update_rule.initial_state import law_at_start
from meanfield.families.update_rule.order_parameters.equations import Rules
from meanfield.families.update_rule.rule import arguments_of
from meanfield.ingredients.laws import GaussianResidual
from meanfield.mckean_vlasov.closure_in_time import DIFFERENCE
from meanfield.mckean_vlasov.closures import NO_TABLE
from meanfield.mckean_vlasov.drive import STRENGTH, drive_for, reference_of
from meanfield.mckean_vlasov.limit import Limit
from meanfield.problems.base import schedules_of
from meanfield.problems.phases import piece_at
from meanfield.typing import FloatArray

SLOWER = "lower the rates among model.rule_parameters"

OTHERS = ((0.0, 1.0), (0.5, 0.7), (-0.6, 2.0))
"""Values of R and Q at which it is asked whether coefficients depend on them besides those of the noise."""


class RuleClosure:
    """Coefficients of the limit of one student from averages of the rule, at the time of a clock.

    Parameters
    ----------
    equations : TotalEquations
    rules : Rules
    number : int
        Of the stretch of time.
    moves : bool
        Whether these coefficients change in time at fixed overlaps.
    accuracy : float
        Of averages, relative to their size.
    plane : bool
        See `Table`.

    Attributes
    ----------
    clock : ndarray, shape (2,)
        The time, and the step of differences in time; 0 if nothing changes.
    norm : float
        Length of the student at the start, squared, over N.
    kept : bool
        Whether it goes back to this length after a step.
    """

    def __init__(
        self, equations: TotalEquations, rules: Rules, number: int, moves: bool, accuracy: float, plane: bool = True
    ) -> None:
        low, high = equations.stretches[number].times[[0, -1]]
        self.clock = np.array([low, DIFFERENCE * (high - low) if moves else 0.0])
        self._equations, self._averages = equations, equations.averages(number, rules)
        problem = equations.problem
        self.norm, self.kept = float(problem.initial_Q[0, 0]), problem.constraints[0][0] != "none"
        tabulated = len(problem.features) == 1 and not moves
        # Error of tables of averages in units of that of averages.
        self._table = self._tabulated(0.1 * accuracy, plane) if tabulated else None

    def __call__(self, q: FloatArray, norm: float) -> tuple[FloatArray, float, float]:
        """Coefficients g, Lambda and the gain along the student itself, which is G where the norm is free."""
        values = self._exact(np.append(q, norm)) if self._table is None else self._table(q, norm)
        return values[:-2], max(float(values[-2]), 0.0), float(values[-1])

    def _tabulated(self, tolerance: float, plane: bool) -> Callable[[FloatArray, float], FloatArray] | None:
        """The same in one vector, by a table; None where they are functions of more than two numbers."""
        if self._equations.nodes is None:
            plain = Table(lambda R, Q: self._exact(np.array([R, Q])), self.norm, tolerance, self.kept, plane)
            return lambda q, norm: plain(float(q[0]), norm)
        length = math.sqrt(self._equations.mean_variance)

        def exact(R: float, Q: float, others: tuple[float, float] = (0.0, 1.0)) -> FloatArray:
            return self._exact(np.array([others[0], length * R, Q, others[1]]))

        # Fields without a signal, and steps that do not read R and Q, know the variances of fields alone.
        size = math.sqrt(self.norm)
        probes = [[exact(R * size, self.norm, others) for others in OTHERS] for R in (-0.4, 0.3)]
        if any(np.ptp(each, axis=0).max() > SAME * np.abs(each).max() for each in probes):
            return None
        weighted = Table(exact, self.norm, tolerance, kept=False, plane=plane)
        return lambda q, norm: weighted(float(q[1]) / length, float(q[2]))

    def _exact(self, state: FloatArray) -> FloatArray:
        """The same in one vector, by quadrature, of q and the norm."""
        return self._equations.coefficients(*self._averages(float(self.clock[0]), self._equations.packed(state)))


class OnSphere:
    """Coefficients g and Lambda of a student that goes back to its length, which undoes gains along itself.

    Parameters
    ----------
    closure : RuleClosure
    """

    compiled = NO_TABLE
    """The closure has tables of its own."""

    def __init__(self, closure: RuleClosure) -> None:
        self._closure = closure

    def __call__(self, q: FloatArray) -> tuple[FloatArray, float]:
        """Evaluate them."""
        return self._closure(q, self._closure.norm)[:2]


def limit_of(equations: TotalEquations, rules: Rules, accuracy: float, plane: bool = True) -> Limit:
    """Equation of a problem, stretch by stretch, with some rules of quadrature of an accuracy; see `RuleClosure`."""
    limits = [_limit_in(equations, rules, number, accuracy, plane) for number in range(len(equations.stretches))]
    starts = [float(each.times[0]) for each in equations.stretches]
    return limits[0].followed_by(list(zip(starts, limits, strict=True))[1:])


def _limit_in(equations: TotalEquations, rules: Rules, number: int, accuracy: float, plane: bool) -> Limit:
    """Equation from one corner of a schedule or end of a phase to the next."""
    problem, (low, high) = equations.problem, equations.stretches[number].times[[0, -1]].tolist()
    phase = piece_at(problem, low).problem
    reference, schedules = reference_of(phase, (STRENGTH,)), schedules_of(phase)
    functions = [each for kind in phase.kinds for each in phase.functions_of(kind)]
    moves = any("t" in arguments_of(function, what) for what, function in functions) or any(
        np.ptp(each.values_at(np.array(each.extremes(low, high)))) for key, each in schedules.items() if key != STRENGTH
    )
    closure = RuleClosure(equations, rules, number, moves, accuracy, plane)
    limit = Limit(
        OnSphere(closure) if closure.kept else closure,
        1.0,
        reference.prior,
        problem.coordinates,
        problem.initial_R[0],
        GaussianResidual(),
        problem.time.outputs_at,
        SLOWER,
        SLOWER,
        initial_law=law_at_start(problem),
        initial_norm=closure.norm,
        free_norm=not closure.kept,
        spectrum=problem.data.spectrum,
    )
    if not moves and STRENGTH not in schedules:
        return limit
    drive = drive_for(phase, reference)
    return replace(limit, schedules=drive.stopping_at([high]).setting(closure.clock) if moves else drive)
