"""Predicted cost of a density: the steps of a coarse pilot, or the known ones, times stored rates of the kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass

from meanfield.errors import BlowUpError
from meanfield.mckean_vlasov.density.fixed import CELL_STEP, check_work, levels_of
from meanfield.mckean_vlasov.density.lagrangian.budget import MOST_WORK, Budget
from meanfield.mckean_vlasov.density.lagrangian.display import edges_for
from meanfield.mckean_vlasov.density.lagrangian.level import ExpensiveError, Level
from meanfield.mckean_vlasov.density.lagrangian.points import Nodes
from meanfield.mckean_vlasov.density.lagrangian.preparation import prepare, run
from meanfield.mckean_vlasov.density.lagrangian.search import NODES_TOLERANCE, STEP_SHARE
from meanfield.mckean_vlasov.density.plan import coarse_plan, fixed_plan
from meanfield.mckean_vlasov.density.refinement import FACTORS
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.limit import Limit

FEW_NODES = {1: 16, 2: 4, 3: 3}
"""Nodes of each feature in the pilot; the steps are those of the slowest node, and hardly depend on their number."""

PILOT_SHARE = 0.05
"""Share of the budget of a solution that the pilot may take; a whole search would exceed the budget then."""

WHOLE, WHOLE_TOLERANCE, WHOLE_POWER = 10.5, 1e-6, 0.1
"""Work of the whole search over that of its coarsest level, where it holds, and how it grows with the accuracy."""

POINTS = 4.5
"""Number of points of all levels over that of the coarsest."""

POINT_STEP, NUMBER = 2e-7, 4e-7
"""Seconds for each point and step of the Lagrangian kernel, and for each number of P in the result."""

MARGINAL = {1: 0.02, 2: 0.08, 3: 0.12}
"""Seconds at each output time for the density of w alone, by number of features."""

USUAL_FACTOR, USUAL_CELLS = 12, 300
"""Refinement factor of the last level of most Eulerian searches, and cells of P in results of failing pilots."""

REPEATED = 5.0
"""Work of a whole Eulerian search over that of its levels: the choice of nodes, and levels that have to be repeated."""

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
    """Cost by a pilot: the coarsest level on few nodes."""
    scale = 1.0 if settings.feature_nodes else math.log(tolerance) / math.log(NODES_TOLERANCE)
    nodes = Nodes.of(limit, settings.feature_nodes, scale)
    most = FEW_NODES[len(limit.coordinates)]
    few = Nodes.of(limit, min(most, settings.feature_nodes) if settings.feature_nodes else most)
    points, cells, warning, work = USUAL_CELLS, USUAL_CELLS, "", MOST_WORK
    budget = Budget(PILOT_SHARE * MOST_WORK)
    solved, all_nodes = len(nodes.solved[1]), len(nodes.u_weight)
    try:
        frames, _ = prepare(limit, few, budget)
        points = frames.first_points(limit)
        pilot = Level(limit, frames, points, STEP_SHARE * tolerance, budget)
        run(pilot, "density, pilot")
        cells = len(edges_for(pilot)) - 1
        work = WHOLE * (WHOLE_TOLERANCE / tolerance) ** WHOLE_POWER * solved * points * pilot.attempts
    except ExpensiveError:
        warning = OUT_OF_REACH.format(tolerance)
    except BlowUpError as error:
        warning = f"the density {error.status}"
    numbers = len(limit.times) * all_nodes * cells
    if work > MOST_WORK and not warning:
        work, warning = MOST_WORK, OUT_OF_REACH.format(tolerance)
    memory = 8.0 * len(limit.times) * 2 * solved * POINTS * points + 32.0 * numbers
    shown = NUMBER * numbers + MARGINAL[len(limit.coordinates)] * len(limit.times)
    return DensityCost(POINT_STEP * work + shown, memory, all_nodes, cells, warning)


def _eulerian(limit: Limit, settings: DensitySettings, tolerance: float) -> DensityCost:
    """Cost of a search on cells, whose last level is the usual one."""
    plan = coarse_plan(limit, settings, tolerance)
    nodes, cells = plan.grid(limit).shape
    factors = [factor for factor in FACTORS if factor <= USUAL_FACTOR]
    work = float(nodes) * cells * plan.schedule.total * sum(factor**2 for factor in factors)
    shown = cells * USUAL_FACTOR
    memory = 16.0 * len(limit.times) * nodes * (shown + cells)
    return DensityCost(REPEATED * CELL_STEP * work, memory, nodes, shown)


def _fixed(limit: Limit, settings: DensitySettings) -> DensityCost:
    """Cost of given cells and steps, which is known."""
    plan = fixed_plan(limit, settings)
    nodes, cells = plan.grid(limit).shape
    seconds, levels = CELL_STEP * check_work(limit, settings, plan), levels_of(settings)
    memory = 8.0 * len(limit.times) * nodes * cells * (sum(levels) + len(levels) + 2)
    return DensityCost(seconds, memory, nodes, cells)
