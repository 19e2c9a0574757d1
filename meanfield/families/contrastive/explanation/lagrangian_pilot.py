"""Predicted cost of a Lagrangian density: the first half second of its real search, extrapolated to the rest."""

from __future__ import annotations

import time

from meanfield.families.contrastive.explanation.cost import DensityCost
from meanfield.mckean_vlasov.density.lagrangian.level import Level
from meanfield.mckean_vlasov.density.lagrangian.search import FACTORS, solve_to_tolerance
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.limit import Limit

BUDGET = 0.5
"""Seconds that a trial run may take."""

USUAL_FACTOR = 3.0
"""Factor on the number of points of the last level of most problems."""

POINT_STEP = 2.5e-7
"""Seconds for each point and step before anything was measured."""

USUAL_STEPS = 60
"""Number of steps of most problems."""

USUAL_CELLS = 300
"""Number of cells of P in most results."""


class _OverBudgetError(Exception):
    """Signal that the next level would take too long for a trial run."""


class _Pilot:
    """Observer of a trial run, called before each level is solved."""

    def __init__(self) -> None:
        self.started = self._since = time.perf_counter()
        self.level: Level | None = None
        self.factor, self._seconds_per_point = FACTORS[0], POINT_STEP * USUAL_STEPS

    def __call__(self, level: Level, factor: float) -> None:
        """See `meanfield.mckean_vlasov.density.lagrangian.search.Watch`."""
        now = time.perf_counter()
        if self.level is not None:
            self._seconds_per_point = (now - self._since) / (self.level.points * self.level.nodes)
        self.level, self.factor, self._since = level, factor, now
        if now - self.started + self._seconds_per_point * level.points * level.nodes > BUDGET:
            raise _OverBudgetError

    def rest(self) -> float:
        """Predicted seconds for the levels that are left, and one for the error of the time steps."""
        assert self.level is not None
        unit = self.level.points * self.level.nodes / self.factor
        left = sum(f for f in FACTORS if self.factor <= f <= max(USUAL_FACTOR, self.factor))
        return float(self._seconds_per_point * unit * (left + FACTORS[0]))


def lagrangian_cost(limit: Limit, settings: DensitySettings, tolerance: float) -> DensityCost:
    """Predict time and memory of a Lagrangian density by a short run of it."""
    pilot, left, warning, cells = _Pilot(), 0.0, "", USUAL_CELLS
    try:
        solution = solve_to_tolerance(limit, settings, tolerance, watch=pilot)
    except _OverBudgetError:
        left = pilot.rest()
    else:
        warning = "" if solution.status == "complete" else f"the density {solution.status}"
        cells = solution.grid.shape[1]
    level = pilot.level
    if level is None:  # trial runs have failed already
        nodes = solution.grid.shape[0]
        memory = 8.0 * len(limit.times) * 4 * nodes * cells
        return DensityCost(time.perf_counter() - pilot.started, memory, nodes, cells, warning)
    nodes, last = len(level.frames.nodes.u_weight), max(USUAL_FACTOR, pilot.factor)
    points = level.points / pilot.factor * sum(f for f in FACTORS if f <= last)
    memory = 8.0 * len(limit.times) * (2 * level.nodes * points + 4 * nodes * cells)
    seconds = time.perf_counter() - pilot.started + left
    return DensityCost(seconds, memory, nodes, cells, warning)
