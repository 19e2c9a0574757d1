"""Predicted cost of methods: usual amounts of work, times the processor time of a small part of it."""

from __future__ import annotations

import math
import time

import numpy as np

from meanfield.explanation.prediction import Prediction, shared
from meanfield.explanation.rates import seconds_of
from meanfield.explanation.replicas import HEADER
from meanfield.families.alpha_contrastive.critical_points import find_critical_points
from meanfield.families.alpha_contrastive.density.solver import (
    FEWEST,
    MOST,
    example_step,
    predicted_steps,
)
from meanfield.families.alpha_contrastive.laws import GaussianMixture, Images, Tokens
from meanfield.families.alpha_contrastive.limit.fields import scale_of_angles
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.problems.problem_keys import with_value

ENOUGH = 0.5
"""Processor seconds of a search from few starts that say how long one from all takes."""

ROUNDS = 3
"""Usual number of searches for optimal filters, with the weights between them."""

USUAL_REFINEMENT, USUAL_TOLERANCE = 4, 1e-3
"""Usual number of cells of the last run, relative to the first, at a tolerance; an order two relates others to them."""

COARSER = 4.0 / 3.0
"""Work on all grids, relative to the finest, whose steps and cells are both halved from one to the next."""

ARCS, HOTTEST = 100, 1e6
"""Largest number of arcs of a circle on which a search is tried, and largest temperature of a problem."""

USUAL_POINTS = 40
"""Usual number of critical points of a result."""

BYTES = 8.0
"""Bytes of a number."""

COPIES = 30
"""Usual number of arrays at once, of numbers for each cell and atom."""


def critical_points(problem: Problem) -> Prediction:
    """Cost of the critical points: all of them in the plane, else from a part of the search."""
    numbers = USUAL_POINTS * (_dimension(problem) + 8)
    memory = BYTES * COPIES * USUAL_POINTS**2
    contents = "filters at rest, energies, rates, basins"
    return Prediction("critical points", "", shared(_search, problem), memory, BYTES * numbers + HEADER, contents)


def density(problem: Problem) -> Prediction:
    """Cost of the density, from a step on the cells that are usually the finest."""
    d = _dimension(problem)
    coarsest = FEWEST[d]
    wanted = USUAL_REFINEMENT * coarsest * (USUAL_TOLERANCE / problem.density.tolerance) ** 0.5
    cells = int(np.clip(wanted, 2 * coarsest, MOST[d]))
    steps = predicted_steps(problem, cells) + problem.time.outputs
    seconds = COARSER * steps * seconds_of(example_step(problem, cells))
    count = cells if d == 2 else 2 * cells**2
    numbers = problem.time.outputs * count
    memory = BYTES * (3 * numbers + COPIES * count)
    where = "rho(theta)" if d == 2 else "rho on the sphere"
    contents = f"{where} at {problem.time.outputs:,} times, {count:,} cells"
    return Prediction("density", "", seconds, memory, BYTES * numbers + HEADER, contents)


def optimal_filters(problem: Problem) -> Prediction:
    """Cost of the optimal filters: of usual searches for the best filter at a fixed importance."""
    memory = BYTES * COPIES * USUAL_POINTS**2
    return Prediction(
        "optimal filters", "", ROUNDS * shared(_search, problem), memory, HEADER, "filters, weights, objective"
    )


def _search(problem: Problem) -> float:
    """Processor time of a search for critical points, from few starts where there are more than two coordinates."""
    starts = problem.critical_points.starts
    if _dimension(problem) == 2:
        return _on_circle(problem)
    count, few, more = 2, _timed(problem, 1), _timed(problem, 2)  # their difference is without what is loaded first
    while count < starts and more < ENOUGH:
        count, few, more = 2 * count, more, _timed(problem, 2 * count)
    return more + max(more - few, 0.0) * (2.0 * starts / count - 2.0)


def _on_circle(problem: Problem) -> float:
    """Processor time of the enumeration on a circle.

    Between points arcs become shorter like the root of the temperature, so that a higher one says how long they take.
    """
    more = max(1.0, 2.0 * math.pi / scale_of_angles(problem) / ARCS)
    if isinstance(problem.data, GaussianMixture) or more == 1.0:
        return _timed(problem, problem.critical_points.starts)
    hotter = min(more**2 * problem.importance.temperature, HOTTEST)
    trial = with_value(problem, "importance.temperature", hotter)
    return more * _timed(trial, problem.critical_points.starts)


def _timed(problem: Problem, starts: int) -> float:
    sample = with_value(problem, "critical_points.starts", starts)
    started = time.process_time()
    find_critical_points(sample)
    return time.process_time() - started


def _dimension(problem: Problem) -> int:
    """Number of coordinates of data for one layer, which methods have checked."""
    assert not isinstance(problem.data, Tokens | Images)
    return problem.data.dimension
