"""Predicted cost of methods: usual amounts of work, times the processor time of a small part of it."""

from __future__ import annotations

import math
import time
from functools import partial

import numpy as np

from meanfield.explanation.prediction import Prediction, prediction_of, shared
from meanfield.explanation.rates import seconds_of
from meanfield.explanation.replicas import cost_of_replicas
from meanfield.families.alpha_contrastive.critical_points import find_critical_points
from meanfield.families.alpha_contrastive.critical_points.circle import TURN
from meanfield.families.alpha_contrastive.critical_points.mixture import mixture_points
from meanfield.families.alpha_contrastive.critical_points.solver import field_of
from meanfield.families.alpha_contrastive.critical_points.sphere import sphere_points
from meanfield.families.alpha_contrastive.density.solver import (
    FEWEST,
    MOST,
    example_step,
    predicted_steps,
)
from meanfield.families.alpha_contrastive.filters import GivenStart
from meanfield.families.alpha_contrastive.laws import GaussianMixture, Images, Tokens
from meanfield.families.alpha_contrastive.limit.circle import tangential
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.limit.fields import scale_of_angles
from meanfield.families.alpha_contrastive.particles.simulation import Replicas, simulation_of
from meanfield.families.alpha_contrastive.population.solver import Flow, drift_of
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.numerics.analytic_roots import NODES
from meanfield.problems.problem_keys import with_values

COPIES = 30
"""Usual number of arrays at once, of numbers for each cell and atom."""

TRIAL = 1 << 18
"""Largest number of pairs of samples, and of their activations, in all batches of a trial of SGD."""


def critical_points(problem: Problem) -> Prediction:
    """Cost of the critical points: all of them in the plane, else from a part of the search."""
    numbers = 40 * (_dimension(problem) + 8)  # of 40 points, as usual
    contents = "filters at rest, energies, rates, basins"
    return prediction_of("critical points", shared(_search, problem), COPIES * 40**2, numbers, contents)


def density(problem: Problem) -> Prediction:
    """Cost of the density, from a step on the cells that are usually the finest."""
    d = _dimension(problem)
    coarsest = FEWEST[d]
    # A scheme of order two usually meets a tolerance of 1e-3 on four times the cells of the first run.
    wanted = 4 * coarsest * (1e-3 / problem.density.tolerance) ** 0.5
    cells = int(np.clip(wanted, 2 * coarsest, MOST[d]))
    steps = predicted_steps(problem, cells) + problem.time.outputs
    # All grids cost 4/3 of the finest: steps and cells are both halved from one to the next.
    seconds = (4.0 / 3.0) * steps * seconds_of(example_step(problem, cells))
    count = cells if d == 2 else 2 * cells**2
    numbers = problem.time.outputs * count
    where = "rho(theta)" if d == 2 else "rho on the sphere"
    contents = f"{where} at {problem.time.outputs:,} times, {count:,} cells"
    return prediction_of("density", seconds, 3 * numbers + COPIES * count, numbers, contents)


def optimal_filters(problem: Problem) -> Prediction:
    """Cost of the optimal filters: of usual searches for the best filter at a fixed importance."""
    seconds = 3 * shared(_search, problem)  # searches, as usual, with the weights between them
    return prediction_of("optimal filters", seconds, COPIES * 40**2, 0, "filters, weights, objective")


def _search(problem: Problem) -> float:
    """Processor time of a search for critical points, from few starts where there are more than two coordinates."""
    starts = problem.critical_points.starts
    if _dimension(problem) == 2:
        return _on_circle(problem)
    few = _timed(problem, 1)
    if few > 0.5:  # processor seconds that say how long a search from all starts takes
        return starts * few
    count, more = 2, _timed(problem, 2)  # the difference from one start to the next is without what is loaded first
    while count < starts and more < 0.5:
        count, few, more = 2 * count, more, _timed(problem, 2 * count)
    return more + max(more - few, 0.0) * (2.0 * starts / count - 2.0)


def _on_circle(problem: Problem) -> float:
    """Processor time of the enumeration on a circle: of arcs, each of which is usually seen 45 times while halved."""
    if isinstance(problem.data, GaussianMixture):
        started = time.process_time()
        find_critical_points(problem)
        return time.process_time() - started
    field, angles = tangential(field_of(problem)), np.linspace(0.0, TURN, 100 * NODES)
    arcs = max(1.0, TURN / scale_of_angles(problem))
    return 45.0 * arcs * seconds_of(lambda: field(angles)) / 100


def _timed(problem: Problem, starts: int) -> float:
    """Processor time of a search from fewer starts than a problem may have."""
    field, seed = field_of(problem), problem.critical_points.seed
    started = time.process_time()
    if isinstance(field, DiscreteField):
        sphere_points(field, starts, seed)
    else:
        mixture_points(field, starts, seed)
    return time.process_time() - started


def _dimension(problem: Problem) -> int:
    """Number of coordinates of data for one layer, which methods have checked."""
    assert not isinstance(problem.data, Tokens | Images)
    return problem.data.dimension


def population(problem: Problem) -> Prediction:
    """Cost of the exact flow, from some rates of change."""
    filters = problem.filters.count
    given = isinstance(problem.filters.start, GivenStart)
    fewer = filters if given else min(filters, 4096)  # more of them cost, and have weights, in proportion
    trial = with_values(problem, {"filters.count": fewer})
    flow = Flow(trial, drift_of(trial))
    per_rate = filters / fewer * seconds_of(lambda: flow.rate(0.0, flow.start))
    # With unit weights the flow takes some 3 steps per unit of time, of 12 rates of change each.
    rates = 12 * (1.0 + 3.0 * problem.time.stop / (1.0 - problem.training.momentum))
    weights = len(flow.start) // fewer * filters
    numbers = problem.time.outputs * weights
    contents = f"{weights:,} weights, energy, scores and ranks at {problem.time.outputs:,} times"
    return prediction_of("population", rates * per_rate, 3 * numbers, numbers, contents)


def particles(problem: Problem) -> Prediction:
    """Cost of SGD, from some steps.

    Raises
    ------
    InputError
        If it would take longer than `particles.longest_days`, or more memory than is free.
    """
    simulation = simulation_of(problem)
    places, filters, _ = problem.shape
    batch = problem.training.batch_size
    tests = problem.particles.test_batches
    together = len(simulation.blocks[0])
    activations = places * filters
    fewer = min(batch, max(2, min(math.isqrt(TRIAL // together), TRIAL // (together * activations))))
    of_trial, of_batch = (float(n * (n + activations)) for n in (fewer, batch))
    scored = min(tests, max(1, int(TRIAL // (together * of_trial))))
    trial = with_values(problem, {"training.batch_size": fewer, "particles.test_batches": scored})
    step = of_batch / of_trial
    return cost_of_replicas(simulation, partial(Replicas, trial), step, step * tests / scored)
