"""Predicted cost of a density: the steps of a coarse pilot, or the known ones, times stored rates of the kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from meanfield.ensembles.simulation import BYTES_PER_NUMBER
from meanfield.errors import BlowUpError
from meanfield.explanation.prediction import HEADER, Prediction, seconds_of
from meanfield.mckean_vlasov.closure_tiles import TILED_FEATURES, closures_on_tiles
from meanfield.mckean_vlasov.closures import compiled_closure_of, values_of
from meanfield.mckean_vlasov.density.lagrangian.budget import MOST_WORK, PilotBudget
from meanfield.mckean_vlasov.density.lagrangian.display import edges_for
from meanfield.mckean_vlasov.density.lagrangian.level import ExpensiveError, Level
from meanfield.mckean_vlasov.density.lagrangian.preparation import LEAST_FACTOR, check_level, continued, prepare
from meanfield.mckean_vlasov.density.lagrangian.search import STEP_SHARE, Search
from meanfield.mckean_vlasov.density.plan import coarse_plan, fixed_plan
from meanfield.mckean_vlasov.density.refinement import CellSearch
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.density.solver import CELL_STEP, check_work, levels_of
from meanfield.mckean_vlasov.density.start import Nodes
from meanfield.mckean_vlasov.limit import Limit
from meanfield.typing import FloatArray

PILOT_SECONDS, FEW_SECONDS = 0.4, 0.15
"""Processor seconds after which a pilot ends, and its time is extrapolated: of a search, and of few nodes."""

WORK_UNIT = 7e-8
"""Seconds of a unit of work, which is a point and step without grading."""

FINER_POINTS = 8.0
"""Number of points that all levels hold, over that of the first."""

SECONDS_OF_MARGINAL = {1: 0.02, 2: 0.08, 3: 0.12}
"""Seconds at each output time for the density of w alone, by number of features."""

EXTRAPOLATED = "the time of the density is extrapolated from t = {:.3g} of {:g}: its steps or its closure take long"

OUT_OF_REACH = "density.tolerance = {:g} seems out of reach: the levels that it needs take too long; raise it"


@dataclass(frozen=True)
class DensityCost:
    """Predicted cost of a density: time, memory besides Python's own, shape of P, and a warning if it will fail."""

    seconds: float
    memory: float
    nodes: int
    cells: int
    warning: str = ""


def predicted_density(limit: Limit, settings: DensitySettings, averages: str) -> Prediction:
    """Prediction of the density of one vector, with the averages that a result has besides."""
    cost = density_cost(limit, settings)
    size = BYTES_PER_NUMBER * len(limit.times) * cost.nodes * cost.cells
    contents = f"{averages}, P(w|u) on {cost.nodes} nodes x {cost.cells} cells"
    # Densities of a run are compressed to some 0.55 of their size.
    return Prediction("density", "", cost.seconds, cost.memory, 0.55 * size + HEADER, contents, cost.warning)


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
    """Cost by a pilot: the search itself, until it has chosen nodes in u, or a level of it as far as it comes."""
    outputs, stop = len(limit.times), float(limit.times[-1])
    # The steps of a pilot do not depend on the output times at which it keeps its points.
    kept = np.linspace(0, outputs - 1, min(outputs, 41)).astype(int)
    pilot, budget = replace(limit, times=limit.times[kept]), PilotBudget(PILOT_SECONDS)
    begun = list[Level]()
    search = Search(pilot, settings, tolerance, lambda level, _: begun.append(level), budget)
    level, work, held, seconds, warning = None, MOST_WORK, 0.0, 0.0, ""
    try:
        unfinished = None
        try:
            if len(search.shown.u_weight) <= 500:  # more nodes take too much memory for a pilot
                level, _ = search.begin()
                # The finer levels take six times the work of the first.
                work, held = budget.spent + 6.0 * level.work, FINER_POINTS * level.X[0].size
        except ExpensiveError as error:
            unfinished = error.level
        if level is None:
            level = next((each for each in begun if each.time >= stop), search.trial or unfinished)
            # Few nodes take less, unless the pilot's time went into closures.
            if level is None or (level.time < stop and budget.spent * WORK_UNIT > 0.3 * PILOT_SECONDS):
                level = _on_few_nodes(pilot, settings, tolerance)
            growth = len(search.shown.solved[1]) / level.nodes
            # in units of the coarsest level; it grows slowly with the accuracy
            work = 10.5 * (1e-6 / tolerance) ** 0.1 * growth * level.work / _share(level, stop)
            held = FINER_POINTS * growth * level.X[0].size
        if level.time < 0.5 * stop:
            warning = EXTRAPOLATED.format(level.time, stop)
        if work > MOST_WORK:
            warning = OUT_OF_REACH.format(tolerance)
        if len(limit.coordinates) == TILED_FEATURES and compiled_closure_of(limit)[1] > 0.0:
            seconds = _tile_seconds(pilot, settings)
        elif level.calls:
            # Closures are called on each of eight levels, as is usual.
            seconds = 8 * level.calls / _share(level, stop) * _closure_seconds(pilot, limit.initial_arguments[None])
    except BlowUpError as error:
        warning = f"the density {error.status}"
    cells = 300  # of P in the results of pilots that fail
    if level:
        cells = len(edges_for(level)) - 1
        check_level(limit, continued(level.frames, search.shown), LEAST_FACTOR * level.points)
    numbers = outputs * len(search.shown.u_weight) * cells
    # Each number of P takes 32 bytes, with its share in what is made of it.
    memory = 8.0 * outputs * max(held, sum(each.X[0].size for each in begun)) + 32.0 * numbers
    # A number of P takes 4e-7 seconds; the density of w alone is made at each output time.
    seconds += WORK_UNIT * min(work, MOST_WORK) + 4e-7 * numbers + SECONDS_OF_MARGINAL[len(limit.coordinates)] * outputs
    return DensityCost(seconds, memory, len(search.shown.u_weight), cells, warning)


def _on_few_nodes(limit: Limit, settings: DensitySettings, tolerance: float) -> Level:
    """A level on few nodes, whose steps hardly depend on their number."""
    most = {1: 16, 2: 4, 3: 3}[len(limit.coordinates)]  # where a level on all nodes takes too long
    few = Nodes.of_limit(limit, min(most, settings.feature_nodes) if settings.feature_nodes else most)
    try:
        return prepare(limit, few, PilotBudget(FEW_SECONDS), STEP_SHARE * tolerance)[1]
    except ExpensiveError as error:
        return error.level


def _share(level: Level, stop: float) -> float:
    """Share of the time that a pilot has reached, as if its steps went on as they were."""
    return float(np.clip(level.time / stop, 0.01, 1.0))  # steps become longer than the shortest at the start


def _tile_seconds(limit: Limit, settings: DensitySettings) -> float:
    """Seconds of the closures on the tiles of a path, which is found on few nodes by long steps."""
    limit = replace(limit, times=np.linspace(0.0, float(limit.times[-1]), 41))  # close enough for a path
    level = _on_few_nodes(limit, settings, 1e-2)
    reached = np.isfinite(level.moments[:, 0])
    path = np.vstack([limit.initial_overlap, level.moments[reached, :TILED_FEATURES]])
    return closures_on_tiles(path) / _share(level, float(limit.times[-1])) * _closure_seconds(limit, path)


def _closure_seconds(limit: Limit, path: FloatArray) -> float:
    """Mean seconds of a closure in the second half of a path; towards |q| = 1 they take longer."""
    each = [seconds_of(partial(values_of, limit, path[n])) for n in (len(path) // 2, -1)]
    return 0.5 * sum(each)


def _eulerian(limit: Limit, settings: DensitySettings, tolerance: float) -> DensityCost:
    """Cost of a search on cells, whose last level is the usual one."""
    plan = coarse_plan(limit, settings, tolerance)
    nodes, cells = plan.grid(limit).shape
    last = 12  # refinement factor of the last level of most searches
    factors = [factor for factor in CellSearch.factors if factor <= last]
    work = float(nodes) * cells * plan.step_times.total * sum(factor**2 for factor in factors)
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
