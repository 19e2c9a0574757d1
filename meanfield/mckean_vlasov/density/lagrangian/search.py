"""Solutions of a given accuracy: levels of more points until the estimated error is small enough.

The error has five parts, each of them measured: the number of points (`estimate`), the deviation from second order, the
time steps, the nodes in u, and E[w^2] = 1.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.ingredients.unnamed_kinks import kinks_to_name
from meanfield.mckean_vlasov.density.lagrangian.assembly import Found, Parts, assembled, steps_error
from meanfield.mckean_vlasov.density.lagrangian.budget import Budget
from meanfield.mckean_vlasov.density.lagrangian.display import work_of
from meanfield.mckean_vlasov.density.lagrangian.estimate import LEAST_LEVELS, Rule, estimated, extrapolated
from meanfield.mckean_vlasov.density.lagrangian.level import ExpensiveError, Level, StuckError
from meanfield.mckean_vlasov.density.lagrangian.levels import FACTORS, LOOSER, Levels, Watch
from meanfield.mckean_vlasov.density.lagrangian.node_search import NodeSearch
from meanfield.mckean_vlasov.density.lagrangian.points import PLAIN_REACH, Frames, Grading
from meanfield.mckean_vlasov.density.lagrangian.preparation import SPACING, continued
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.density.solution import Solution
from meanfield.mckean_vlasov.density.start import Nodes, node_scale
from meanfield.mckean_vlasov.limit import Limit

STEP_SHARE, LONGEST_STEPS = 0.2, 2e-6
"""Error of w that a step may make to begin with, as a share of the tolerance, and at most."""

TOO_LONG = "more levels would take too long"


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

    Attributes
    ----------
    trial : Level or None
        Trial run of the nodes that are chosen so far.
    """

    def __init__(
        self,
        limit: Limit,
        settings: DensitySettings,
        tolerance: float,
        watch: Watch = lambda *_: None,
        budget: Budget | None = None,
    ) -> None:
        self._limit, self._settings, self._tolerance = limit, settings, tolerance
        self._step_tolerance = min(STEP_SHARE * tolerance, LONGEST_STEPS)
        self._levels = Levels(limit, watch, budget or Budget())
        self._node_search = NodeSearch(self._levels, settings, tolerance)
        self._scale = node_scale(tolerance, settings.feature_nodes)
        self._nodes = self._node_search.nodes_of(self._scale)
        self._frames = Frames.plain(self._nodes, Grading(np.zeros((4, 0)), PLAIN_REACH), SPACING)
        self.trial: Level | None = None
        self._second: Level | None = None
        self._shown: list[Level] = []
        self._found: Found | None = None
        self._why = TOO_LONG

    def solve(self) -> Solution:
        """Add levels until the estimated error of q and r is small enough; a failure says by how much it is missed."""
        try:
            found = self._refined(self.begin())
            while found and self._steps_miss(found) and not self._finest_steps:
                self._step_tolerance /= LOOSER
                first = self._levels.coarsest(self._frames, self._step_tolerance)
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

    def begin(self) -> tuple[Level, Level]:
        """Choose points and nodes in u; the first level, and the same one with longer steps.

        Raises
        ------
        BlowUpError
            If no level can be solved, or the budget is spent.
        """
        self._frames, self.trial = self._levels.prepared(self._nodes, self._step_tolerance)
        return self._choose_nodes()

    @property
    def shown(self) -> Nodes:
        """Nodes at which densities will be shown."""
        return self._nodes

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
            if not self._levels.budget.allows(
                last.work * factor * self._frames.first_points(self._limit) / last.points
            ):
                self._why = TOO_LONG
                return found
            level = self._known(factor) or self._levels.solved(self._frames, factor, self._step_tolerance)
            if level is not None:
                levels.append(level)
            if len(levels) < LEAST_LEVELS:
                continue
            best = extrapolated(levels)[:, :-1] + self._correction.moments
            norm = np.abs(best[:, :-1]).max(axis=1, keepdims=True)
            norm *= 0.0 if self._limit.free_norm else np.abs(best[:, -1:] / self._limit.initial_norm - 1.0)
            points = estimated(levels, self._tolerance)
            nodes = np.broadcast_to(self._correction.error, points.shape)
            parts = Parts(points, steps, nodes, np.broadcast_to(norm, points.shape))
            found = Found(list(levels), self._correction, parts, by_steps)
            if self._found is None or found.error < self._found.error:
                self._found = found
            if found.error <= self._tolerance:
                return found
            if points.max() <= 0.2 * self._tolerance:  # the points are not what misses the tolerance
                break
        self._why = "it does not fall with more points"
        return found

    def _known(self, factor: float) -> Level | None:
        """The second level, if that is the next one and the search for nodes has solved it."""
        next_one = math.ceil(factor * self._frames.first_points(self._limit)), self._step_tolerance
        known = self._second
        return known if known and (known.points, known.tolerance) == next_one else None

    def _choose_nodes(self) -> tuple[Level, Level]:
        """Choose nodes in u; the first level with steps that are short enough, and with longer ones.

        Steps come first, because errors of theirs would look like those of nodes.
        """
        by_steps = self._with_short_steps(self._levels.coarsest(self._frames, self._step_tolerance))
        start = Rule(self._scale, self._frames, self.trial, by_steps[0])
        base, self._correction = self._node_search.choose(start)
        self._frames, self.trial, self._second = base.frames, base.trial, base.second
        product = self._node_search.product
        several = base.on_panels and len(self._limit.coordinates) > 1
        shown = product if several and product else base
        self._shown = [each for each in (shown.first, shown.second) if each] if several else []
        self._scale, self._nodes = shown.scale, shown.frames.nodes
        self._levels.budget.reserve(work_of(shown.first))
        return by_steps if base is start else self._with_short_steps(base.first)

    def _with_short_steps(self, level: Level) -> tuple[Level, Level]:
        """The level, or one with shorter time steps where these are needed, and the same with longer ones."""
        trial, tolerance = self.trial, LOOSER * self._step_tolerance
        same = trial and trial.frames is level.frames and trial.points == level.points and trial.tolerance == tolerance
        try:
            looser = trial if trial and same else self._levels.again(level, tolerance)
        except StuckError:
            if self._finest_steps:
                raise
            looser, level = level, self._with_shorter_steps(level)
        # Steps of the first level are shortened before there are others.
        while steps_error(level, looser).max() > 0.5 * self._tolerance and not self._finest_steps:
            looser, level = level, self._with_shorter_steps(level)
        return level, looser

    def _with_shorter_steps(self, level: Level) -> Level:
        """The same level with shorter steps, as all others will have from now on."""
        self._step_tolerance /= LOOSER
        return self._levels.again(level, self._step_tolerance)

    def _steps_miss(self, found: Found) -> bool:
        """Whether the tolerance is missed by the time steps, more than by anything else."""
        parts = found.parts
        return found.error > self._tolerance and parts.of_steps > max(parts.of_points, parts.of_nodes)

    @property
    def _finest_steps(self) -> bool:
        """Whether steps that are yet shorter would gain nothing."""
        return self._step_tolerance < 1e-5 * self._tolerance  # rounding is not far below

    def _blown_up(self, error: BlowUpError) -> str:
        """Status of an error, which says so if numbers are shown whose own error is unknown."""
        shown = (
            self._found is None
            and self._levels.rough is not None
            and bool(np.isfinite(self._levels.rough.moments).all())
        )
        return error.status + (f"; the error of {self._limit.what_is_judged} as they are is unknown" if shown else "")

    def with_more_nodes(self, factor: float) -> Solution | None:
        """The same q and r, and laws of w at more nodes, with longer steps and jumps in between; None if too long."""
        assert self._found is not None
        first, nodes = self._found.levels[0], self._node_search.nodes_of(factor * self._scale)
        if not self._levels.allows(len(nodes.u_weight) / len(self._nodes.u_weight), first):
            return None
        frames = continued(self._frames, nodes)
        try:
            more = Rule(factor * self._scale, frames, None, self._levels.coarsest(frames, LOOSER * first.tolerance))
            self._node_search.second_levels(more)
        except (BlowUpError, KeyboardInterrupt):
            return None
        return assembled(self._found, [more.first, more.second], "complete") if more.second else None

    def _missed(self, why: str) -> str:
        if self._found is None:
            return (
                f"failed: the error of {self._limit.what_is_judged} is unknown, because {why}; raise density.tolerance"
            )
        return self._found.missed(self._tolerance, why, bool(self._settings.feature_nodes))

    def solution(self, status: str) -> Solution:
        """Solution from the best levels; without an estimate, from a single one as far as it came."""
        levels = [self._single()] if self._found is None else self._shown or self._found.levels
        acting = [prior for prior in self._limit.priors if status.startswith("failed") and prior.strength > 0]
        kinks = next(filter(None, (kinks_to_name(prior.name, prior.functions) for prior in acting)), "")
        return assembled(self._found, levels, f"{status}; {kinks}" if kinks else status)

    def _single(self) -> Level:
        """The last level that was solved, or begun; the start alone, on plain frames, where none came so far."""
        if self._levels.rough is not None and np.any(np.isfinite(self._levels.rough.X)):
            return self._levels.rough
        frames = Frames.plain(self._nodes, Grading(np.zeros((4, 0)), PLAIN_REACH), SPACING)
        start = Level(self._limit, frames, frames.first_points(self._limit), 1.0, self._levels.budget)
        start.reach(0)
        return start
