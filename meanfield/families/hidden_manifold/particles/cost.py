"""Predicted cost of hidden-manifold SGD: the number of steps, times the processor time of one step of a trial."""

from __future__ import annotations

import math
from itertools import count

from meanfield.ensembles.memory import check_memory, predicted_memory
from meanfield.explanation.prediction import HEADER, Prediction
from meanfield.explanation.rates import seconds_of
from meanfield.explanation.replicas import check_days, contents_of
from meanfield.families.hidden_manifold.particles.features import blocks_of, latent_dimension
from meanfield.families.hidden_manifold.particles.fresh_samples import count_fresh
from meanfield.families.hidden_manifold.particles.plain import SAMPLES
from meanfield.families.hidden_manifold.particles.simulation import simulation_of
from meanfield.families.hidden_manifold.particles.steppers import prepare_steppers
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.problems.problem_keys import with_values
from meanfield.process.cores import available_cores


def cost(problem: Problem) -> Prediction:
    """Cost of SGD, from some steps.

    Raises
    ------
    InputError
        If it would take longer than `particles.longest_days`, or more memory than is free.
    """
    simulation, workers = simulation_of(problem), available_cores()
    check_memory(simulation, workers, in_memory=False)
    seconds = _seconds(problem, simulation.label)
    check_days(simulation, seconds)
    memory = predicted_memory(simulation, workers, in_memory=False)
    contents, size = contents_of(simulation, "Q, R, v, ...")
    return Prediction("particles", "", seconds, memory, size + HEADER, f"{contents} ('{simulation.label}')")


def _seconds(problem: Problem, method: str) -> float:
    """Predicted time of all replicas, without output."""
    N, delta, chain = problem.particles.dimension, problem.inputs.aspect_ratio, method == "chain"
    # F of a trial has 2^21 entries at most, which takes 20 ms to draw; larger steps cost in proportion.
    trial = N if chain else min(N, max(math.isqrt(round(2**21 / delta)), 100))
    small = with_values(problem, {"particles.dimension": trial, "particles.replicas": 1})
    stepper = prepare_steppers(small, method)(range(1))
    calls, replicas = count(), problem.particles.replicas
    per_step = seconds_of(lambda: stepper.advance(SAMPLES * next(calls), SAMPLES)) / SAMPLES * (N / trial) ** 2
    rounds = math.ceil(replicas / available_cores())
    steps = problem.time.stop * N + (0 if chain else 2 * count_fresh(problem))  # fresh ones in double precision
    return rounds * (steps * per_step + (0.0 if chain else _start_seconds(problem)))


def _start_seconds(problem: Problem) -> float:
    """Predicted time of the features of a replica, and of the eigenvectors along which weights are kept."""
    N, simulation = problem.particles.dimension, simulation_of(problem)
    D = latent_dimension(problem)
    kept = bool(simulation.snapshot_index) and blocks_of(problem) is None
    drawn = 2e-8 * N * D  # processor seconds
    return drawn + (5e-11 * N * D**2 + 4e-10 * D**3 if kept else 0.0)  # for F F^T and its eigenvectors
