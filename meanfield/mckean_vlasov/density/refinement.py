"""Solutions of a given accuracy: levels of finer cells and steps until the estimated error is small enough.

Level k has k cells in place of each of the coarsest, and k steps. Richardson extrapolation over the last few levels
eliminates the leading powers of the error; what one more level and power change is the estimate of what is left. The
nodes in u have an error of their own, which a run with more of them on a coarse level shows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from meanfield.mckean_vlasov.density.level import (
    Level,
    Thresholds,
    combined_density,
    extrapolated_masses,
    extrapolated_moments,
)
from meanfield.mckean_vlasov.density.level_search import MORE_NODES, Factors, LevelSearch, solved
from meanfield.mckean_vlasov.density.plan import WIDEST, Plan, check_memory, coarse_plan
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.density.solution import Errors, Solution
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.extrapolation import (
    KINKED_POWERS,
    SMOOTH_POWERS,
    ErrorSeries,
    extrapolation_weights,
    first_order_rest,
)
from meanfield.numerics.finite_volumes.grid import MakeStep
from meanfield.typing import FloatArray

NEGATIVE_SHARE, EDGE_SHARE, EDGE_MEAN_SHARE = 1e-2, 1e2, 1e-3
"""In units of the tolerance: what ringing may do, and the probability at the edges, for one node and averaged over u.
Far nodes of hardly any weight come close to the edges first."""


def solve_to_tolerance(
    limit: Limit,
    settings: DensitySettings,
    tolerance: float,
    make_step: MakeStep | None = None,
    node_scale: float = 1.0,
) -> Solution:
    """Solve with an error of q and r below the tolerance; a failure says by how much it is missed.

    `node_scale` is a factor on the number of nodes in u to begin with.
    """
    widest = 1.0 if settings.half_width else WIDEST

    def search_with(factors: Factors) -> CellSearch:
        plan = coarse_plan(limit, settings, tolerance, *factors)
        plan = replace(plan, node_scale=node_scale * plan.node_scale)
        return CellSearch(limit, plan, tolerance, bool(settings.feature_nodes), make_step)

    def allowed(_: CellSearch, factors: Factors) -> bool:
        return factors.refinement <= 64.0 and factors.widening <= widest  # no more steps help

    search, status = solved(search_with, 1.25, allowed)  # mass has reached the outermost cells
    return search.solution(status)


class CellSearch(LevelSearch[Plan, Level]):
    """The levels above one coarsest grid."""

    factors = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
    node_factors = (2, 3, 4, 6, 8, 12, 16)
    forgiven = 6
    most_work = 1e10  # it takes some ten seconds
    node_share = 0.2
    node_fall = 0.5

    def __init__(
        self, limit: Limit, plan: Plan, tolerance: float, nodes_given: bool, make_step: MakeStep | None
    ) -> None:
        super().__init__(plan, tolerance, nodes_given)
        self._limit, self._make_step, self.what = limit, make_step, limit.what_is_judged
        ringing, edge, edge_mean = (share * tolerance for share in (NEGATIVE_SHARE, EDGE_SHARE, EDGE_MEAN_SHARE))
        # A level whose E[w^2] is off by 0.5 is useless.
        self._thresholds = Thresholds(0.5, ringing, edge, edge_mean)
        self._powers = KINKED_POWERS if any(prior.functions.kinks for prior in limit.priors) else SMOOTH_POWERS
        self._errors: Errors | None = None
        self._series = ErrorSeries()

    def new_level(self, plan: Plan, factor: int) -> Level:
        """See `LevelSearch.new_level`."""
        grid, outputs = plan.grid(self._limit, solved=True), len(self._limit.times)
        check_memory(outputs, (grid.shape[0], factor * grid.shape[1]), 3 * outputs + 6)
        return Level(self._limit, grid, plan.step_times, factor, self._thresholds, self._make_step)

    def work(self, plan: Plan, factor: int) -> float:
        """See `LevelSearch.work`."""
        nodes, cells = plan.grid(self._limit, solved=True).shape
        return float(nodes * cells * plan.step_times.total) * factor**2

    def with_more_nodes(self, plan: Plan) -> Plan | None:
        """See `LevelSearch.with_more_nodes`."""
        more = replace(plan, node_scale=MORE_NODES * plan.node_scale)
        return None if len(more.nodes(self._limit).u) == len(plan.nodes(self._limit).u) else more

    def size(self, errors: FloatArray, judged: FloatArray) -> float:
        """The largest of all."""
        return float(errors.max())

    def solution(self, status: str) -> Solution:
        """Solution by extrapolation of the last levels; if there are none, the part of an unfinished one."""
        used = self.levels[-len(self._powers) :] or [self.unfinished or self.new_level(self.plan, 1)]
        weights = extrapolation_weights([level.factor for level in used], self._powers[: len(used) - 1])
        finest = used[-1]
        several = displayed_cells(finest.grid.h * finest.factor, finest.factor)
        moments = extrapolated_moments(used, weights)
        density, change = combined_density(used, weights, several)
        grid, P = self.plan.grid(self._limit).refined(several), self.plan.nodes(self._limit).unfolded(density, 1, 2)
        effort = {
            "cells": [level.grid.shape[1] for level in used],
            "steps": [level.steps for level in used],
            "nodes": len(grid.u),
        }
        errors = self._errors and replace(self._errors, density=self._errors.density + change)
        return Solution(grid, moments, P, status, effort, errors)

    def estimate(self) -> float:
        """Error of the extrapolation by one that uses a level and a power more."""
        powers = self._powers
        for old in self.levels:
            if 2 * old.factor < self.levels[-1].factor:
                old.forget_densities()
        if len(self.levels) <= len(powers) or not self._resolved():
            return self.error
        last = self.levels[-len(powers) - 1 :]
        factors = [level.factor for level in last]
        less = np.concatenate([[0.0], extrapolation_weights(factors[1:], powers[:-1])])
        change = extrapolation_weights(factors, powers) - less
        moments = np.abs(extrapolated_moments(last, change))[:, : self._limit.judged]
        leading = abs(float(less @ np.array(factors, dtype=float) ** -powers[-1]))
        safety = self._series.safety(float(moments.max()), leading)
        distance = partial(_distance, last[-1].grid.u_weight)
        masses = distance(extrapolated_masses(last, change))
        all_moments = np.array([level.judged for level in last])
        of_moments = first_order_rest(factors, all_moments, less, lambda x: np.abs(x).max(axis=1))
        of_masses = first_order_rest(factors, np.array([level.masses for level in last]), less, distance)
        # Without the factor 2 true errors of twelve problems are up to 1.5 times as large as estimated, and once 3.6.
        of_moments, of_masses = 2.0 * (safety * moments + of_moments), 2.0 * (safety * masses + of_masses)
        # At single times changes are small by chance: the largest of all times counts, as it does for moving points.
        largest = np.broadcast_to((of_moments + self.node_error).max(axis=0), of_moments.shape)
        self._errors = Errors(largest, of_masses)
        return float(largest.max())

    def _resolved(self) -> bool:
        """Whether the finest cells are narrow for conditional densities of mean variance at most E[w^2] - |q|^2.

        Where they are not, solutions on different cells may be wrong alike.
        """
        finest = self.levels[-1]
        d1, norm = len(self._limit.coordinates), self._limit.initial_norm
        squares = (finest.moments[:, :d1] ** 2).sum(axis=1)
        variance = norm - min(float(squares.max()), norm)
        if self._limit.free_norm:
            variance = max(float((finest.moments[:, -2] - squares).min()), 0.0)
        # Levels with cells wider than half of a conditional deviation cannot be compared.
        return finest.grid.h**2 <= 0.5**2 * variance


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
