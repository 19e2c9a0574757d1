"""Predicted cost of a density: the first half second of its real search, extrapolated to the rest."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.density.solver import check_density
from meanfield.families.contrastive.explanation.cost import DensityCost
from meanfield.families.contrastive.explanation.lagrangian_pilot import lagrangian_cost
from meanfield.families.contrastive.limit import limit_of
from meanfield.families.contrastive.problem import Problem
from meanfield.ingredients.laws.coordinate import ThreePointCoordinate
from meanfield.mckean_vlasov.density.fixed import THRESHOLDS
from meanfield.mckean_vlasov.density.level import Level
from meanfield.mckean_vlasov.density.plan import coarse_plan, fixed_plan
from meanfield.mckean_vlasov.density.refinement import (
    FACTORS,
    MOST_WORK,
    SAFE_SHARE,
    displayed_cells,
    solve_to_tolerance,
)
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.density.solution import Errors
from meanfield.mckean_vlasov.density.solver import solve
from meanfield.mckean_vlasov.density.start import Mirror
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.schedule import Schedule

BUDGET, FEW_NODES_BUDGET = 0.5, 0.25
"""Seconds that a trial run may take, and a trial run with few nodes."""

LIKE_A_GAUSSIAN, FAR_OUT = 3.0, 25.0
"""Fourth moments of coordinates with three values in trial runs: with the first the search ends at the level of one
with many nodes, with the second it needs as short steps as their farthest nodes."""

POWER = 6
"""Least power with which the error falls from level to level, once it can be estimated."""

CELL_STEP = 2e-9
"""Seconds for each cell, node and step before anything was measured; docs/cost.md has 1.3 to 2 ns."""

USUAL_FACTOR = 12
"""Refinement factor of the last level of most problems."""

OUT_OF_REACH = (
    "density.tolerance = {:g} seems out of reach: the levels that it needs are not tried; raise it, or give "
    "density.cells and density.steps"
)

LATEST_CHOICE = 4
"""Level on which the solver chooses the number of nodes in u at the latest, as a rule."""

LEAST_STEPS = 20
"""Least number of steps of a trial run on given cells."""


class _OverBudgetError(Exception):
    """Signal that the next level would take too long for a trial run."""


class _Pilot:
    """Observer of a trial run, called before each level is solved."""

    def __init__(self, limit: Limit, budget: float) -> None:
        self._budget = budget
        self._coefficients = _coefficient_seconds(limit)
        self.started = self._since = time.perf_counter()
        self._work, self._steps = 0.0, 0
        self._done, self._spent = 0.0, 0.0
        self.level: Level | None = None
        self.errors: Errors | None = None
        self.on_the_ladder = False

    def __call__(self, level: Level, errors: Errors | None) -> None:
        """See `meanfield.mckean_vlasov.density.refinement.Watch`."""
        now = time.perf_counter()
        if self._work:
            spent = now - self._since
            self._done += self._work
            self._spent += max(spent - self._steps * self._coefficients, 0.1 * spent)
        self.level, self.errors, self._since = level, errors, now
        self._work, self._steps = level.work, level.steps
        self.on_the_ladder |= level.factor == FACTORS[0]
        if now - self.started + self._seconds(level.work, level.steps) > self._budget:
            raise _OverBudgetError

    def _seconds(self, work: float, steps: float) -> float:
        """Predicted time of a level."""
        rate = self._spent / self._done if self._done else CELL_STEP
        return rate * work + self._coefficients * steps

    def needed(self, tolerance: float) -> float:
        """Refinement factor of the last level, from the error that is left on this one."""
        assert self.level is not None
        if self.errors is None:
            return USUAL_FACTOR
        left = float(self.errors.moments.max()) / (SAFE_SHARE * tolerance)
        return float(self.level.factor * max(left, 1.0) ** (1 / POWER))

    def rest(self, tolerance: float, factor: float, known: bool, steps: int) -> tuple[int, float, str]:
        """Last level that will be needed, the seconds that are left, and a warning if that level is not tried.

        Parameters
        ----------
        tolerance : float
        factor : float
            Refinement factor of the last level with few nodes, which holds unless this search has come further already.
        known : bool
            Whether that is the last level indeed, and not a guess.
        steps : int
            Steps of the coarsest level; if they are more than this search has, it will fail and start again.
        """
        assert self.level is not None
        at, own_steps = self.level.factor, self.level.steps // self.level.factor
        unit = float(np.prod(self.level.grid.shape)) / at * max(steps, own_steps)
        need = max(factor, self.needed(tolerance)) if at > factor or not known else factor
        last = next((f for f in FACTORS if f >= max(need, at)), FACTORS[-1])
        from_here = self.on_the_ladder and steps <= own_steps
        factors = [f for f in FACTORS if f <= last and (f >= at or not from_here)]
        choice = [] if from_here else 2 * [min(at, LATEST_CHOICE)]
        left = sum(self._seconds(f * f * unit, f * max(steps, own_steps)) for f in (*factors, *choice))
        return last, left, "" if unit * last**2 <= MOST_WORK else OUT_OF_REACH.format(tolerance)


def _coefficient_seconds(limit: Limit) -> float:
    """Time of one evaluation of drift and diffusion, once the compiled code is loaded."""
    features = len(limit.coordinates)
    q = np.full(features, 0.6 * features**-0.5)
    limit.closure(q)
    started = time.perf_counter()
    for _ in range(5):
        limit.closure(q)
    return (time.perf_counter() - started) / 5


def density_cost(problem: Problem, closure: Closure) -> DensityCost:
    """Predict time and memory of `solve_density` by a short run of it.

    Raises
    ------
    InputError
        If it would refuse the problem.
    """
    check_density(problem)
    limit, settings = limit_of(problem, closure), problem.density
    _warm_up(limit)
    if settings.tolerance is None:
        return _fixed_cost(limit, settings)
    if settings.scheme == "lagrangian":
        return lagrangian_cost(limit, settings, settings.tolerance)
    return _search_cost(limit, settings, settings.tolerance)


def _warm_up(limit: Limit) -> None:
    """Load compiled code, which takes longer than many a density."""
    smallest = DensitySettings(cells=8, steps=1, order=2, feature_nodes=2)
    solve(replace(limit, times=limit.times[[0, -1]]), smallest)


def _search_cost(limit: Limit, settings: DensitySettings, tolerance: float) -> DensityCost:
    pilot, plan = _Pilot(limit, BUDGET), coarse_plan(limit, settings, tolerance)
    left, warning = 0.0, ""
    try:
        solution = solve_to_tolerance(limit, settings, tolerance, watch=pilot)
    except _OverBudgetError:
        need, known, _ = _with_few_nodes(limit, settings, tolerance, LIKE_A_GAUSSIAN)
        _, _, steps = _with_few_nodes(limit, settings, tolerance, FAR_OUT)
        factor, left, warning = pilot.rest(tolerance, need, known, steps)
    else:
        factor = pilot.level.factor if pilot.level else 1
        warning = "" if solution.status == "complete" else f"the density {solution.status}"
    level = pilot.level
    assert level is not None
    solved, cells = level.grid.shape[0], level.grid.shape[1] // level.factor
    shown = cells * displayed_cells(level.grid.h * level.factor, factor)
    nodes = solved
    if Mirror.of(limit, plan.grid(limit)).holds:  # the last of the nodes is its own image if it is 0
        nodes = 2 * solved - int(not level.grid.u[-1].any())
    held = sum(f for f in FACTORS if factor <= 2 * f <= 2 * factor) + len(FACTORS[: FACTORS.index(factor) + 1])
    memory = 8.0 * len(limit.times) * (solved * held * cells + 2 * nodes * shown)
    seconds = time.perf_counter() - pilot.started + left
    return DensityCost(seconds, memory, nodes, shown, warning)


def _with_few_nodes(
    limit: Limit, settings: DensitySettings, tolerance: float, fourth_moment: float
) -> tuple[float, bool, int]:
    """Last level, whether it was reached, and its steps on the coarsest level, for coordinates of three values."""
    coordinate = ThreePointCoordinate(fourth_moment=fourth_moment)
    few = replace(limit, coordinates=len(limit.coordinates) * (coordinate,))
    pilot, least = _Pilot(few, FEW_NODES_BUDGET), 1.0
    try:
        solve_to_tolerance(few, settings, tolerance, watch=pilot)
    except _OverBudgetError:
        least = pilot.needed(tolerance)
    assert pilot.level is not None
    return max(least, pilot.level.factor), least == 1.0, pilot.level.steps // pilot.level.factor


def _fixed_cost(limit: Limit, settings: DensitySettings) -> DensityCost:
    """Cost of a density on given cells and steps, from the first steps on the same cells."""
    plan = fixed_plan(limit, settings)
    mirror = Mirror.of(limit, plan.grid(limit))
    solved, cells = mirror.solved.shape
    levels = (1,) if settings.order == 2 else (1, 2)
    total, work = plan.schedule.total, solved * cells * sum(k * k for k in levels)
    steps = min(total, max(LEAST_STEPS, int(BUDGET / (2 * work * CELL_STEP))))
    started = time.perf_counter()
    for k in levels:
        stop = float(limit.times[-1]) * steps / total
        part = replace(limit, times=np.array([0.0, stop]))
        level = Level(part, mirror.solved, Schedule(part.times, 1.0, steps / stop), k, THRESHOLDS)
        level.reach(0)
        level.reach(1)
    seconds = (time.perf_counter() - started) * total / steps
    nodes = len(mirror.grid.u_weight)
    memory = 8.0 * len(limit.times) * (solved * cells * (sum(levels) + len(levels)) + 2 * nodes * cells)
    return DensityCost(seconds, memory, nodes, cells)
