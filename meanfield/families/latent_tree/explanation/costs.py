"""Predicted cost of methods: usual numbers of evaluations, times the processor time of one."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import partial

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.explanation.prediction import Prediction
from meanfield.explanation.rates import seconds_of
from meanfield.explanation.replicas import HEADER, cost_of_replicas
from meanfield.families.latent_tree.many_nodes.carried import Carried
from meanfield.families.latent_tree.many_nodes.ensemble import ensemble_of
from meanfield.families.latent_tree.many_nodes.particle_density import RUNS, SHOWN, carried_sample, most_of
from meanfield.families.latent_tree.many_nodes.solver import ON_CELLS, check_density, weights_of
from meanfield.families.latent_tree.many_nodes.sphere_density import COARSER, carried_triangles
from meanfield.families.latent_tree.operators import needs_connections
from meanfield.families.latent_tree.particles.simulation import activations_of_a_batch, simulation_of
from meanfield.families.latent_tree.particles.stepper import Replicas, exact_tables
from meanfield.families.latent_tree.pieces import Pieces
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.ring.tables import tables_of
from meanfield.families.latent_tree.sizes import different_outputs, size_of
from meanfield.families.latent_tree.tables import Tables
from meanfield.networks.triples import SUMMED
from meanfield.problems.problem_keys import with_values
from meanfield.process.cores import available_cores
from meanfield.typing import FloatArray

EVALUATIONS, CHANGES = 60, 10.0
"""Usual number of gradients between two changes of a node, and of changes per unit of time, with unit weights, for
flows whose gradient takes too long to try them."""

ENOUGH = 1.0
"""Processor seconds for which a flow is tried."""

AVERAGES = 120
"""Usual number of averages over nodes that their flow takes."""

CIRCLE = 2
"""Number of weights of nodes on a circle."""

COARSE, FINE = 12, 32
"""Sides of triangles along a meridian from which costs are taken, and to which runs usually go."""

SAMPLED, USUAL = 7, 3
"""Power of 2 of the nodes from which costs are taken, and by how much the usual one is below the largest."""

STEPS = 30
"""Usual number of steps of the time T, each of which takes as long as all up to the middle at once."""

BYTES = 8
"""Number of bytes of a double."""

COPIES = 12
"""Usual number of arrays of the size of all tables at once."""

BACKWARD = 0.8
"""Usual time of one backward pass for an operator, with the norms that follow from it, in gradients."""

PRODUCT = 256
"""Number of rows and columns of the matrices whose product says how fast products are."""

MOVES = 2.5
"""Usual factor by which products of connections take longer than such a product: their numbers are moved first."""

LONG, PAIR = 3e6, 7e-8
"""Number of pairs of outputs whose loss is not timed, and usual seconds of a pair."""

LARGE, ENTRY = 1e6, 4e-8
"""Number of entries of tables whose gradient is not timed, and usual seconds of an entry; it takes 50 bytes."""

TRIAL = 1 << 20
"""Largest number of inputs and activations of the samples of a trial of SGD; each takes some 50 bytes."""

RESULT = 4e-3
"""Usual number of processor seconds to check and build the result of operators."""


def operator(problem: Problem) -> Prediction:
    """Cost of the operators at the initial weights."""
    shape = problem.shape
    if needs_connections(problem):
        views, each = float(shape.configurations[-1]), [shape.nodes * inputs for inputs in shape.inputs]
        latents, samples = shape.latents[1:], 2.0
        columns = shape.nodes * sum(n * w for n, w in zip(latents, each, strict=True))
        pairs = 4.0 * _pairs(problem) if problem.loss.kind != "beta" else 2.0 * views
        flops = 2.0 * samples * pairs * columns + sum(
            n * 2.0 * shape.nodes * views * w * w for n, w in zip(latents, each, strict=True)
        )
        x = np.ones((PRODUCT, PRODUCT))
        of_operators = MOVES * seconds_of(lambda: x @ x) * flops / (2.0 * PRODUCT**3)
        passes, connections = shape.nodes, max(each) * shape.nodes * views
    else:
        passes = shape.nodes * (2 if problem.normalisation.active else 1)
        of_operators, connections = 0.0, 0.0
    gradient = _gradient(problem)
    plain = gradient if not needs_connections(problem) else 0.0
    twice = needs_connections(problem) and _pairs(problem) > LONG  # sums that are not kept
    seconds = RESULT + (2.2 if twice else 1.2) * gradient + BACKWARD * passes * plain + of_operators
    numbers = 3 * len(shape.level_of) * shape.nodes
    memory = BYTES * (COPIES * (1 + passes * bool(plain)) * size_of(problem) + COPIES * connections)
    contents = f"gradient by level, operators of {len(shape.level_of):,} latents, growth rates of their nodes"
    return Prediction("operator", "", seconds, memory, 2 * BYTES * numbers + HEADER, contents)


def population(problem: Problem) -> Prediction:
    """Cost of the gradient flow."""
    weights, gradient = problem.initial_weights, _gradient(problem)
    numbers = problem.time.outputs * len(weights.vector)
    contents = f"{len(weights.vector):,} weights, selectivities, correlations at {problem.time.outputs:,} times"
    memory = BYTES * (COPIES * size_of(problem) + 3 * numbers)
    seconds = problem.time.outputs * gradient
    if _is_long(problem):
        seconds += EVALUATIONS * (1.0 + CHANGES * problem.time.stop) * gradient
    else:
        seconds += _flow_seconds(tables_of(problem))
    return Prediction("population", "", seconds, memory, 2 * BYTES * numbers + HEADER, contents)


class _Trial(Pieces):
    """Flow that is followed for some processor seconds, with what each of its steps took."""

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
        if seconds > ENOUGH and len(self.taken) > 1:  # within a step, which takes many where nodes slide
            self.taken[-1] = (self.taken[-1][0], seconds)
            raise _EnoughError
        return super()._velocity(y)


class _EnoughError(Exception):
    """End of a trial."""


def _flow_seconds(tables: Tables) -> float:
    """Processor time of the flow, which goes on as in the second half of its trial, or until it is infinite."""
    trial, stop, ended = _Trial(tables), tables.problem.time.stop, True
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
    half = 0.5 * seconds[-1]
    return float(seconds[-1] + half * (stop - times[-1]) / (times[-1] - np.interp(half, seconds, times)))


def _gradient(problem: Problem) -> float:
    """Seconds of a loss and its gradient: measured, or from the numbers of pairs and entries where these take long."""
    if _is_long(problem):
        return PAIR * _pairs(problem) + ENTRY * size_of(problem)
    tables, weights = tables_of(problem), problem.initial_weights
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
        return _on_circle(problem) if weights == CIRCLE else _on_sphere(problem)
    nodes = carried_sample(problem, SAMPLED, 0)
    numbers = 2 ** (most_of(problem) - USUAL) * len(nodes.rows)
    seconds = RUNS * (numbers / len(nodes.w) / len(nodes.rows)) * _of_a_run(nodes, problem)
    memory = COPIES * BYTES * numbers * len(nodes.paths.gates.normal)
    contents = f"means over {RUNS} samples of nodes with {weights} weights"
    return Prediction("density", "", seconds, memory, outputs * SHOWN * len(nodes.rows) * weights * BYTES, contents)


def _of_a_run(nodes: Carried, problem: Problem) -> float:
    """Processor seconds of a run, from one step in the middle."""
    depth = 0.5 * problem.time.stop * nodes.o * abs(nodes.Delta(0.0))
    first = nodes.starting(nodes.w)
    return (STEPS + 3.0 * problem.time.outputs) * seconds_of(lambda: nodes.moved(first, depth))


def _on_sphere(problem: Problem) -> Prediction:
    triangles, nodes = carried_triangles(problem, COARSE)
    larger = (FINE / COARSE) ** 2
    seconds = 4.0 / 3.0 * larger * _of_a_run(nodes, problem)
    numbers = larger * len(triangles.mass) * len(nodes.rows)
    cells = problem.time.outputs * len(nodes.pull) * 2 * (FINE // COARSER) ** 2
    contents = f"densities of {len(nodes.pull):,} kinds of nodes on a sphere"
    memory = COPIES * BYTES * numbers * len(nodes.paths.gates.normal)
    return Prediction("density", "", seconds, memory, BYTES * cells + HEADER, contents)


def _on_circle(problem: Problem) -> Prediction:
    nodes, outputs = ensemble_of(problem), problem.time.outputs
    seconds = (AVERAGES + outputs) * seconds_of(lambda: nodes.Delta(0.5 * problem.time.stop * nodes.o))
    numbers = outputs * len(nodes.pull) * (problem.density.cells + len(nodes.flows.circle.gates))
    contents = f"densities of {len(nodes.pull):,} kinds of nodes on {problem.density.cells:,} cells"
    return Prediction("density", "", seconds, 3.0 * BYTES * numbers, BYTES * numbers + HEADER, contents)


def particles(problem: Problem) -> Prediction:
    """Cost of SGD, from some steps.

    Raises
    ------
    InputError
        If it would take longer than `particles.longest_days`, or more memory than is free.
    """
    each = activations_of_a_batch(problem) // problem.training.batch_size
    anchors, samples = problem.training.batch_size, problem.particles.score_samples
    fewer, scored = min(anchors, TRIAL // each + 1), min(samples, TRIAL // each + 1)
    trial = with_values(problem, {"training.batch_size": fewer, "particles.score_samples": scored})
    tables = exact_tables(problem)
    size = 0.0 if tables is None else size_of(tables.problem)
    replicas = partial(Replicas, trial, exact=size <= LARGE)
    found = cost_of_replicas(simulation_of(problem), replicas, anchors / fewer, samples / scored)
    rows = problem.time.outputs * math.ceil(problem.particles.replicas / available_cores())
    return replace(found, seconds=found.seconds + (ENTRY * size * rows if size > LARGE else 0.0))
