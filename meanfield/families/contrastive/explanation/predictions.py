"""Predictions for all methods of contrastive problems: whether they apply, time, memory, and size of the file."""

from __future__ import annotations

from meanfield.ensembles.memory import BYTES_PER_NUMBER, check_memory, predicted_memory
from meanfield.explanation.prediction import Prediction
from meanfield.explanation.replicas import check_days, contents_of
from meanfield.families.contrastive.explanation.analysis_costs import (
    channels_seconds,
    dynamics_seconds,
    stationary_seconds,
    trajectory_seconds,
)
from meanfield.families.contrastive.explanation.density_cost import density_cost
from meanfield.families.contrastive.explanation.particle_cost import particle_seconds
from meanfield.families.contrastive.explanation.several_cost import HEADER, several_cost
from meanfield.families.contrastive.limit import limit_of
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.simulation import simulation_of
from meanfield.mckean_vlasov.cells import feature_quadrature
from meanfield.mckean_vlasov.stationary.densities import CELLS
from meanfield.process.cores import available_cores


def density(problem: Problem) -> Prediction:
    """Cost of the density: of one channel from a pilot on the coarsest level."""
    if problem.model.channels > 1:
        return several_cost(problem)
    cost = density_cost(limit_of(problem), problem.density)
    size = BYTES_PER_NUMBER * problem.time.outputs * cost.nodes * cost.cells
    contents = f"q, r, P(w|u) on {cost.nodes} nodes x {cost.cells} cells"
    # Densities of a run are compressed to some 0.55 of their size, those of stationary states to 0.25.
    return Prediction("density", "", cost.seconds, cost.memory, 0.55 * size + HEADER, contents, cost.warning)


def order_parameters(problem: Problem) -> Prediction:
    """Cost of the trajectory of the overlaps."""
    d1, d2, outputs = len(problem.features), problem.model.channels, problem.time.outputs
    if d2 > 1:
        size = BYTES_PER_NUMBER * outputs * (2 * d1 + 3 * d2 + 1) * d2
        seconds = channels_seconds(problem)
        return Prediction("order parameters", "", seconds, 2 * size, size + HEADER, "q, M, and what drives them")
    size = BYTES_PER_NUMBER * outputs * (d1 * (d1 + 2) + 2)
    contents = "q" if problem.model.centering == "batch" else "q, and its covariance at finite N"
    return Prediction("order parameters", "", trajectory_seconds(problem), 2 * size, size + HEADER, contents)


def dynamics(problem: Problem) -> Prediction:
    """Cost of fixed points, portrait and random starts."""
    size = {1: 10_000, 2: 240_000}.get(len(problem.features), 10_000)
    if problem.model.channels > 1:
        contents = "fixed points of the channels, what attracts"
        return Prediction("dynamics", "", dynamics_seconds(problem), 1e6, 10_000 + HEADER, contents)
    contents = "fixed points, what attracts, random starts"
    return Prediction("dynamics", "", dynamics_seconds(problem), 20 * size, size + HEADER, contents)


def stationary(problem: Problem) -> Prediction:
    """Cost of the search for stationary states."""
    nodes = len(feature_quadrature([f.coordinate for f in problem.features], problem.density.feature_nodes)[1])
    states = 3 ** len(problem.features)
    seconds = stationary_seconds(problem, states, nodes)
    size = BYTES_PER_NUMBER * states * nodes * CELLS
    contents = "all states, their stability, P(w|u)"
    # The search for stationary states works with some 12 MB.
    return Prediction("stationary states", "", seconds, 1.2e7 + 2 * size, 0.25 * size + HEADER, contents)


def particles(problem: Problem) -> Prediction:
    """Cost of SGD, from some steps.

    Raises
    ------
    InputError
        If it would take longer than `particles.longest_days`, or more memory than is free.
    """
    simulation, workers = simulation_of(problem), available_cores()
    check_memory(simulation, workers, in_memory=False)
    snapshots = problem.particles.replicas * simulation.snapshot_bytes
    # Each byte of weights takes 2.5e-8 seconds to be compressed and written.
    seconds = particle_seconds(problem, simulation.label) + 2.5e-8 * snapshots
    check_days(simulation, seconds)
    memory = predicted_memory(simulation, workers, in_memory=False)
    contents, size = contents_of(simulation, ", ".join(simulation.rows))
    return Prediction("particles", "", seconds, memory, size + HEADER, f"{contents} ('{simulation.label}')")
