"""Predicted cost of methods: usual numbers of evaluations of the rates of change, times the time of one."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import replace
from itertools import count, islice

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.explanation.prediction import LONG, Prediction, prediction_of, seconds_of, shared
from meanfield.explanation.replicas import prediction_of_replicas
from meanfield.families.hidden_manifold.order_parameters.averaging.stationary_averages import (
    AVERAGING,
    GROUPS,
    RECORDS,
    FastChains,
)
from meanfield.families.hidden_manifold.order_parameters.averaging.trajectory import (
    OUTPUT_AVERAGES,
    RELAXATION_STEP,
    UNUSED_RULE_SIZE,
)
from meanfield.families.hidden_manifold.order_parameters.legs import steadily
from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import make_system, start_of
from meanfield.families.hidden_manifold.order_parameters.trajectory import (
    levels_of,
    system_of,
)
from meanfield.families.hidden_manifold.particles.features import blocks_of, latent_dimension
from meanfield.families.hidden_manifold.particles.fresh_samples import count_fresh
from meanfield.families.hidden_manifold.particles.plain import SAMPLES
from meanfield.families.hidden_manifold.particles.simulation import simulation_of
from meanfield.families.hidden_manifold.particles.steppers import prepare_steppers
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.families.hidden_manifold.regimes import has_fast_means
from meanfield.families.hidden_manifold.variables import CELLS
from meanfield.problems.base import corners_of
from meanfield.problems.problem_keys import with_values
from meanfield.process.cores import available_cores

EVALUATIONS = 13
"""Evaluations of the rates in a step."""

FEW_POINTS = 12
"""Points of a quadrature over a field in a trial of rates that take long."""

LONGEST_STRIDE = 256
"""Most steps of fast means between two records of a trial, of which averages take a million in all."""


def order_parameters(problem: Problem) -> Prediction:
    """Cost of the order parameters."""
    if has_fast_means(problem):
        return _averaged(problem)
    seconds, size, nodes = shared(_unit, problem)
    numbers = problem.time.outputs * size
    contents = f"Q, R, v at {problem.time.outputs:,} times, {nodes} nodes"
    return prediction_of("order parameters", _path(problem, seconds), 3 * numbers, numbers, contents)


def _averaged(problem: Problem) -> Prediction:
    """Cost of order parameters that move by averages over fast means: of chains at the start, timed once."""
    nodes = problem.inputs.eigenvalues.nodes(10)
    system = make_system(problem, nodes, UNUSED_RULE_SIZE)
    system.training[:] = problem.training.average_numbers(problem.time.stop)
    start, outputs = start_of(problem, system), problem.time.outputs
    chains, seconds = FastChains(problem, steadily(system)[0], start, 0), 0.0
    with suppress(BlowUpError):  # which the solver meets as well, at once
        chains.settle(np.tile(start, (GROUPS, 1)), LONGEST_STRIDE)
        began = time.process_time()
        speed = chains.averages(0.0, np.tile(start, (GROUPS, 1))).speed
        steps = math.ceil(problem.time.stop * speed / RELAXATION_STEP)
        evaluations = 4 * (steps + outputs) + OUTPUT_AVERAGES * outputs  # four averages over fast means in a step
        longer = max(1.0, chains.relaxation * AVERAGING / RECORDS / LONGEST_STRIDE)  # of steps that are not tried
        seconds = 1.5 * evaluations * longer * (time.process_time() - began)  # 1.5 batches of chains are usual
    contents = f"Q, R, v at {outputs:,} times, 10 nodes, averaged over fast means"
    numbers = outputs * len(start)
    return prediction_of("order parameters", seconds, 3 * GROUPS * numbers, numbers, contents)


def density(problem: Problem) -> Prediction:
    """Cost of the density."""
    seconds, size, nodes = shared(_unit, problem)
    numbers = problem.time.outputs * (size + nodes * problem.students * CELLS)
    contents = f"P(w|rho) at {problem.time.outputs:,} times, {nodes} nodes"
    return prediction_of("density", _path(problem, seconds), 3 * numbers, numbers, contents)


def fixed_points(problem: Problem) -> Prediction:
    """Cost of the search for fixed points."""
    seconds, size, _ = shared(_unit, problem)
    # 60 Jacobians and 5000 steps of trajectories are usual.
    evaluations = 2 * 60 * size + EVALUATIONS * 5000
    return prediction_of("fixed points", evaluations * seconds, 4 * size**2, 0, "states, eigenvalues")


def _path(problem: Problem, seconds: float) -> float:
    # 40 steps for what happens first, as many after a jump, and one per unit of eta (1 + kappa) t; 2.5 solutions until
    # two agree, by cost.
    eta, _, _, _, decay = problem.training.average_numbers(problem.time.stop)
    steps = 40 * (1 + len(corners_of(problem))) + float(eta * (1.0 + decay)) * problem.time.stop
    return 2.5 * EVALUATIONS * steps * seconds


def _unit(problem: Problem) -> tuple[float, int, int]:
    """Time of an evaluation of the rates, length of a state, and number of nodes."""
    (_, order, _), (nodes, _, _) = islice(levels_of(problem.order_parameters.tolerance), 2)

    def timed(points: int) -> tuple[float, int, int]:
        system = system_of(problem, nodes, points)
        y = start_of(problem, system)
        rate = np.empty(len(y))
        return seconds_of(lambda: rates(y, system, rate)), len(y), len(system.rho)

    seconds, *sizes = timed(few := min(order, FEW_POINTS))
    # Between kinks the time of three fields grows as the third power of the points, and of four somewhat faster.
    seconds *= (order / few) ** 3.3
    return timed(order) if seconds < LONG else (seconds, *sizes)


def cost(problem: Problem) -> Prediction:
    """Cost of SGD, from some steps; see `prediction_of_replicas`."""
    simulation = simulation_of(problem)
    found = prediction_of_replicas(simulation, lambda: _seconds(problem, simulation.label), "Q, R, v, ...")
    return replace(found, contents=f"{found.contents} ('{simulation.label}')")


def _seconds(problem: Problem, method: str) -> float:
    """Predicted time of all replicas, without output."""
    N = problem.particles.dimension
    delta = problem.inputs.aspect_ratio
    chain = method == "chain"
    # F of a trial has 2^21 entries at most, which takes 20 ms to draw; larger steps cost in proportion.
    trial = N if chain else min(N, max(math.isqrt(round(2**21 / delta)), 100))
    usual = float(problem.training.average_numbers(problem.time.stop)[2])
    batch = min(math.ceil(usual), SAMPLES)
    small = with_values(problem, {"particles.dimension": trial, "particles.replicas": 1, "training.batch_size": batch})
    stepper = prepare_steppers(small, method)(range(1))
    calls, replicas = count(), problem.particles.replicas
    steps = SAMPLES // batch
    seconds = seconds_of(lambda: stepper.advance(steps * next(calls), steps))
    per_sample = seconds / (steps * batch) * (N / trial) ** 2
    rounds = math.ceil(replicas / available_cores())
    samples = problem.time.stop * N * usual + (0 if chain else 2 * count_fresh(problem))  # fresh in double precision
    return rounds * (samples * per_sample + (0.0 if chain else _start_seconds(problem)))


def _start_seconds(problem: Problem) -> float:
    """Predicted time of the features of a replica, and of the eigenvectors along which weights are kept."""
    N, simulation = problem.particles.dimension, simulation_of(problem)
    D = latent_dimension(problem)
    kept = bool(simulation.snapshot_index) and blocks_of(problem) is None
    drawn = 2e-8 * N * D  # processor seconds
    return drawn + (5e-11 * N * D**2 + 4e-10 * D**3 if kept else 0.0)  # for F F^T and its eigenvectors
