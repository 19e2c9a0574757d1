"""Predictions for all methods of contrastive problems: whether they apply, time, memory, and size of the file."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count

from meanfield.ensembles.simulation import BYTES_PER_NUMBER, blocks_of
from meanfield.explanation.prediction import HEADER, Prediction, shared
from meanfield.explanation.rates import seconds_of
from meanfield.explanation.replicas import prediction_of_replicas
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.density.choice import why_no_cells
from meanfield.families.contrastive.channels.density.display import CELLS, JOINT_CELLS, joint_outputs
from meanfield.families.contrastive.channels.density.plan import coarse_plan, fixed_plan
from meanfield.families.contrastive.channels.density.search import PlaneSearch
from meanfield.families.contrastive.channels.density.solver import NODE_SCALE, settings_of
from meanfield.families.contrastive.channels.limit.solver import PILOT, RUNS, pilot_of, size_after_pilot
from meanfield.families.contrastive.explanation.analysis_costs import (
    channels_seconds,
    dynamics_seconds,
    stationary_seconds,
    trajectory_seconds,
)
from meanfield.families.contrastive.explanation.density_cost import density_cost
from meanfield.families.contrastive.limit import limit_of
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.simulation import MOST_TOGETHER, simulation_of
from meanfield.families.contrastive.sgd.steppers import prepare_steppers
from meanfield.mckean_vlasov.cells import feature_quadrature
from meanfield.mckean_vlasov.stationary import densities
from meanfield.problems.problem_keys import with_value
from meanfield.process.cores import available_cores

CELL_STEP = 8e-8
"""Seconds for each cell, node and step of a level: five sweeps along lines of cells."""

SHOWN_CELL = 3e-7
"""Seconds for each cell and node at each output time, for the densities that are shown."""

PACKED_NUMBER = 0.55 * BYTES_PER_NUMBER
"""Bytes that are left of a number of a density when it is compressed."""


LARGEST_TRIAL = 1 << 18
"""Largest number of weights of a trial run, and of samples; with more of them each step costs in proportion."""

STEPS = {"chain": 256, "projected": 4, "plain": 1}
"""Steps of one call in a trial, so that the call itself takes little of them."""


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
    size = BYTES_PER_NUMBER * states * nodes * densities.CELLS
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
    simulation = simulation_of(problem)
    # Each byte of weights takes 2.5e-8 seconds to be compressed and written.
    written = 2.5e-8 * problem.particles.replicas * simulation.snapshot_bytes
    found = prediction_of_replicas(
        simulation, lambda: particle_seconds(problem, simulation.label) + written, ", ".join(simulation.rows)
    )
    return replace(found, contents=f"{found.contents} ('{simulation.label}')")


def particle_seconds(problem: Problem, method: str) -> float:
    """Predict the time of `simulate_sgd`.

    Parameters
    ----------
    problem : Problem
    method : str
        How steps are taken: `plain`, `projected` or `chain`.
    """
    N, samples = problem.particles.dimension, problem.model.batch_size
    fewer = min(samples, LARGEST_TRIAL // 4)
    trial = with_value(problem, "model.batch_size", fewer)
    dimension = _trial_dimension(trial, method)
    blocks = blocks_of(problem.particles.replicas, MOST_TOGETHER if method == "chain" else 1)
    rounds = math.ceil(len(blocks) / available_cores())
    # Each of fewer than four chains would take longer than one of many.
    together = blocks[0][: max(4, LARGEST_TRIAL // fewer)]
    stepper = prepare_steppers(with_value(trial, "particles.dimension", dimension), method)(together)
    steps, calls = max(1, min(STEPS[method], LARGEST_TRIAL // (fewer * len(together)))), count()
    per_step = seconds_of(lambda: stepper.advance(steps * next(calls), steps)) / steps * samples / fewer
    whole = len(blocks[0]) / len(together) * (N / dimension if method != "chain" else 1.0)
    return rounds * problem.time.stop * N * per_step * whole


def _trial_dimension(problem: Problem, method: str) -> int:
    """Dimension N of the trial run: that of the whole run where steps are quick enough."""
    N = problem.particles.dimension
    if method == "chain":
        return N
    samples = problem.model.batch_size if method == "plain" else 1
    return min(N, max(LARGEST_TRIAL // samples, 64 + 2 * (len(problem.features) + problem.model.channels)))


def several_cost(problem: Problem) -> Prediction:
    """Predict time, memory and size of the density of several channels.

    Raises
    ------
    InputError
        If averages over samples would take too many nodes.
    """
    closure = shared(ChannelClosure, problem)
    if problem.density.scheme == "particles" or why_no_cells(problem):
        return _of_particles(problem, closure)
    return _of_formula(problem) if problem.prior.functions.linear else _of_cells(problem, closure)


def _of_cells(problem: Problem, closure: ChannelClosure) -> Prediction:
    settings = settings_of(problem)
    factors: tuple[int, ...]
    if settings.tolerance is None:
        plan, factors, more = fixed_plan(closure, settings), (1, 2), 1.0
    else:
        plan = coarse_plan(closure, settings, settings.tolerance)
        factors = PlaneSearch.factors[:5]  # most searches end there
        discrete = len(plan.nodes.u) <= 2 ** len(problem.features)
        # Where the law is continuous, the choice of nodes costs as much again, and leaves more of them than at first.
        more = 1.0 if discrete or settings.feature_nodes else 3.0
    outputs, nodes = problem.time.outputs, int(more * len(plan.nodes.u))
    work = more * sum(plan.work(factor) for factor in factors)
    shown = more * outputs * sum(plan.cells(factor) ** 2 for factor in factors) * len(plan.nodes.solved[1])
    seconds = CELL_STEP * work + SHOWN_CELL * shown
    last = factors[-1]
    warning = ""
    if more * plan.work(last) > PlaneSearch.most_work:
        seconds = min(seconds, CELL_STEP * len(factors) * PlaneSearch.most_work)
        warning = "density.tolerance seems out of reach: the levels that it needs take too long; raise it"
    size = PACKED_NUMBER * _numbers(nodes, outputs) + HEADER
    contents = f"q, M, r, P(w1, w2|u) on {nodes} nodes x {plan.cells(last)} x {plan.cells(last)} cells"
    return Prediction("density", "", seconds, more * plan.memory(last), size, contents, warning)


def _of_formula(problem: Problem) -> Prediction:
    nodes = len(feature_quadrature(problem.coordinates, problem.density.feature_nodes, NODE_SCALE)[1])
    outputs = problem.time.outputs
    numbers = _numbers(nodes, outputs)
    joint = len(joint_outputs(outputs, nodes)) * (nodes + 1) * JOINT_CELLS**2
    seconds, memory = (
        channels_seconds(problem) + SHOWN_CELL * (numbers + joint),
        3.0 * BYTES_PER_NUMBER * (numbers + joint),
    )
    contents = f"q, M, r, Gaussian P(w1, w2|u) on {nodes} nodes"
    return Prediction("density", "", seconds, memory, PACKED_NUMBER * numbers + HEADER, contents)


def _of_particles(problem: Problem, closure: ChannelClosure) -> Prediction:
    """Time of one run of the pilot to the first output time, times all particles and steps that its errors ask for."""
    averages = closure.randomisations or [closure] * RUNS
    each = seconds_of(lambda: pilot_of(problem, averages[:1]))
    size = size_after_pilot(problem, averages, pilot_of(problem, averages))
    factor = size.particles * size.steps / (PILOT.particles * PILOT.steps)
    d1, d2 = len(problem.features), problem.model.channels
    moments = RUNS * problem.time.outputs * (d1 + d2 + 1) * d2
    memory = BYTES_PER_NUMBER * (4.0 * RUNS * size.particles * (d1 + 3 * d2) + 3.0 * moments)
    seconds = (1.0 + factor) * (problem.time.outputs - 1) * RUNS * each
    file = HEADER + 1e6 + 3.0 * BYTES_PER_NUMBER * moments / RUNS
    return Prediction("density", "", seconds, memory, file, "q, M, r, weights of interacting particles")


def _numbers(nodes: int, outputs: int) -> float:
    """Numbers of the densities of single weights, which a result holds."""
    return float(2 * outputs * CELLS * (nodes + 2))
