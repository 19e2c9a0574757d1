"""Solutions of a given accuracy: levels of finer cells and steps until the estimated error is small enough.

Level k has k cells in place of each of the coarsest, and k steps. Richardson extrapolation over the last few levels
eliminates the leading powers of the error; what one more level and power change is the estimate of what is left. The
nodes in u have an error of their own, which a run with more of them on a coarse level shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.mckean_vlasov.density.evolution import LongStepsError
from meanfield.mckean_vlasov.density.level import (
    Factors,
    Level,
    NarrowCellsError,
    Thresholds,
    combined_density,
    extrapolated_masses,
    extrapolated_moments,
)
from meanfield.mckean_vlasov.density.plan import WIDEST, Plan, check_memory, coarse_plan
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.density.solution import Errors, Solution
from meanfield.mckean_vlasov.density.start import Mirror
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.extrapolation import (
    KINKED_POWERS,
    SMOOTH_POWERS,
    ErrorSeries,
    extrapolation_weights,
    first_order_rest,
)
from meanfield.numerics.finite_volumes.grid import MakeStep
from meanfield.numerics.retry import retry
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

FACTORS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Factors on the numbers of cells and steps of the levels, in the order in which they are solved."""

NEGATIVE_SHARE, EDGE_SHARE, EDGE_MEAN_SHARE = 1e-2, 1e2, 1e-3
"""In units of the tolerance: what ringing may do, and the probability at the edges, for one node and averaged over u.
Far nodes of hardly any weight come close to the edges first."""

NODE_LEVELS = (2, 3, 4, 6, 8, 12, 16)
"""Factors of the levels on which numbers of nodes in u are compared, until the error of the cells is small enough."""

MOST_WORK = 1e10
"""Largest work of a level, as cells times nodes times steps; it takes some ten seconds."""


Watch = Callable[[Level, Errors | None], None]
"""Observer, called with each level before its solution, and the errors so far; an exception ends the search."""


Attempt = tuple[Callable[[], Solution], BlowUpError | None]
"""Function that assembles the solution of an attempt, and the error that ended the attempt."""


def solve_to_tolerance(
    limit: Limit,
    settings: DensitySettings,
    tolerance: float,
    make_step: MakeStep | None = None,
    watch: Watch = lambda *_: None,
    node_scale: float = 1.0,
) -> Solution:
    """Solve with an error of q and r below the tolerance; a failure says by how much it is missed.

    `node_scale` is a factor on the number of nodes in u to begin with.
    """
    widest = 1.0 if settings.half_width else WIDEST

    def attempt(factors: Factors) -> Attempt:
        plan = coarse_plan(limit, settings, tolerance, *factors)
        plan = replace(plan, node_scale=node_scale * plan.node_scale)
        search = _Search(limit, settings, plan, tolerance, make_step, watch)
        try:
            found = search.solve()
        except (NarrowCellsError, LongStepsError) as error:
            return partial(search.solution, error.status), error
        return lambda: found, None

    def better(factors: Factors, result: Attempt) -> Factors | None:
        following = factors.answering(result[1], 1.25)  # mass has reached the outermost cells
        if following is None or following.refinement > 64.0 or following.widening > widest:  # no more steps help
            return None
        return following

    solution, _ = retry(attempt, Factors(), better)
    return solution()


class _Search:
    """The levels above one coarsest grid."""

    def __init__(
        self,
        limit: Limit,
        settings: DensitySettings,
        plan: Plan,
        tolerance: float,
        make_step: MakeStep | None,
        watch: Watch,
    ) -> None:
        self._limit, self._settings, self._plan, self._make_step = limit, settings, plan, make_step
        self._tolerance, self._watch = tolerance, watch
        ringing, edge, edge_mean = (share * tolerance for share in (NEGATIVE_SHARE, EDGE_SHARE, EDGE_MEAN_SHARE))
        # A level whose E[w^2] is off by 0.5 is useless.
        self._thresholds = Thresholds(0.5, ringing, edge, edge_mean)
        self._powers = KINKED_POWERS if limit.prior.functions.kinks else SMOOTH_POWERS
        self._mirrors: dict[float, Mirror] = {}
        self._levels: list[Level] = []
        self._unfinished: Level | None = None
        self._errors: Errors | None = None
        self._series = ErrorSeries()
        self._node_error: FloatArray | float = 0.0

    def solve(self) -> Solution:
        """Add levels until the estimated error is small enough."""
        try:
            self._choose_nodes()
            for factor in FACTORS:
                if self._work(factor) > MOST_WORK and self._errors is not None:
                    break
                self._add_level(factor)
                self._estimate()
                if self._errors is None:
                    continue
                error, of_nodes = float(self._errors.moments.max()), float(np.max(self._node_error))
                if error <= self._tolerance:
                    return self.solution("complete")
                if error <= 2 * of_nodes:
                    break  # no level makes up for too few nodes
        except (NarrowCellsError, LongStepsError):
            raise
        except BlowUpError as error:
            return self.solution(error.status)
        except KeyboardInterrupt:
            return self.solution("interrupted")
        return self.solution(self._missed())

    def solution(self, status: str) -> Solution:
        """Solution by extrapolation of the last levels; if there are none, the part of an unfinished one."""
        used = self._levels[-len(self._powers) :] or [self._unfinished or self._new_level(1, self._plan)]
        weights = extrapolation_weights([level.factor for level in used], self._powers[: len(used) - 1])
        finest = used[-1]
        several = displayed_cells(finest.grid.h * finest.factor, finest.factor)
        moments = extrapolated_moments(used, weights)
        density, change = combined_density(used, weights, several)
        mirror = self._mirror(self._plan)
        effort = {
            "cells": [level.grid.shape[1] for level in used],
            "steps": [level.steps for level in used],
            "nodes": len(mirror.grid.u_weight),
        }
        errors = self._errors and replace(self._errors, density=self._errors.density + change)
        return Solution(mirror.grid.refined(several), moments, mirror.unfold(density), status, effort, errors)

    def _add_level(self, factor: int) -> None:
        level = self._unfinished = self._new_level(factor, self._plan)
        self._watch(level, self._errors)
        try:
            _run(level)
        except NarrowCellsError:
            raise
        except BlowUpError:
            if self._levels or factor >= 6:  # coarser levels may fail
                raise
            return
        self._levels.append(level)
        for old in self._levels:
            if 2 * old.factor < factor:
                old.forget_density()

    def _new_level(self, factor: int, plan: Plan) -> Level:
        grid = self._mirror(plan).solved
        outputs = len(self._limit.times)
        check_memory(outputs, (grid.shape[0], factor * grid.shape[1]), 3 * outputs + 6)
        return Level(self._limit, grid, plan.schedule, factor, self._thresholds, self._make_step)

    def _mirror(self, plan: Plan) -> Mirror:
        if plan.node_scale not in self._mirrors:  # plans of a search differ in nothing else
            self._mirrors[plan.node_scale] = Mirror.of(self._limit, plan.grid(self._limit))
        return self._mirrors[plan.node_scale]

    def _work(self, factor: int) -> float:
        nodes, cells = self._mirror(self._plan).solved.shape
        return float(nodes * cells * self._plan.schedule.total) * factor**2

    def _choose_nodes(self) -> None:
        """Take more nodes in u until still more of them change little."""
        for factor in NODE_LEVELS:
            if self._work(factor) > MOST_WORK:
                return
            try:
                if self._nodes_suffice(factor):
                    return
            except NarrowCellsError:
                raise
            except BlowUpError:
                if factor == NODE_LEVELS[-1]:
                    raise

    def _nodes_suffice(self, factor: int) -> bool:
        """Take more nodes while they pay on this level, and return whether the last change was small."""
        before = np.inf
        while True:
            more = replace(self._plan, node_scale=1.35 * self._plan.node_scale)  # a third more nodes in each trial
            if self._mirror(more).solved.shape == self._mirror(self._plan).solved.shape:
                return True  # laws of the coordinates with finitely many values
            few, many = self._node_level(factor, self._plan), self._node_level(factor, more)
            difference = np.abs(few.moments - many.moments)[:, :-2]
            self._node_error = 2.0 * difference  # the many are not exact
            change = float(difference.max())
            if change <= 0.2 * self._tolerance or self._settings.feature_nodes:  # the rest is for cells and steps
                return True
            if change > 0.5 * before:  # the cells are too wide to tell whether more nodes pay
                return False
            before, self._plan = change, more

    def _node_level(self, factor: int, plan: Plan) -> Level:
        level = self._new_level(factor, plan)
        if plan is self._plan:
            self._unfinished = level
        self._watch(level, self._errors)
        _run(level)
        self._unfinished = None
        level.forget_density()
        return level

    def _estimate(self) -> None:
        """Estimate the error of the extrapolation by one that uses a level and a power more."""
        powers = self._powers
        if len(self._levels) <= len(powers) or not self._resolved():
            return
        last = self._levels[-len(powers) - 1 :]
        factors = [level.factor for level in last]
        less = np.concatenate([[0.0], extrapolation_weights(factors[1:], powers[:-1])])
        change = extrapolation_weights(factors, powers) - less
        moments = np.abs(extrapolated_moments(last, change))[:, :-2]
        leading = abs(float(less @ np.array(factors, dtype=float) ** -powers[-1]))
        safety = self._series.safety(float(moments.max()), leading)
        distance = partial(_distance, last[-1].grid.u_weight)
        masses = distance(extrapolated_masses(last, change))
        all_moments = np.array([level.moments[:, :-2] for level in last])
        of_moments = first_order_rest(factors, all_moments, less, lambda x: np.abs(x).max(axis=1))
        of_masses = first_order_rest(factors, np.array([level.masses for level in last]), less, distance)
        # Without the factor 2 true errors of twelve problems are up to 1.5 times as large as estimated, and once 3.6.
        of_moments, of_masses = 2.0 * (safety * moments + of_moments), 2.0 * (safety * masses + of_masses)
        # At single times changes are small by chance: the largest of all times counts, as it does for moving points.
        largest = np.broadcast_to((of_moments + self._node_error).max(axis=0), of_moments.shape)
        self._errors = Errors(largest, of_masses)

    def _resolved(self) -> bool:
        """Whether the finest cells are narrow for conditional densities, whose mean variance is at most 1 - |q|^2.

        Where they are not, solutions on different cells may be wrong alike.
        """
        finest = self._levels[-1]
        squares = (finest.moments[:, :-3] ** 2).sum(axis=1)
        # Levels with cells wider than half of a conditional deviation cannot be compared.
        return finest.grid.h**2 <= 0.5**2 * (1.0 - min(float(squares.max()), 1.0))

    def _missed(self) -> str:
        error = np.inf if self._errors is None else float(self._errors.moments.max())
        size = "unknown" if self._errors is None else f"estimated at {error:.2g}"
        remedy = "raise it, or give density.cells and density.steps"
        if self._settings.feature_nodes and error <= 2 * np.max(self._node_error):
            remedy = "raise density.feature_nodes, or leave it out"
        return f"failed: the error of q and r is {size}, above density.tolerance = {self._tolerance:g}; {remedy}"


def _run(level: Level) -> None:
    """Advance a level to all output times."""
    with progress_bar(len(level.moments) - 1, f"density, {level.grid.shape[1]} cells") as bar:
        for index in range(len(level.moments)):
            level.reach(index)
            bar.update(index > 0)


def _distance(u_weight: FloatArray, masses: FloatArray) -> FloatArray:
    """L1 distances of densities, averaged over u, from differences of masses, shape (..., nodes, cells)."""
    return np.asarray(np.abs(masses).sum(axis=-1) @ u_weight)


def displayed_cells(width: float, factor: int) -> int:
    """Number of cells on which P is given in place of each of the coarsest level: the fewest that are narrow enough.

    They are cells of the level with half the factor, too, if there is one.

    Parameters
    ----------
    width : float
        Width of the coarsest cells.
    factor : int
        Factor of the finest level.
    """
    least = factor // 2 if factor % 2 == 0 else factor
    divisors = [k for k in range(1, least + 1) if least % k == 0]
    # P is given on cells of this width, if a level has such.
    return next((k for k in divisors if width / k <= 0.06), least)
