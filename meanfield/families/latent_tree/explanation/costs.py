"""Predicted cost of methods: usual numbers of evaluations, times the processor time of one."""

from __future__ import annotations

from functools import partial

import numpy as np

from meanfield.explanation.prediction import Prediction
from meanfield.explanation.rates import seconds_of
from meanfield.explanation.replicas import HEADER, cost_of_replicas
from meanfield.families.latent_tree.many_nodes.ensemble import ensemble_of
from meanfield.families.latent_tree.many_nodes.solver import check_density
from meanfield.families.latent_tree.operators import needs_connections
from meanfield.families.latent_tree.particles.simulation import simulation_of
from meanfield.families.latent_tree.particles.stepper import Replicas
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.ring.tables import tables_of
from meanfield.families.latent_tree.tables import different_outputs, size_of

EVALUATIONS, CHANGES = 60, 10.0
"""Usual number of gradients between two changes of a node, and of changes per unit of time, with unit weights."""

AVERAGES = 120
"""Usual number of averages over nodes that their flow takes."""

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
        passes = shape.nodes * (2 if problem.network.output_normalisation else 1)
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
    weights, seconds = problem.initial_weights, _gradient(problem)
    gradients = EVALUATIONS * (1.0 + CHANGES * problem.time.stop) + 2.0 * problem.time.outputs
    numbers = problem.time.outputs * len(weights.vector)
    contents = f"{len(weights.vector):,} weights, selectivities, correlations at {problem.time.outputs:,} times"
    memory = BYTES * (COPIES * size_of(problem) + 3 * numbers)
    return Prediction("population", "", gradients * seconds, memory, 2 * BYTES * numbers + HEADER, contents)


def _gradient(problem: Problem) -> float:
    """Seconds of a loss and its gradient: measured, or from the number of pairs where these take long."""
    tables, weights, pairs = tables_of(problem), problem.initial_weights, _pairs(problem)
    if pairs > LONG:
        return PAIR * pairs
    return seconds_of(lambda: tables.loss_and_gradient(weights))


def _pairs(problem: Problem) -> float:
    """Number of pairs of different outputs at the start, of losses that depend on them."""
    if problem.loss.kind not in ("triplet", "infonce"):
        return 0.0
    count = problem.shape.configurations[-1]
    return float(count if problem.data is not None else len(different_outputs(problem))) ** 2


def density(problem: Problem) -> Prediction:
    """Cost of the density of nodes.

    Raises
    ------
    InputError
        If the problem has no density in one dimension.
    """
    check_density(problem)
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
    return cost_of_replicas(simulation_of(problem), partial(Replicas, problem))
