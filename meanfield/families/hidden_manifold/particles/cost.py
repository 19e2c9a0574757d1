"""Predicted cost of hidden-manifold SGD: the number of steps, times the processor time of one step of a trial."""

from __future__ import annotations

import math
from itertools import count

from meanfield.ensembles.memory import check_memory, predicted_memory
from meanfield.explanation.prediction import Prediction
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

LARGEST_TRIAL = 1 << 21
"""Largest number of entries of F in a trial, which takes about 20 ms to draw; steps of larger ones cost in
proportion."""

PER_ENTRY, PER_PRODUCT, PER_EIGENVECTOR = 2e-8, 5e-11, 4e-10
"""Processor seconds of drawing and packing F per entry, of F F^T per product, and of its eigenvectors per D^3."""

FRESH_SAMPLE = 2
"""Time of a fresh sample in steps: its products are in double precision."""

HEADER = 16_000
"""Number of bytes of a file that holds little else than attributes."""


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
    trial = N if chain else min(N, max(math.isqrt(round(LARGEST_TRIAL / delta)), 100))
    small = with_values(problem, {"particles.dimension": trial, "particles.replicas": 1})
    stepper = prepare_steppers(small, method)(range(1))
    calls, replicas = count(), problem.particles.replicas
    per_step = seconds_of(lambda: stepper.advance(SAMPLES * next(calls), SAMPLES)) / SAMPLES * (N / trial) ** 2
    rounds = math.ceil(replicas / available_cores())
    steps = problem.time.stop * N + (0 if chain else FRESH_SAMPLE * count_fresh(problem))
    return rounds * (steps * per_step + (0.0 if chain else _start_seconds(problem)))


def _start_seconds(problem: Problem) -> float:
    """Predicted time of the features of a replica, and of the eigenvectors along which weights are kept."""
    N, simulation = problem.particles.dimension, simulation_of(problem)
    D = latent_dimension(problem)
    kept = bool(simulation.snapshot_index) and blocks_of(problem) is None
    return PER_ENTRY * N * D + (PER_PRODUCT * N * D**2 + PER_EIGENVECTOR * D**3 if kept else 0.0)
