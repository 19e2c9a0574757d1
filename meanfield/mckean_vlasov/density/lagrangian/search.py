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
from meanfield.mckean_vlasov.density.lagrangian.display import work_of
from meanfield.mckean_vlasov.density.lagrangian.estimate import LEAST_LEVELS, estimated, extrapolated
from meanfield.mckean_vlasov.density.lagrangian.grading import PLAIN_REACH, Grading
from meanfield.mckean_vlasov.density.lagrangian.level import ExpensiveError, Level, StuckError
from meanfield.mckean_vlasov.density.lagrangian.points import Frames, Nodes
from meanfield.mckean_vlasov.density.lagrangian.preparation import SPACING, continued, prepare, run
from meanfield.mckean_vlasov.density.lagrangian.rules import (
    MIXED_SHARE,
    NODES_SAFETY,
    Rule,
    change,
    fewest_nodes,
    mixed_change,
    without_correction,
)
from meanfield.mckean_vlasov.density.plan import check_memory
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.density.solution import Solution
from meanfield.mckean_vlasov.limit import Limit
from meanfield.typing import FloatArray

FACTORS = tuple(factor * 2.0**k for k in range(6) for factor in (1.0, 4.0 / 3.0))
"""Factors on the number of points, in the order in which levels are solved."""

STEP_SHARE, LONGEST_STEPS = 0.2, 2e-6
"""Error of w that a step may make to begin with, as a share of the tolerance, and at most."""

LOOSER = 10.0
"""Factor on the error of steps in the run that measures what they leave."""

NODES_TOLERANCE = 1e-8
"""Accuracy for which the default numbers of nodes are a good start; errors fall exponentially with the nodes."""

MORE_NODES, MANY_MORE_NODES, SLOW_TRIALS = 1.35, 1.9, 3
"""Factor on nodes per feature from one trial to the next, and on all nodes after so many: laws have a kink in u."""

NODES_SHARE = 0.5
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

NODES_WORK = 5.5
"""Work of a solution with more nodes and of all that its estimate takes, in units of that of its first level."""

Watch = Callable[[Level, float], None]
"""Observer, called with each level before its solution and its factor; an exception ends the search."""


class Search:
    """The levels of one problem.

    Parameters
    ----------
    limit : Limit
    settings : DensitySettings
    tolerance : float
        Largest error of q and r.
    watch : callable, optional
    budget : Budget, optional
        What all levels may take together.
    """

    def __init__(
        self,
        limit: Limit,
        settings: DensitySettings,
        tolerance: float,
        watch: Watch = lambda *_: None,
        budget: Budget | None = None,
    ) -> None:
        self._limit, self._settings, self._tolerance, self._watch = limit, settings, tolerance, watch
        self._step_tolerance, self._budget = min(STEP_SHARE * tolerance, LONGEST_STEPS), budget or Budget()
        self._scale = 1.0 if settings.feature_nodes else math.log(tolerance) / math.log(NODES_TOLERANCE)
        self._nodes = self._nodes_of(self._scale)
        self._frames = Frames.plain(self._nodes, Grading(np.zeros((3, 0)), PLAIN_REACH), SPACING)
        self._trial: Level | None = None
        self._rough: Level | None = None
        self._second: Level | None = None
        self._found: Found | None = None
        self._why = TOO_LONG

    def _nodes_of(self, scale: float) -> Nodes:
        return Nodes.of(self._limit, self._settings.feature_nodes, scale)

    def solve(self) -> Solution:
        """Add levels until the estimated error of q and r is small enough; a failure says by how much it is missed."""
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
            last = levels[-1]
            if not self._budget.allows(last.work * factor * self._frames.first_points(self._limit) / last.points):
                self._why = TOO_LONG
                return found
            level = self._known(factor) or self._solved(self._frames, factor, self._step_tolerance)
            if level is not None:
                levels.append(level)
            if len(levels) < LEAST_LEVELS:
                continue
            best = extrapolated(levels)[:, :-1] + self._correction.moments
            norm = np.abs(best[:, -1:] - 1.0) * np.abs(best[:, :-1]).max(axis=1, keepdims=True)
            points = estimated(levels, self._tolerance)
            nodes = np.broadcast_to(self._correction.error, points.shape)
            parts = Parts(points, steps, nodes, np.broadcast_to(norm, points.shape))
            found = Found(list(levels), self._correction, parts, by_steps)
            if self._found is None or found.error < self._found.error:
                self._found = found
            if found.error <= self._tolerance:
                return found
            if points.max() <= POINTS_SHARE * self._tolerance:
                break
        self._why = "it does not fall with more points"
        return found

    def _known(self, factor: float) -> Level | None:
        """The second level, if that is the next one and the search for nodes has solved it."""
        next_one = math.ceil(factor * self._frames.first_points(self._limit)), self._step_tolerance
        known = self._second
        return known if known and (known.points, known.tolerance) == next_one else None

    def _solved(self, frames: Frames, factor: float, step_tolerance: float) -> Level | None:
        """A level, or None where its points are too few."""
        points = math.ceil(factor * frames.first_points(self._limit))
        outputs, shape = len(self._limit.times), (len(frames.nodes.solved[1]), points)
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
        """The first level whose points suffice; work is kept to show it."""
        for factor in FACTORS:
            level = self._solved(frames, factor, step_tolerance)
            if level is not None:
                self._budget.reserve(work_of(level))
                return level
        raise AssertionError("the finest levels raise")

    def _choose_nodes(self) -> tuple[Level, Level]:
        """Take more nodes in u until still more of them change little.

        The change of the first level may be that of its points, which vary from node to node; then the change of two
        levels decides. Levels of more points are those of the fewest nodes to which the others are a small correction.

        Returns
        -------
        tuple of Level
            The first level with steps that are short enough, and with longer ones. Steps come first, because errors of
            theirs would look like those of nodes.
        """
        by_steps = self._with_short_steps(self._coarsest(self._frames, self._step_tolerance))
        rules = [Rule(self._scale, self._frames, self._trial, by_steps[0])]
        changed, enough = np.zeros(by_steps[0].moments.shape[1] - 2), True
        while True:
            rule = rules[-1]
            many = MANY_MORE_NODES ** (1.0 / len(self._limit.coordinates))
            scale = rule.scale * (max(MORE_NODES, many) if len(rules) > SLOW_TRIALS else MORE_NODES)
            more = self._nodes_of(scale)
            growth = len(more.u_weight) / rule.size
            if growth == 1.0 or not (enough or self._allows(growth, rule.first)):
                break  # laws of finitely many values and rules that have no more nodes, or no work left
            rules.append(self._with_more(rule, scale, more))
            changed, enough = self._change(rules)
            if enough or rules[-1].size > MOST_NODES:
                break
        chosen = rules[-2] if len(rules) > 1 and enough else rules[-1]
        corrected = fewest_nodes(rules, changed, self._tolerance)
        base, self._correction = corrected or (chosen, without_correction(chosen, changed))
        self._scale, self._frames, self._trial, self._second = base.scale, base.frames, base.trial, base.second
        self._nodes = base.frames.nodes
        self._budget.reserve(work_of(base.first))
        return by_steps if base is rules[0] else self._with_short_steps(base.first)

    def _allows(self, growth: float, first: Level) -> bool:
        """Whether the budget allows that many times the nodes of a first level, and to show them."""
        return self._budget.allows(NODES_WORK * growth * first.work + (growth - 1.0) * self._budget.reserved)

    def _with_more(self, rule: Rule, scale: float, nodes: Nodes) -> Rule:
        """First level of a rule with more nodes."""
        if any(each.size for each in rule.frames.jumps):
            known = None if rule.frames.grading.terms.size else rule.frames
            frames, trial = self._prepared(nodes, known)
        else:
            frames, trial = continued(rule.frames, nodes), None
        return Rule(scale, frames, trial, self._coarsest(frames, self._step_tolerance))

    def _change(self, rules: list[Rule]) -> tuple[FloatArray, bool]:
        """Change of q and r by the last rule, and whether it is small; of two levels if the change before needed it."""
        rule, better = rules[-2:]
        by_first, mixed = change(rule, better, 1), mixed_change(rules[:-1])
        mixes = bool(mixed.max() > MIXED_SHARE * self._tolerance)
        safety = NODES_SAFETY if mixes or rule.second is None else 1.0  # what is left of a correction is less
        allowed = math.inf if self._settings.feature_nodes else NODES_SHARE * self._tolerance / safety
        if by_first.max() <= allowed and not mixes:
            return by_first, True
        if not self._budget.allows(NODES_WORK * better.first.work) or not self._second_levels(rule, better):
            return by_first + mixed, False
        by_both = change(rule, better, 2)
        return by_both, bool(by_both.max() <= allowed)

    def _second_levels(self, *rules: Rule) -> bool:
        """Solve second levels where there are none; whether all are there."""
        for rule in rules:
            if rule.second is None:
                factor = FACTORS[1] * rule.first.points / rule.frames.first_points(self._limit)
                rule.second = self._solved(rule.frames, factor, rule.first.tolerance)
        return all(rule.second is not None for rule in rules)

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

    def _blown_up(self, error: BlowUpError) -> str:
        """Status of an error, which says so if numbers are shown whose own error is unknown."""
        shown = self._found is None and self._rough is not None and bool(np.isfinite(self._rough.moments).all())
        return error.status + ("; the error of q and r as they are is unknown" if shown else "")

    def with_more_nodes(self, factor: float) -> Solution | None:
        """The same q and r, and laws of w at more nodes, with longer steps and jumps in between; None if too long."""
        assert self._found is not None
        first, nodes = self._found.levels[0], self._nodes_of(factor * self._scale)
        if not self._allows(len(nodes.u_weight) / len(self._nodes.u_weight), first):
            return None
        frames = continued(self._frames, nodes)
        try:
            more = Rule(factor * self._scale, frames, None, self._coarsest(frames, LOOSER * first.tolerance))
            self._second_levels(more)
        except (BlowUpError, KeyboardInterrupt):
            return None
        return assembled(self._found, [more.first, more.second], "complete") if more.second else None

    def _missed(self, why: str) -> str:
        if self._found is None:
            return f"failed: the error of q and r is unknown, because {why}; raise density.tolerance"
        return self._found.missed(self._tolerance, why, bool(self._settings.feature_nodes))

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
