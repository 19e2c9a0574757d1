"""Limit of a contrastive problem as N grows, for the density and stationary solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.cells import feature_quadrature
from meanfield.mckean_vlasov.closure_in_time import ClosureInTime, nodes_in_time
from meanfield.mckean_vlasov.closures import called_values
from meanfield.mckean_vlasov.drive import RATE, STRENGTH, drive_for, reference_of
from meanfield.mckean_vlasov.limit import Limit
from meanfield.problems.base import check_problem, schedules_of
from meanfield.problems.in_time import InTime
from meanfield.problems.phases import pieces_of
from meanfield.typing import FloatArray

PROBED = (-0.9, -0.5, 0.2, 0.6, 0.95)
"""Overlaps with each feature, and with all features alike, at which closures of different times are compared."""


@dataclass(frozen=True, eq=False)
class Stage:
    """Stretch of time in which g and Lambda are those of one problem, or change smoothly, but for factors.

    Parameters
    ----------
    start, stop : float
    problem : Problem
        Of the phase, with its schedules.
    at : callable
        The problem at a time from the start to the stop, with the largest rate and strength of the phase.
    closure : Closure or ClosureInTime
    """

    start: float
    stop: float
    problem: Problem
    at: Callable[[float], Problem]
    closure: Closure | ClosureInTime

    @property
    def limit(self) -> Limit:
        """Limit in this stretch alone."""
        reference = self.at(self.start)
        limit = Limit.of(reference, self.closure, self.problem.initial_overlap, " or raise model.batch_size")
        limit = replace(limit, learning_rate=reference.model.rate)
        if not schedules_of(self.problem):
            return limit
        drive = drive_for(self.problem, reference)
        if isinstance(self.closure, ClosureInTime):  # the last step ends where the closure does
            drive = drive.stopping_at([self.stop]).setting(self.closure.clock)
        return replace(limit, schedules=drive)


def stages_of(problem: Problem) -> list[Stage]:
    """Stretches from one phase to the next, and from corner to corner of numbers that change closures themselves.

    Raises
    ------
    InputError
        If the problem has no closure; see `Closure`. If there are too many stretches.
    """
    found = []
    for start, stop, each in pieces_of(problem):
        frozen = reference_of(each, (RATE, STRENGTH))
        if not schedules_of(frozen):
            found.append(Stage(start, stop, each, _always(frozen), Closure(frozen)))
            continue
        in_time = InTime(frozen)
        ends = [start, *(time for time in in_time.corners if start < time < stop), stop]
        for low, high in pairwise(ends):
            at = _inside(in_time, low, high)
            # Largest number of stretches of time in which closures are others.
            parts = nodes_in_time(_probed(at), low, high, 100 - len(found))
            limits = [*(begin for begin, _ in parts), high]
            found += [
                Stage(begin, end, each, at, _closure_at(at, nodes))
                for (begin, nodes), end in zip(parts, limits[1:], strict=True)
            ]
    return found


def _always(problem: Problem) -> Callable[[float], Problem]:
    return lambda _: problem


def _inside(in_time: InTime[Problem], low: float, high: float) -> Callable[[float], Problem]:
    """Problem at times from `low` to `high`, at both ends as it is in between."""
    last = float(np.nextafter(high, low))
    return lambda time: in_time(min(max(time, low), last))


def _probed(at: Callable[[float], Problem]) -> Callable[[float], FloatArray]:
    """Values of g and Lambda at some overlaps as a function of time, shape (d1 + 1, overlaps)."""

    def values(time: float) -> FloatArray:
        problem = at(time)
        closure, d1 = Closure(problem, tabulated=False), len(problem.features)
        points = np.concatenate([np.eye(d1), np.ones((int(d1 > 1), d1)) / np.sqrt(d1)])
        return np.array([called_values(closure, x * point) for point in points for x in PROBED]).T

    return values


def _closure_at(at: Callable[[float], Problem], nodes: FloatArray) -> Closure | ClosureInTime:
    problems = [at(time) for time in nodes.tolist()]
    closures = [Closure(each) for each in problems]
    return closures[0] if len(closures) == 1 else ClosureInTime(closures, nodes, len(problems[0].features))


def stages_along(stages: list[Stage], limit: Limit, stop: float) -> Iterator[tuple[float, float, Stage, Limit]]:
    """Stretches from corner to corner of schedules and phases, each with its stage and the limit there."""
    for low, high in pairwise([0.0, *(corner for corner in limit.corners if corner < stop), stop]):
        number = limit.phases.index(limit.phase_at(low))
        yield low, high, stages[number], limit.phases[number]


def limit_of_stages(stages: list[Stage]) -> Limit:
    """The McKean-Vlasov equation of all stretches."""
    first, *later = [stage.limit for stage in stages]
    problem = stages[0].problem
    if problem.initial is not None:
        nodes = feature_quadrature(problem.coordinates, problem.density.feature_nodes)
        first = replace(first, initial_law=problem.initial.law_at(nodes, problem.prior.functions.kinks))
    return first.followed_by([(stage.start, limit) for stage, limit in zip(stages[1:], later, strict=True)])


def limit_of(problem: Problem, closure: Closure | None = None) -> Limit:
    """The McKean-Vlasov equation of a problem, phase by phase.

    Parameters
    ----------
    problem : Problem
        Problem of the limit; a random start is taken as q = 0.
    closure : Closure, optional
        g and Lambda of a problem that does not change in time, if they are known already.

    Raises
    ------
    InputError
        If the problem has no closure; see `Closure`.
    """
    check_problem(problem, Problem)
    if closure is None:
        return limit_of_stages(stages_of(problem))
    return limit_of_stages([Stage(0.0, problem.time.stop, problem, _always(problem), closure)])
