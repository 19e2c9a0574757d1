"""Levels of one problem, solved on one budget."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.mckean_vlasov.density.lagrangian.budget import Budget
from meanfield.mckean_vlasov.density.lagrangian.display import work_of
from meanfield.mckean_vlasov.density.lagrangian.level import DivergedError, ExpensiveError, Level
from meanfield.mckean_vlasov.density.lagrangian.points import Frames
from meanfield.mckean_vlasov.density.lagrangian.preparation import check_level, prepare, run
from meanfield.mckean_vlasov.density.start import Nodes
from meanfield.mckean_vlasov.limit import Limit

FACTORS = tuple(factor * 2.0**k for k in range(8) for factor in (1.0, 4.0 / 3.0))
"""Factors on the number of points, in the order in which levels are solved."""

LOOSER = 10.0
"""Factor on the error of steps in the run that measures what they leave."""

NODES_WORK = 4.4
"""Work of a solution with more nodes and of the least that its estimate takes, two levels and longer steps, in units of
that of its first level."""

Watch = Callable[[Level, float], None]
"""Observer, called with each level before its solution and its factor; an exception ends the search."""


class Levels:
    """Solver of the levels of one problem.

    Parameters
    ----------
    limit : Limit
    watch : callable
    budget : Budget
        What all levels may take together.

    Attributes
    ----------
    rough : Level or None
        The last level that was solved, or the first that was begun.
    """

    def __init__(self, limit: Limit, watch: Watch, budget: Budget) -> None:
        self.limit, self.budget, self._watch = limit, budget, watch
        self.rough: Level | None = None

    def prepared(self, nodes: Nodes, step_tolerance: float, known: Frames | None = None) -> tuple[Frames, Level]:
        """Frames of nodes, and the trial run that led to them; known ones of fewer nodes are a start."""
        return prepare(self.limit, nodes, self.budget, LOOSER * step_tolerance, known)

    def solved(self, frames: Frames, factor: float, step_tolerance: float) -> Level | None:
        """A level, or None where its points are too few."""
        points = math.ceil(factor * frames.first_points(self.limit))
        check_level(self.limit, frames, points)
        level = Level(self.limit, frames, points, step_tolerance, self.budget)
        if self.rough is None or not np.all(np.isfinite(self.rough.moments)):
            self.rough = level
        self._watch(level, factor)
        try:
            run(level, f"density, {points} points")
        except (ExpensiveError, DivergedError):
            raise
        except BlowUpError:
            if factor >= FACTORS[4]:
                raise
            return None
        self.rough = level
        return level

    def coarsest(self, frames: Frames, step_tolerance: float) -> Level:
        """The first level whose points suffice; work is kept to show it."""
        for factor in FACTORS:
            level = self.solved(frames, factor, step_tolerance)
            if level is not None:
                self.budget.reserve(work_of(level))
                return level
        raise AssertionError("the finest levels raise")

    def allows(self, growth: float, first: Level) -> bool:
        """Whether the budget allows that many times the nodes of a first level, and to show them."""
        return self.budget.allows(NODES_WORK * growth * first.work + (growth - 1.0) * self.budget.reserved)

    def again(self, level: Level, tolerance: float) -> Level:
        """The same level with steps of another accuracy."""
        level = Level(self.limit, level.frames, level.points, tolerance, self.budget)
        run(level, f"density, {level.points} points")
        return level
