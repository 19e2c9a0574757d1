"""Predicted cost of methods: usual numbers of evaluations, times the processor time of one."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import partial

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.explanation.prediction import Prediction, prediction_of, seconds_of, shared
from meanfield.explanation.replicas import cost_of_replicas
from meanfield.families.latent_tree.initial import measured
from meanfield.families.latent_tree.many_nodes.arc_density import carried_arcs
from meanfield.families.latent_tree.many_nodes.carried import Carried
from meanfield.families.latent_tree.many_nodes.driven import has_inner_time, one_step
from meanfield.families.latent_tree.many_nodes.ensemble import ensemble_of
from meanfield.families.latent_tree.many_nodes.particle_density import RUNS, SHOWN, carried_sample, most_of
from meanfield.families.latent_tree.many_nodes.solver import ON_CELLS, check_density, weights_of
from meanfield.families.latent_tree.many_nodes.sphere_density import TRIANGLES_PER_CELL, carried_triangles
from meanfield.families.latent_tree.operators import PAIRED, fits, needs_connections
from meanfield.families.latent_tree.particles import (
    Replicas,
    activations_of_a_batch,
    exact_tables,
    simulation_of,
)
from meanfield.families.latent_tree.pieces import Pieces
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.rest.solver import MOST_GRADIENTS
from meanfield.families.latent_tree.ring_tables import tables_of
from meanfield.families.latent_tree.sampled import BLOCKS, SampledTables, draw_views
from meanfield.families.latent_tree.settings import ExplicitStart
from meanfield.families.latent_tree.sizes import different_outputs, size_of
from meanfield.families.latent_tree.tables import Tables
from meanfield.networks.triples import SUMMED
from meanfield.problems.in_time import InTime
from meanfield.problems.problem_keys import at_time, with_values
from meanfield.process.cores import available_cores
from meanfield.typing import FloatArray

COARSE, FINE = 12, 32
"""Sides of triangles along a meridian from which costs are taken, and to which runs usually go."""

COPIES = 12
"""Usual number of arrays of the size of all tables at once."""

LONG, PAIR = 3e6, 7e-8
"""Number of pairs of outputs whose loss is not timed, and usual seconds of a pair."""

LARGE, ENTRY = 3e4, 4e-8
"""Number of entries of tables whose gradient is not timed, and usual seconds of an entry; it takes 50 bytes."""

MOST_WEIGHTS = 1 << 21
"""Largest number of weights of a trial of SGD, which holds several copies of them."""

TRIAL = 1 << 18
"""Largest number of inputs and activations of the samples of a trial of SGD; each takes some 50 bytes."""


def operator(problem: Problem) -> Prediction:
    """Cost of the operators at the initial weights."""
    if not fits(problem):
        return _of_samples(problem)
    shape = problem.shape
    if needs_connections(problem):
        views = float(shape.configurations[-1])
        each = [shape.nodes * inputs for inputs in shape.inputs]
        latents, samples = shape.latents[1:], 2.0
        columns = shape.nodes * sum(n * w for n, w in zip(latents, each, strict=True))
        pairs = 4.0 * _pairs(problem) if problem.loss.kind != "beta" else 2.0 * views
        flops = 2.0 * samples * pairs * columns + sum(
            n * 2.0 * shape.nodes * views * w * w for n, w in zip(latents, each, strict=True)
        )
        x = np.ones((256, 256))
        # Products of connections take 2.5 times as long as such a product: their numbers are moved first.
        of_operators = 2.5 * seconds_of(lambda: x @ x) * flops / (2.0 * 256**3)
        passes = shape.nodes
        connections = max(each) * shape.nodes * views
    else:
        passes = shape.nodes * (2 if problem.normalisation.active else 1)
        of_operators, connections = 0.0, 0.0
    gradient = shared(_gradient, problem)
    plain = gradient if not needs_connections(problem) else 0.0
    twice = needs_connections(problem) and _pairs(problem) > LONG  # sums that are not kept
    # A backward pass for an operator takes 0.8 gradients, and to check and build the result 4 ms.
    seconds = 4e-3 + (2.2 if twice else 1.2) * gradient + 0.8 * passes * plain + of_operators
    numbers = 3 * len(shape.level_of) * shape.nodes
    kept = COPIES * ((1 + passes * bool(plain)) * size_of(problem) + connections)
    contents = f"gradient by level, operators of {len(shape.level_of):,} latents, growth rates of their nodes"
    return prediction_of("operator", seconds, kept, 2 * numbers, contents)


def _of_samples(problem: Problem) -> Prediction:
    """Cost of the operators of views that are drawn, from fewer of them, and from their pairs."""
    shape, samples = problem.shape, problem.operator.samples
    few = 80
    trial = with_values(problem, {"operator.samples": few})
    views = float(samples * len(problem.tree.root))
    pairs = views**2 * (problem.loss.kind in PAIRED)
    # Results come from all views, and from those without each block, which is an eighth of them.
    seconds = BLOCKS * seconds_of(partial(measured, SampledTables(trial, draw_views(trial)))) * samples / few
    # With operators pairs are taken four times, for all views and without each block.
    seconds += 4.0 * PAIR * pairs * (BLOCKS + 1)
    numbers = 3 * len(shape.level_of) * shape.nodes
    kept = 3 * views * sum(shape.latents) * shape.nodes * shape.nodes
    contents = f"gradient by level, operators of {len(shape.level_of):,} latents from views that are drawn"
    return prediction_of("operator", seconds, kept, 4 * numbers, contents)


def population(problem: Problem) -> Prediction:
    """Cost of the gradient flow."""
    gradient, numbers = shared(_gradient, problem), problem.time.outputs * problem.weight_count
    contents = f"{problem.weight_count:,} weights, selectivities, correlations at {problem.time.outputs:,} times"
    kept = COPIES * size_of(problem) + 3 * numbers
    seconds = problem.time.outputs * gradient
    # Nodes change some 10 times per unit of time, with unit weights, and 60 gradients are taken in between.
    usual = 60 * (1.0 + 10.0 * problem.time.stop) * gradient
    seconds += usual if _is_long(problem) else _flow_seconds(tables_of(problem), usual)
    return prediction_of("population", seconds, kept, 2 * numbers, contents)


def stationary(problem: Problem) -> Prediction:
    """Cost of networks at rest, of which each takes a flow and some Jacobians."""
    weights = problem.weight_count
    gradient = shared(_gradient, problem)
    # A flow takes some 3000 gradients until it rests, and least squares and Newton's method some 25 Jacobians. Outputs
    # that are normalised turn round to the last gradient, in steps that take half as long again, before the second
    # search, which takes as many Jacobians.
    active = problem.normalisation.active
    of_a_flow, searches = (1.5 * MOST_GRADIENTS, 2) if active else (3000.0, 1)
    seconds = problem.stationary.starts * (of_a_flow + searches * 25 * 2 * weights) * gradient
    numbers = 10 * (2 * weights + 2 * len(problem.shape.level_of) * problem.shape.nodes)
    return prediction_of("stationary", seconds, COPIES * size_of(problem) + weights**2, numbers, "networks at rest")


class _Trial(Pieces):
    """Flow that is followed for 0.3 processor seconds, with what each of its steps took."""

    def __init__(self, tables: Tables) -> None:
        problem = tables.problem
        ends = np.array([0.0, problem.time.stop])
        super().__init__(tables, problem.initial_weights, ends, problem.population.tolerance)
        self._began, self.taken = time.process_time(), [(0.0, 0.0)]

    def _margin(self, t: float, y: FloatArray) -> float:
        if t > self.taken[-1][0]:
            self.taken.append((t, time.process_time() - self._began))
        return super()._margin(t, y)

    def _velocity(self, y: FloatArray) -> FloatArray:
        seconds = time.process_time() - self._began
        if seconds > (0.3 if len(self.taken) > 1 else 0.5):  # within a step, which takes many where nodes slide
            self.taken[-1] = (self.taken[-1][0], seconds)
            raise _EnoughError
        return super()._velocity(y)


class _EnoughError(Exception):
    """End of a trial."""


def _flow_seconds(tables: Tables, usual: float) -> float:
    """Processor time of the flow, which goes on as in the second half of its trial, or until it is infinite.

    Parameters
    ----------
    usual : float
        Time of flows whose first step is not over within the trial.
    """
    trial = _Trial(tables)
    stop = tables.problem.time.stop
    ended = True
    try:
        while trial.time < stop:
            trial.follow()
    except BlowUpError:
        pass
    except _EnoughError:
        ended = False
    times, seconds = np.transpose(trial.taken)
    if ended:
        return float(seconds[-1])
    if len(times) == 1:
        return usual
    half = 0.5 * seconds[-1]
    return float(seconds[-1] + half * (stop - times[-1]) / (times[-1] - np.interp(half, seconds, times)))


def _gradient(problem: Problem) -> float:
    """Seconds of a loss and its gradient: measured, or from the numbers of pairs and entries where these take long."""
    if _is_long(problem):
        return PAIR * _pairs(problem) + ENTRY * size_of(problem)
    tables, weights = tables_of(at_time(problem, 0.0)), problem.initial_weights
    return seconds_of(lambda: tables.loss_and_gradient(weights))


def _is_long(problem: Problem) -> bool:
    """Whether a gradient takes so long, or so much memory, that it is not tried."""
    return size_of(problem) > LARGE or _pairs(problem) > LONG


def _pairs(problem: Problem) -> float:
    """Number of pairs of different outputs at the start, of losses that depend on them."""
    if problem.loss.kind not in SUMMED:
        return 0.0
    count = problem.shape.configurations[-1]
    return float(count if problem.data is not None else different_outputs(problem)[0]) ** 2


def density(problem: Problem) -> Prediction:
    """Cost of the density of nodes.

    Raises
    ------
    InputError
        If the nodes have no limit that is solved.
    """
    check_density(problem)
    outputs, weights = problem.time.outputs, weights_of(problem)
    if problem.density.scheme != "particles" and weights in ON_CELLS:
        if weights == 3:
            return _on_sphere(problem)
        return _on_circle(problem) if has_inner_time(problem) else _on_arcs(problem)
    nodes = carried_sample(problem, 7, 0)  # 2^7 nodes say what one costs
    numbers = 2 ** (most_of(problem) - 3) * len(nodes.rows)  # usually an eighth of the largest sample
    seconds = RUNS * (numbers / len(nodes.w) / len(nodes.rows)) * _of_a_run(nodes, problem)
    kept = COPIES * numbers * len(nodes.paths.gates.normal)
    contents = f"means over {RUNS} samples of nodes with {weights} weights"
    return prediction_of("density", seconds, kept, outputs * SHOWN * len(nodes.rows) * weights, contents)


def _of_a_run(nodes: Carried, problem: Problem) -> float:
    """Processor seconds of a run, from one step in the middle, or from the first that follows the slope of the loss."""
    if not has_inner_time(problem):
        # Steps are half as long as the longest, 16 of them or one for each output time; some are tried twice.
        steps = 2.5 * max(16, problem.time.outputs - 1)
        return steps * seconds_of(lambda: one_step(problem, nodes, problem.time.stop / steps))
    depth = 0.5 * problem.time.stop * nodes.o * abs(nodes.Delta(0.0))
    first = nodes.starting(nodes.w)
    # Each of some 30 steps of the time T takes as long as all up to the middle at once.
    return (30 + 3.0 * problem.time.outputs) * seconds_of(lambda: nodes.moved(first, depth))


def _on_sphere(problem: Problem) -> Prediction:
    triangles, nodes = carried_triangles(problem, COARSE)
    larger = (FINE / COARSE) ** 2
    seconds = 4.0 / 3.0 * larger * _of_a_run(nodes, problem)
    numbers = larger * len(triangles.mass) * len(nodes.rows)
    cells = problem.time.outputs * len(nodes.pull) * 2 * (FINE // TRIANGLES_PER_CELL) ** 2
    contents = f"densities of {len(nodes.pull):,} kinds of nodes on a sphere"
    return prediction_of("density", seconds, COPIES * numbers * len(nodes.paths.gates.normal), cells, contents)


def _on_arcs(problem: Problem) -> Prediction:
    ends, nodes = carried_arcs(problem, 256)  # pieces of the circle, with which two runs usually agree
    numbers = problem.time.outputs * len(nodes.pull) * problem.density.cells
    contents = f"densities of {len(nodes.pull):,} kinds of nodes on {problem.density.cells:,} cells"
    kept = COPIES * len(ends) * len(nodes.rows) * len(nodes.paths.gates.normal) + 3 * numbers
    # Ends of pieces go along, twice as many as nodes, and a run with half of the pieces and steps is before it.
    return prediction_of("density", 2.5 * _of_a_run(nodes, problem), kept, numbers, contents)


def _on_circle(problem: Problem) -> Prediction:
    nodes, outputs = ensemble_of(problem), problem.time.outputs
    # The flow of nodes takes some 120 averages over them.
    seconds = (120 + outputs) * seconds_of(lambda: nodes.Delta(0.5 * problem.time.stop * nodes.o))
    numbers = outputs * len(nodes.pull) * (problem.density.cells + len(nodes.flows.circle.gates))
    contents = f"densities of {len(nodes.pull):,} kinds of nodes on {problem.density.cells:,} cells"
    return prediction_of("density", seconds, 3 * numbers, numbers, contents)


def particles(problem: Problem) -> Prediction:
    """Cost of SGD, from some steps; see `cost_of_replicas`."""
    simulation = simulation_of(problem)
    problem = max(InTime(problem).extremes(problem.time.stop).values(), key=activations_of_a_batch)
    narrow = problem
    if problem.weight_count > MOST_WEIGHTS and not isinstance(problem.network.initial, ExplicitStart):
        nodes = max(1, int(problem.shape.nodes * math.sqrt(MOST_WEIGHTS / problem.weight_count)))
        narrow = with_values(problem, {"network.nodes_per_latent": nodes, "initial": None})
    wider = problem.weight_count / narrow.weight_count
    each = activations_of_a_batch(narrow) // problem.training.batch_size
    anchors, samples = problem.training.batch_size, problem.particles.score_samples
    most = max(TRIAL // each, 2)  # a score takes two samples or more
    fewer = min(anchors, most)
    scored = min(samples, most)
    trial = with_values(narrow, {"training.batch_size": fewer, "particles.score_samples": scored})
    tables = exact_tables(problem)
    size = 0.0 if tables is None else size_of(tables.problem)
    replicas = partial(Replicas, trial, exact=size <= LARGE)
    found = cost_of_replicas(simulation, replicas, wider * anchors / fewer, wider * samples / scored)
    rows = problem.time.outputs * math.ceil(problem.particles.replicas / available_cores())
    return replace(found, seconds=found.seconds + (ENTRY * size * rows if size > LARGE else 0.0))
