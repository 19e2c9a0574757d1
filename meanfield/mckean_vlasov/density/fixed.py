"""Solutions with given cells and steps: one, or two that are extrapolated."""

from __future__ import annotations

from meanfield.errors import InputError
from meanfield.mckean_vlasov.density.level import Level, Thresholds, combined_density, extrapolated_moments
from meanfield.mckean_vlasov.density.level_search import Factors, solved
from meanfield.mckean_vlasov.density.plan import WIDEST, Plan, check_memory, fixed_plan
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.density.solution import Solution
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.extrapolation import SMOOTH_POWERS, extrapolation_weights
from meanfield.numerics.finite_volumes.grid import MakeStep
from meanfield.process.progress import progress_bar

THRESHOLDS = Thresholds(norm=0.05, negative=1e-14, edge=1e-9, edge_mean=1e-9)
"""Thresholds of a solution with given cells and steps, so loose that only unintended ones fail."""

CELL_STEP = 2e-9
"""Seconds for each cell, node and step; docs/cost.md has 1.3 to 2 ns."""

LONGEST_TIME = 86_400.0
"""Largest predicted time in seconds of a solution, a day."""


def solve_fixed(limit: Limit, settings: DensitySettings, make_step: MakeStep | None) -> Solution:
    """Solve with the cells and steps of the settings, and defaults for what they leave open."""

    def attempt_with(factors: Factors) -> _Attempt:
        return _Attempt(limit, settings, fixed_plan(limit, settings, *factors), make_step)

    def allowed(attempt: _Attempt, factors: Factors) -> bool:
        # A plan that cannot change, because the settings fix it or it is at its limits, is not tried twice.
        return factors.widening <= WIDEST and fixed_plan(limit, settings, *factors).size != attempt.plan.size

    levels, status = solved(attempt_with, 1.5, allowed)  # mass has reached the outermost cells
    return levels.solution(status)


def levels_of(settings: DensitySettings) -> tuple[int, ...]:
    """Refinement factors of the levels."""
    return (1,) if settings.order == 2 else (1, 2)


def check_work(limit: Limit, settings: DensitySettings, plan: Plan) -> float:
    """Cells times nodes times steps of all levels.

    Raises
    ------
    InputError
        If they would take longer than a day.
    """
    nodes, cells = plan.grid(limit, solved=True).shape
    work = float(nodes) * cells * plan.schedule.total * sum(k * k for k in levels_of(settings))
    if CELL_STEP * work > LONGEST_TIME:
        raise InputError(
            f"density: {plan.schedule.total:.4g} steps on {nodes} nodes x {cells} cells would take about "
            f"{CELL_STEP * work / LONGEST_TIME:,.2g} days, and may take one; lower density.steps, density.cells or "
            "density.feature_nodes, or give density.tolerance in their place"
        )
    return work


class _Attempt:
    """The levels of one plan, which reach the output times together."""

    def __init__(self, limit: Limit, settings: DensitySettings, plan: Plan, make_step: MakeStep | None) -> None:
        self.plan, self._factors = plan, levels_of(settings)
        check_work(limit, settings, plan)
        self._grid, self._nodes, self._outputs = plan.grid(limit), plan.nodes(limit), len(limit.times)
        check_memory(self._outputs, self._grid.shape, sum(k * (self._outputs + 6) for k in self._factors))
        solved = plan.grid(limit, solved=True)
        self._levels = [Level(limit, solved, plan.schedule, k, THRESHOLDS, make_step) for k in self._factors]

    def solve(self) -> str:
        """Advance to the last output time and return the status."""
        with progress_bar(self._outputs - 1, "density") as bar:
            for index in range(self._outputs):
                for level in self._levels:
                    level.reach(index)
                bar.update(index > 0)
        return "complete"

    def solution(self, status: str) -> Solution:
        """Solution up to the last output time that was reached."""
        weights = extrapolation_weights(self._factors, SMOOTH_POWERS[: len(self._factors) - 1])
        moments, (density, _) = extrapolated_moments(self._levels, weights), combined_density(self._levels, weights, 1)
        effort: dict[str, object] = {
            "cells": [level.grid.shape[1] for level in self._levels],
            "steps": [level.steps for level in self._levels],
            "nodes": len(self._nodes.u),
        }
        return Solution(self._grid, moments, self._nodes.unfolded(density, 1, 2), status, effort)
