"""Predicted cost of methods: usual amounts of work, times the processor time of a small part of it."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from meanfield.explanation.prediction import Prediction, prediction_of, seconds_of, shared
from meanfield.explanation.replicas import cost_of_replicas
from meanfield.families.alpha_contrastive.critical_points.arrangement import unit
from meanfield.families.alpha_contrastive.critical_points.circle import TURN
from meanfield.families.alpha_contrastive.critical_points.enumeration import is_constant, is_enumerated
from meanfield.families.alpha_contrastive.critical_points.mixture import (
    USUAL_SEARCHES,
    USUAL_STEPS,
    USUAL_TRIES,
)
from meanfield.families.alpha_contrastive.critical_points.rest import polished
from meanfield.families.alpha_contrastive.critical_points.solver import field_of
from meanfield.families.alpha_contrastive.critical_points.sphere import UPHILL_STEPS
from meanfield.families.alpha_contrastive.density.solver import (
    FEWEST,
    MOST,
    example_step,
    predicted_steps,
)
from meanfield.families.alpha_contrastive.initial import few_filters
from meanfield.families.alpha_contrastive.laws import Images, Tokens
from meanfield.families.alpha_contrastive.limit.circle import tangential
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.limit.fields import AnyField, scale_of_angles
from meanfield.families.alpha_contrastive.limit.kernel_mixture import KernelMixtureField
from meanfield.families.alpha_contrastive.limit.mixture import MixtureField
from meanfield.families.alpha_contrastive.limit.walls import make_walls
from meanfield.families.alpha_contrastive.particles.simulation import Replicas, simulation_of
from meanfield.families.alpha_contrastive.population.kinks import example_of_path, is_carried
from meanfield.families.alpha_contrastive.population.solver import Flow
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.numerics.analytic_roots import NODES
from meanfield.problems.in_time import InTime
from meanfield.problems.problem_keys import with_values

COPIES = 30
"""Usual number of arrays at once, of numbers for each cell and atom."""

FLAT, PAIR_OF_WALLS = 2e-3, 0.0155
"""Usual seconds of an enumeration: of each intersection of walls, or of each pair where roots are looked for."""

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
    """Processor time of a search for critical points."""
    starts, field = problem.critical_points.starts, field_of(problem)
    if _dimension(problem) == 2:
        return _on_circle(problem, field)
    return _on_sphere(field, starts) if isinstance(field, DiscreteField) else _of_mixture(field, starts)


def _on_circle(problem: Problem, field: AnyField) -> float:
    """Processor time of the enumeration on a circle: of arcs, which are usually seen so often while they are halved."""
    seen = 45.0 if isinstance(field, DiscreteField) else 5.0  # at walls, and where there are none
    at_once = 1 if isinstance(field, KernelMixtureField) else 100 * NODES  # filters, one of which may take long
    along, angles = tangential(field), np.linspace(0.0, TURN, at_once)
    arcs = max(1.0, TURN / scale_of_angles(problem))
    return seen * NODES * arcs * seconds_of(lambda: along(angles)) / at_once


def _of_mixture(field: MixtureField | KernelMixtureField, starts: int) -> float:
    """Processor time of the ways uphill from all starts, and of Newton's method from both ends of each."""
    at_once = 1 if isinstance(field, KernelMixtureField) else 64  # filters, which closed averages take together
    w = unit(np.random.default_rng(0).standard_normal((at_once, field.mean.shape[1])))
    step = seconds_of(lambda: field.height_and_field(w)) / at_once
    newton = seconds_of(lambda: field.field_and_jacobians(w[0], np.linalg.svd(w[:1])[2][1:].T))
    return starts * (USUAL_STEPS * step + USUAL_TRIES * newton) + USUAL_SEARCHES * newton


def _on_sphere(field: DiscreteField, starts: int) -> float:
    """Processor time of the ways uphill from all starts, and of points that are enumerated, or polished from each."""
    walls = len(make_walls(field.atoms, field.filter).offset)
    w = unit(np.random.default_rng(0).standard_normal((min(starts, 64), field.atoms.shape[1])))
    each = seconds_of(lambda: field.field(w)) / len(w)
    seconds = starts * (2.0 * UPHILL_STEPS if walls else 150.0) * each  # without kinks climbs usually end early
    if not is_enumerated(field, walls):
        return seconds + starts * seconds_of(lambda: polished(field, w[0], -1.0))
    if is_constant(field):
        return seconds + FLAT * sum(math.comb(walls, k) for k in range(field.atoms.shape[1]))
    return seconds + (PAIR_OF_WALLS * walls**2 if walls else 0.5 + 6e4 * each)  # filters on a mesh without walls


def _dimension(problem: Problem) -> int:
    """Number of coordinates of data for one layer, which methods have checked."""
    assert not isinstance(problem.data, Tokens | Images)
    return problem.data.dimension


def population(problem: Problem) -> Prediction:
    """Cost of the exact flow, from some rates of change."""
    filters, fewer = problem.filters.count, few_filters(problem)
    trial = with_values(problem, {"filters.count": fewer})
    flow = Flow(trial)
    if is_carried(flow.drifts[0]):  # of a phase
        steps, step = example_of_path(trial)
        seconds = steps * filters / fewer * seconds_of(step)
    else:
        stretches = flow.in_time.stretches(problem.time.stop)
        momenta = [each.training.momentum for each in flow.in_time.extremes(problem.time.stop).values()]
        # With unit weights the flow takes some 3 steps per unit of time, of 12 rates of change each.
        steps = len(stretches) + 3.0 * problem.time.stop / (1.0 - float(np.mean(momenta)))
        seconds = 12 * steps * filters / fewer * seconds_of(lambda: flow.rate(stretches[0], 0.0, flow.start))
    weights = flow.number // fewer * filters
    numbers = problem.time.outputs * weights
    contents = f"{weights:,} weights, energy, scores and ranks at {problem.time.outputs:,} times"
    return prediction_of("population", seconds, 3 * numbers, numbers, contents)


def particles(problem: Problem) -> Prediction:
    """Cost of SGD, from some steps; see `cost_of_replicas`."""
    simulation = simulation_of(problem)
    places, filters, _ = problem.shape
    batch = max(each.training.batch_size for each in InTime(problem).extremes(problem.time.stop).values())
    tests = problem.particles.test_batches
    together = len(simulation.blocks[0])
    few = few_filters(problem)
    activations, tried = (float(places * count) for count in (filters, few))
    fewer = min(batch, max(2, int(min(math.isqrt(TRIAL // together), TRIAL // (together * tried)))))
    of_trial, of_batch = fewer * (fewer + tried), batch * (batch + activations)
    scored = min(tests, max(1, int(TRIAL // (together * of_trial))))
    changes = {"training.batch_size": fewer, "particles.test_batches": scored, "filters.count": few}
    trial = with_values(problem, changes)
    step = of_batch / of_trial
    return cost_of_replicas(simulation, partial(Replicas, trial), step, step * tests / scored)
