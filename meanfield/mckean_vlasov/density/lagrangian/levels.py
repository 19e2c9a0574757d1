"""Levels of one problem, solved on one budget."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.mckean_vlasov.density.lagrangian.budget import Budget
from meanfield.mckean_vlasov.density.lagrangian.level import ExpensiveError, Level
from meanfield.mckean_vlasov.density.lagrangian.points import Frames, Nodes
from meanfield.mckean_vlasov.density.lagrangian.preparation import prepare, run
from meanfield.mckean_vlasov.density.plan import check_memory
from meanfield.mckean_vlasov.limit import Limit

FACTORS = tuple(factor * 2.0**k for k in range(6) for factor in (1.0, 4.0 / 3.0))
"""Factors on the number of points, in the order in which levels are solved."""

LOOSER = 10.0
"""Factor on the error of steps in the run that measures what they leave."""

KEPT_LEVELS = 4
"""Size of all levels that are kept, in units of the finest one."""

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
        outputs, shape = len(self.limit.times), (len(frames.nodes.solved[1]), points)
        check_memory(outputs, shape, 2 * outputs * KEPT_LEVELS + 40, "points")
        level = Level(self.limit, frames, points, step_tolerance, self.budget)
        if self.rough is None or not np.all(np.isfinite(self.rough.moments)):
            self.rough = level
        self._watch(level, factor)
        try:
            run(level, f"density, {points} points")
        except ExpensiveError:
            raise
        except BlowUpError:
            if factor >= FACTORS[4]:
                raise
            return None
        self.rough = level
        return level

    def coarsest(self, frames: Frames, step_tolerance: float) -> Level:
        """The first level whose points suffice."""
        for factor in FACTORS:
            level = self.solved(frames, factor, step_tolerance)
            if level is not None:
                return level
        raise AssertionError("the finest levels raise")

    def again(self, level: Level, tolerance: float) -> Level:
        """The same level with steps of another accuracy."""
        level = Level(self.limit, level.frames, level.points, tolerance, self.budget)
        run(level, f"density, {level.points} points")
        return level
