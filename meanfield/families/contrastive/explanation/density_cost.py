"""Predicted cost of a density: the steps of a coarse pilot, or the known ones, times stored rates of the kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.mckean_vlasov.density.fixed import CELL_STEP, check_work, levels_of
from meanfield.mckean_vlasov.density.lagrangian.budget import MOST_WORK, PilotBudget
from meanfield.mckean_vlasov.density.lagrangian.display import edges_for
from meanfield.mckean_vlasov.density.lagrangian.level import ExpensiveError, Level
from meanfield.mckean_vlasov.density.lagrangian.preparation import LEAST_FACTOR, check_level, continued, prepare, run
from meanfield.mckean_vlasov.density.lagrangian.search import STEP_SHARE, Search
from meanfield.mckean_vlasov.density.plan import coarse_plan, fixed_plan
from meanfield.mckean_vlasov.density.refinement import FACTORS
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.density.start import Nodes
from meanfield.mckean_vlasov.limit import Limit

FEW_NODES = {1: 16, 2: 4, 3: 3}
"""Nodes of each feature where a level on all of them takes too long."""

PILOT_SHARE = 0.03
"""Share of the budget of a solution that the pilot may take, about a second."""

TRIAL_SHARE = 1 / 3
"""Share of that for the trial run on few nodes, after which it stands for the level: so many steps hardly depend on
the error that they may make."""

FINER_POINTS = 8.0
"""Number of points that all levels hold, over that of the first."""

SECONDS_OF_MARGINAL = {1: 0.02, 2: 0.08, 3: 0.12}
"""Seconds at each output time for the density of w alone, by number of features."""

SEARCH_WORK = 10.5
"""Work of a whole search at a tolerance of 1e-6, in units of that of its coarsest level; it grows slowly with the
accuracy."""

EXTRAPOLATED = "the time of the density is extrapolated from t = {:.3g} of {:g}: its closure takes long on the way"

OUT_OF_REACH = "density.tolerance = {:g} seems out of reach: the levels that it needs take too long; raise it"


@dataclass(frozen=True)
class DensityCost:
    """Predicted cost of a density: time, memory besides Python's own, shape of P, and a warning if it will fail."""

    seconds: float
    memory: float
    nodes: int
    cells: int
    warning: str = ""


def density_cost(limit: Limit, settings: DensitySettings) -> DensityCost:
    """Predict time and memory of a density.

    Raises
    ------
    InputError
        If its fixed cells and steps would take longer than a day.
    """
    if settings.tolerance is None:
        return _fixed(limit, settings)
    if settings.scheme == "eulerian":
        return _eulerian(limit, settings, settings.tolerance)
    return _lagrangian(limit, settings, settings.tolerance)


def _lagrangian(limit: Limit, settings: DensitySettings, tolerance: float) -> DensityCost:
    """Cost by a pilot: the search itself, until it has chosen nodes in u or used up its share of the budget."""
    begun: list[Level] = []
    first: Level | None
    budget, outputs = PilotBudget(PILOT_SHARE), len(limit.times)
    # The steps of a pilot do not depend on the output times at which it keeps its points.
    kept = np.linspace(0, outputs - 1, min(outputs, 101)).astype(int)
    pilot = replace(limit, times=limit.times[kept])
    search = Search(pilot, settings, tolerance, lambda level, _: begun.append(level), budget)
    first, work, held, warning, extrapolated = None, MOST_WORK, 0, "", ""
    unfinished: ExpensiveError | None = None
    try:
        try:
            if len(search.shown.u_weight) <= 500:  # more nodes take too much memory for a pilot
                first, _ = search.begin()
                # The finer levels take six times the work of the first.
                work, held = budget.spent + 6.0 * first.work, FINER_POINTS * first.X[0].size
        except ExpensiveError as error:
            unfinished = error
        if unfinished and budget.tiled_out:
            first = unfinished.level
            work, held = _extrapolated(unfinished, pilot, tolerance), FINER_POINTS * first.X[0].size
            extrapolated = EXTRAPOLATED.format(unfinished.time, pilot.times[-1])
        elif first is None:
            if unfinished and _is_hopeless(unfinished, pilot):
                raise unfinished
            solved = [level for level in begun if np.isfinite(level.moments).all()]
            first = solved[0] if solved else _on_few_nodes(pilot, settings, tolerance)
            growth = len(search.shown.solved[1]) / len(first.frames.nodes.solved[1])
            whole = SEARCH_WORK * (1e-6 / tolerance) ** 0.1 * growth * first.work
            # The search for nodes usually is 0.4 of the whole work.
            work, held = max(whole, budget.spent / 0.4), FINER_POINTS * growth * first.X[0].size
        warning = OUT_OF_REACH.format(tolerance) if work > MOST_WORK else extrapolated
    except ExpensiveError:
        warning = OUT_OF_REACH.format(tolerance)
    except BlowUpError as error:
        warning = f"the density {error.status}"
    cells = 300  # of P in the results of pilots that fail
    if first:
        cells = len(edges_for(first)) - 1
        check_level(limit, continued(first.frames, search.shown), LEAST_FACTOR * first.points)
    numbers = outputs * len(search.shown.u_weight) * cells
    # Each number of P takes 32 bytes, with its share in what is made of it.
    memory = 8.0 * outputs * max(held, sum(level.X[0].size for level in begun)) + 32.0 * numbers
    # A number of P takes 4e-7 seconds; the density of w alone is made at each output time.
    shown = 4e-7 * numbers + SECONDS_OF_MARGINAL[len(limit.coordinates)] * outputs
    # A unit of work, which is a point and step without grading, takes 7e-8 seconds.
    return DensityCost(7e-8 * min(work, MOST_WORK) + shown, memory, len(search.shown.u_weight), cells, warning)


def _extrapolated(error: ExpensiveError, limit: Limit, tolerance: float) -> float:
    """Work of a search of which a level was left on the way, as if its steps went on as they were."""
    share = min(1.0, error.time / float(limit.times[-1]))
    return float(SEARCH_WORK * (1e-6 / tolerance) ** 0.1 * error.level.work / max(share, 1e-3))


def _is_hopeless(error: ExpensiveError, limit: Limit) -> bool:
    """Whether few nodes would not reach the end, either, because the share of all of them is used up so early."""
    most = FEW_NODES[len(limit.coordinates)] ** len(limit.coordinates)
    gain = max(1.0, error.level.nodes / most)
    # To reach it all the same, steps would have to become a thousand times as long as those until then.
    return bool(gain * error.time < 1e-3 * limit.times[-1])


def _on_few_nodes(limit: Limit, settings: DensitySettings, tolerance: float) -> Level:
    """The coarsest level on few nodes, whose steps hardly depend on their number."""
    most = FEW_NODES[len(limit.coordinates)]
    few = Nodes.of(limit, min(most, settings.feature_nodes) if settings.feature_nodes else most)
    budget = PilotBudget(PILOT_SHARE)
    frames, trial = prepare(limit, few, budget)
    if trial.frames is frames and budget.spent > TRIAL_SHARE * PILOT_SHARE * MOST_WORK:
        return trial
    pilot = Level(limit, frames, frames.first_points(limit), STEP_SHARE * tolerance, budget)
    run(pilot, "density, pilot")
    return pilot


def _eulerian(limit: Limit, settings: DensitySettings, tolerance: float) -> DensityCost:
    """Cost of a search on cells, whose last level is the usual one."""
    plan = coarse_plan(limit, settings, tolerance)
    nodes, cells = plan.grid(limit).shape
    last = 12  # refinement factor of the last level of most searches
    factors = [factor for factor in FACTORS if factor <= last]
    work = float(nodes) * cells * plan.schedule.total * sum(factor**2 for factor in factors)
    shown = cells * last
    memory = 16.0 * len(limit.times) * nodes * (shown + cells)
    # The choice of nodes, and levels that have to be repeated, take the whole search to five times the work of its
    # levels.
    return DensityCost(5.0 * CELL_STEP * work, memory, nodes, shown)


def _fixed(limit: Limit, settings: DensitySettings) -> DensityCost:
    """Cost of given cells and steps, which is known."""
    plan = fixed_plan(limit, settings)
    nodes, cells = plan.grid(limit).shape
    seconds, levels = CELL_STEP * check_work(limit, settings, plan), levels_of(settings)
    memory = 8.0 * len(limit.times) * nodes * cells * (sum(levels) + len(levels) + 2)
    return DensityCost(seconds, memory, nodes, cells)
