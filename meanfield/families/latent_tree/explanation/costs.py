"""Predicted cost of methods: usual numbers of evaluations, times the processor time of one."""

from __future__ import annotations

from functools import partial

import numpy as np

from meanfield.explanation.prediction import Prediction
from meanfield.explanation.rates import seconds_of
from meanfield.explanation.replicas import HEADER, cost_of_replicas
from meanfield.families.latent_tree.many_nodes.carried import Carried
from meanfield.families.latent_tree.many_nodes.ensemble import ensemble_of
from meanfield.families.latent_tree.many_nodes.particle_density import RUNS, SHOWN, carried_sample, most_of
from meanfield.families.latent_tree.many_nodes.solver import ON_CELLS, check_density, weights_of
from meanfield.families.latent_tree.many_nodes.sphere_density import COARSER, carried_triangles
from meanfield.families.latent_tree.operators import needs_connections
from meanfield.families.latent_tree.particles.simulation import simulation_of
from meanfield.families.latent_tree.particles.stepper import Replicas
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.ring.tables import tables_of
from meanfield.families.latent_tree.tables import size_of

EVALUATIONS, CHANGES = 60, 10.0
"""Usual number of gradients between two changes of a node, and of changes per unit of time, with unit weights."""

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

RESULT = 4e-3
"""Usual number of processor seconds to check and build the result of operators."""


def operator(problem: Problem) -> Prediction:
    """Cost of the operators at the initial weights."""
    tables, weights, shape = tables_of(problem), problem.initial_weights, problem.shape
    if needs_connections(problem):
        views, each = float(shape.configurations[-1]), [shape.nodes * inputs for inputs in shape.inputs]
        latents = shape.latents[1:]
        pairs = views**2 if problem.loss.kind != "beta" else 2.0 * len(problem.tree.root) * views
        flops = sum(n * 2.0 * shape.nodes * (pairs * w + views * w * w) for n, w in zip(latents, each, strict=True))
        x = np.ones((PRODUCT, PRODUCT))
        of_operators = MOVES * seconds_of(lambda: x @ x) * flops / (2.0 * PRODUCT**3)
        passes, connections = shape.nodes, max(each) * shape.nodes * views
    else:
        passes = shape.nodes * (2 if problem.network.output_normalisation else 1)
        of_operators, connections = 0.0, 0.0
    gradient = seconds_of(lambda: tables.loss_and_gradient(weights))
    plain = gradient if not needs_connections(problem) else 0.0
    seconds = RESULT + 1.2 * gradient + BACKWARD * passes * plain + of_operators
    numbers = 3 * len(shape.level_of) * shape.nodes
    memory = BYTES * (COPIES * (1 + passes * bool(plain)) * size_of(problem) + COPIES * connections)
    contents = f"gradient by level, operators of {len(shape.level_of):,} latents, growth rates of their nodes"
    return Prediction("operator", "", seconds, memory, 2 * BYTES * numbers + HEADER, contents)


def population(problem: Problem) -> Prediction:
    """Cost of the gradient flow."""
    tables, weights = tables_of(problem), problem.initial_weights
    tables.loss_and_gradient(weights)
    seconds = seconds_of(lambda: tables.loss_and_gradient(weights))
    gradients = EVALUATIONS * (1.0 + CHANGES * problem.time.stop) + 2.0 * problem.time.outputs
    numbers = problem.time.outputs * len(weights.vector)
    contents = f"{len(weights.vector):,} weights, selectivities, correlations at {problem.time.outputs:,} times"
    memory = BYTES * (COPIES * size_of(problem) + 3 * numbers)
    return Prediction("population", "", gradients * seconds, memory, 2 * BYTES * numbers + HEADER, contents)


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
    return cost_of_replicas(simulation_of(problem), partial(Replicas, problem))
