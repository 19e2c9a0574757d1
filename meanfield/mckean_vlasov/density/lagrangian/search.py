"""Solutions of a given accuracy: levels of more points until the estimated error is small enough.

The error has five parts, each of them measured: the number of points (`estimate`), the deviation from second order, the
time steps, the nodes in u, and E[w^2] = 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.mckean_vlasov.density.lagrangian.assembly import Found, Parts, assembled, steps_error
from meanfield.mckean_vlasov.density.lagrangian.budget import Budget
from meanfield.mckean_vlasov.density.lagrangian.estimate import LEAST_LEVELS, estimated, extrapolated
from meanfield.mckean_vlasov.density.lagrangian.grading import PLAIN_REACH, Grading
from meanfield.mckean_vlasov.density.lagrangian.level import ExpensiveError, Level, StuckError
from meanfield.mckean_vlasov.density.lagrangian.points import Frames, Nodes
from meanfield.mckean_vlasov.density.lagrangian.preparation import SPACING, prepare, run
from meanfield.mckean_vlasov.density.plan import check_memory
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.density.solution import Solution
from meanfield.mckean_vlasov.limit import Limit

FACTORS = tuple(factor * 2.0**k for k in range(6) for factor in (1.0, 4.0 / 3.0))
"""Factors on the number of points, in the order in which levels are solved."""

STEP_SHARE, LONGEST_STEPS = 0.2, 2e-6
"""Error of w that a step may make to begin with, as a share of the tolerance, and at most."""

LOOSER = 10.0
"""Factor on the error of steps in the run that measures what they leave."""

NODES_TOLERANCE = 1e-8
"""Accuracy for which the default numbers of nodes are a good start; errors fall exponentially with the nodes."""

MORE_NODES = 1.35
"""Factor on the number of nodes in u from one trial to the next."""

NODES_SAFETY = 2.0
"""Factor on the change by more nodes: 1/(1 - MORE_NODES^-p) with p = 2.3, where kinks in u keep the order p low."""

NODES_SHARE = 0.25
"""Share of the tolerance that is left to the error of the nodes in u."""

POINTS_SHARE = 0.2
"""Share of the tolerance below which the error of the points is not what misses it."""

ENOUGH_STEPS = 0.2
"""Share of the tolerance above which steps of the first level are shortened before there are others."""

FINEST_STEPS = 1e-5
"""Least error of a step in units of the tolerance; rounding is not far below."""

MOST_NODES = 4000

KEPT_LEVELS = 4
"""Size of all levels that are kept, in units of the finest one."""

TOO_LONG = "more levels would take too long"
TOO_MANY_NODES = "more of them would take too long"

NODES_WORK = 5.5
"""Work of a solution with more nodes and of all that its estimate takes, in units of that of its first level."""

Watch = Callable[[Level, float], None]
"""Observer, called with each level before its solution and its factor; an exception ends the search."""


def solve_to_tolerance(
    limit: Limit,
    settings: DensitySettings,
    tolerance: float,
    watch: Watch = lambda *_: None,
    node_scale: float = 1.0,
    budget: Budget | None = None,
) -> Solution:
    """Solve with an error of q and r below the tolerance; a failure says by how much it is missed.

    `node_scale` is a factor on the number of nodes in u to begin with. Solutions that share a budget end in its time.
    """
    return _Search(limit, settings, tolerance, watch, node_scale, budget or Budget()).solve()


class _Search:
    """The levels of one problem."""

    def __init__(
        self,
        limit: Limit,
        settings: DensitySettings,
        tolerance: float,
        watch: Watch,
        node_scale: float,
        budget: Budget,
    ) -> None:
        self._limit, self._settings, self._tolerance, self._watch = limit, settings, tolerance, watch
        self._step_tolerance, self._budget = min(STEP_SHARE * tolerance, LONGEST_STEPS), budget
        scale = 1.0 if settings.feature_nodes else math.log(tolerance) / math.log(NODES_TOLERANCE)
        self._scale = node_scale * scale
        self._nodes = self._nodes_of(self._scale)
        self._frames = Frames.plain(self._nodes, Grading(np.zeros((3, 0)), PLAIN_REACH), SPACING)
        self._trial: Level | None = None
        self._rough: Level | None = None
        self._found: Found | None = None
        self._why = TOO_LONG

    def _nodes_of(self, scale: float) -> Nodes:
        return Nodes.of(self._limit, self._settings.feature_nodes, scale)

    def solve(self) -> Solution:
        """Add levels until the estimated error is small enough."""
        try:
            self._frames, self._trial = self._prepared(self._nodes)
            found = self._refined(self._choose_nodes())
            while found and found.error > self._tolerance and found.parts.of_steps > found.parts.of_points:
                if self._finest_steps:
                    break
                self._step_tolerance /= LOOSER
                first = self._coarsest(self._frames, self._step_tolerance)
                found = self._refined(self._with_short_steps(first))
        except ExpensiveError as error:
            return self.solution(self._missed(TOO_LONG) if self._found else self._blown_up(error))
        except BlowUpError as error:
            return self.solution(self._blown_up(error))
        except KeyboardInterrupt:
            return self.solution("interrupted")
        if self._found and self._found.error <= self._tolerance:
            return self.solution("complete")
        return self.solution(self._missed(self._why))

    def _prepared(self, nodes: Nodes, known: Frames | None = None) -> tuple[Frames, Level]:
        """Frames of nodes, and the trial run that led to them; known ones of fewer nodes are a start."""
        return prepare(self._limit, nodes, self._budget, LOOSER * self._step_tolerance, known)

    def _refined(self, by_steps: tuple[Level, Level]) -> Found | None:
        """Add levels to the first one, with shorter and longer steps, until the estimated error is small enough.

        It ends, too, where more points do not help.

        Returns
        -------
        Found or None
            All levels that were added, or None where they are too few for an estimate.
        """
        first = by_steps[0]
        levels, steps, found = [first], steps_error(*by_steps), None
        least = first.points / self._frames.first_points(self._limit)
        for factor in (each for each in FACTORS if each > 1.1 * least):
            if self._too_expensive(levels[-1], factor):
                self._why = TOO_LONG
                return found
            level = self._solved(self._frames, factor, self._step_tolerance)
            if level is not None:
                levels.append(level)
            if len(levels) < LEAST_LEVELS:
                continue
            best = extrapolated(levels)[:, :-1]
            norm = np.abs(best[:, -1:] - 1.0) * np.abs(best[:, :-1]).max(axis=1, keepdims=True)
            points = estimated(levels, self._tolerance)
            parts = Parts(points, steps, NODES_SAFETY * self._node_error, np.broadcast_to(norm, points.shape))
            found = Found(list(levels), parts, by_steps)
            if self._found is None or found.error < self._found.error:
                self._found = found
            if found.error <= self._tolerance:
                return found
            if points.max() <= POINTS_SHARE * self._tolerance:
                break
        self._why = "it does not fall with more points"
        return found

    def _solved(self, frames: Frames, factor: float, step_tolerance: float) -> Level | None:
        """A level, or None where its points are too few."""
        points = math.ceil(factor * frames.first_points(self._limit))
        outputs = len(self._limit.times)
        shape = len(frames.nodes.solved[1]), points
        check_memory(outputs, shape, 2 * outputs * KEPT_LEVELS + 40, "points")
        level = Level(self._limit, frames, points, step_tolerance, self._budget)
        if self._rough is None or not np.all(np.isfinite(self._rough.moments)):
            self._rough = level
        self._watch(level, factor)
        try:
            run(level, f"density, {points} points")
        except ExpensiveError:
            raise
        except BlowUpError:
            if factor >= FACTORS[4]:
                raise
            return None
        self._rough = level
        return level

    def _coarsest(self, frames: Frames, step_tolerance: float) -> Level:
        """The first level whose points suffice."""
        for factor in FACTORS:
            level = self._solved(frames, factor, step_tolerance)
            if level is not None:
                return level
        raise AssertionError("the finest levels raise")

    def _choose_nodes(self) -> tuple[Level, Level]:
        """Take more nodes in u until still more of them change little.

        Returns
        -------
        tuple of Level
            The first level with steps that are short enough, and with longer ones. Steps come first, because errors of
            theirs would look like those of nodes.
        """
        by_steps = self._with_short_steps(self._coarsest(self._frames, self._step_tolerance))
        level = by_steps[0]
        self._node_error = np.zeros_like(level.moments[:, :-2])
        while True:
            more = self._nodes_of(MORE_NODES * self._scale)
            if len(more.u_weight) == len(self._nodes.u_weight):
                break  # laws of the coordinates with finitely many values, or rules that have no more nodes
            growth = len(more.u_weight) / len(self._nodes.u_weight)
            if self._node_error.any() and not self._budget.allows(NODES_WORK * growth * level.work):
                break
            if any(each.size for each in self._frames.jumps):
                known = None if self._frames.grading.terms.size else self._frames
                frames, trial = self._prepared(more, known)
            else:
                frames, trial = Frames.plain(more, self._frames.grading, self._frames.spacing), None
            better = self._coarsest(frames, self._step_tolerance)
            self._node_error = np.abs(better.moments - level.moments)[:, :-2]
            enough = self._node_error.max() <= NODES_SHARE * self._tolerance or self._settings.feature_nodes
            if enough or len(more.u_weight) > MOST_NODES:
                break
            self._scale, self._nodes, level = MORE_NODES * self._scale, more, better
            self._frames, self._trial = frames, trial
        return by_steps if level is by_steps[0] else self._with_short_steps(level)

    def _with_short_steps(self, level: Level) -> tuple[Level, Level]:
        """The level, or one with shorter time steps where these are needed, and the same with longer ones."""
        trial, tolerance = self._trial, LOOSER * self._step_tolerance
        same = trial and trial.frames is level.frames and trial.points == level.points and trial.tolerance == tolerance
        try:
            looser = trial if trial and same else self._again(level, tolerance)
        except StuckError:
            if self._finest_steps:
                raise
            looser, level = level, self._with_shorter_steps(level)
        while steps_error(level, looser).max() > ENOUGH_STEPS * self._tolerance and not self._finest_steps:
            looser, level = level, self._with_shorter_steps(level)
        return level, looser

    def _with_shorter_steps(self, level: Level) -> Level:
        """The same level with shorter steps, as all others will have from now on."""
        self._step_tolerance /= LOOSER
        return self._again(level, self._step_tolerance)

    @property
    def _finest_steps(self) -> bool:
        """Whether steps that are yet shorter would gain nothing."""
        return self._step_tolerance < FINEST_STEPS * self._tolerance

    def _again(self, level: Level, tolerance: float) -> Level:
        """The same level with steps of another accuracy."""
        level = Level(self._limit, level.frames, level.points, tolerance, self._budget)
        run(level, f"density, {level.points} points")
        return level

    def _too_expensive(self, last: Level, factor: float) -> bool:
        points = factor * self._frames.first_points(self._limit)
        return not self._budget.allows(last.work * points / last.points)

    def _blown_up(self, error: BlowUpError) -> str:
        """Status of an error, which says so if numbers are shown whose own error is unknown."""
        shown = self._found is None and self._rough is not None and bool(np.isfinite(self._rough.moments).all())
        return error.status + ("; the error of q and r as they are is unknown" if shown else "")

    def _missed(self, why: str) -> str:
        if self._found is None:
            return f"failed: the error of q and r is unknown, because {why}; raise density.tolerance"
        error, part = self._found.error, self._found.parts.largest
        remedy = "raise it, or take density.scheme = 'eulerian'"
        if part == "nodes in u" and self._settings.feature_nodes:
            remedy = "raise density.feature_nodes, or leave it out"
        elif part == "nodes in u":
            why = TOO_MANY_NODES
        return (
            f"failed: the error of q and r is estimated at {error:.2g} (mostly of the {part}), above "
            f"density.tolerance = {self._tolerance:g}, and {why}; {remedy}"
        )

    def solution(self, status: str) -> Solution:
        """Solution from the best levels; without an estimate, from a single one as far as it came."""
        return assembled(self._found, [self._single()] if self._found is None else self._found.levels, status)

    def _single(self) -> Level:
        """The last level that was solved, or begun; the start alone, on plain frames, where none came so far."""
        if self._rough is not None and np.any(np.isfinite(self._rough.X)):
            return self._rough
        frames = Frames.plain(self._nodes, Grading(np.zeros((3, 0)), PLAIN_REACH), SPACING)
        start = Level(self._limit, frames, frames.first_points(self._limit), 1.0, self._budget)
        start.reach(0)
        return start
