"""Predicted cost of training: usual numbers of evaluations, times the processor time of one."""

from __future__ import annotations

import math
from itertools import count

from meanfield.ensembles.ensemble import DAY
from meanfield.ensembles.memory import check_memory, predicted_memory
from meanfield.errors import InputError
from meanfield.explanation.prediction import Prediction
from meanfield.explanation.rates import seconds_of
from meanfield.families.alpha_contrastive.particles.simulation import simulation_of
from meanfield.families.alpha_contrastive.particles.stepper import Replicas
from meanfield.families.alpha_contrastive.population.solver import Flow, drift_of
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.process.cores import available_cores

BYTES = 8
"""Number of bytes of a double."""

EVALUATIONS, STEPS = 12, 3.0
"""Rates of change in a step of the flow, and usual number of steps in a unit of time, with unit weights."""

COPIES = 3
"""Usual number of arrays of the size of all outputs at once."""

HEADER = 40_000
"""Number of bytes of a file besides its numbers."""


def population(problem: Problem) -> Prediction:
    """Cost of the exact flow, from some rates of change."""
    flow = Flow(problem, drift_of(problem))
    per_rate = seconds_of(lambda: flow.rate(0.0, flow.start))
    rates = EVALUATIONS * (1.0 + STEPS * problem.time.stop / (1.0 - problem.training.momentum))
    numbers = problem.time.outputs * len(flow.start)
    contents = f"{len(flow.start):,} weights, energy, scores and ranks at {problem.time.outputs:,} times"
    return Prediction("population", "", rates * per_rate, BYTES * COPIES * numbers, BYTES * numbers + HEADER, contents)


def particles(problem: Problem) -> Prediction:
    """Cost of SGD, from some steps.

    Raises
    ------
    InputError
        If it would take longer than `particles.longest_days`, or more memory than is free.
    """
    simulation, settings, workers = simulation_of(problem), problem.particles, available_cores()
    check_memory(simulation, workers, in_memory=False)
    calls, stepper = count(), Replicas(problem, simulation.blocks[0])
    per_step = seconds_of(lambda: stepper.advance(next(calls), 1))
    per_output = seconds_of(lambda: stepper.rows)
    rounds = math.ceil(len(simulation.blocks) / workers)
    seconds = rounds * (problem.time.stop * problem.steps_per_time * per_step + problem.time.outputs * per_output)
    if seconds > settings.longest_days * DAY:
        raise InputError(
            f"{settings.replicas:,} replicas would take about {seconds / DAY:,.2g} days, and particles.longest_days = "
            f"{settings.longest_days:g}; lower time.stop or particles.replicas, or raise training.learning_rate or "
            "particles.longest_days"
        )
    numbers = problem.time.outputs * sum(map(math.prod, simulation.rows.values()))
    size = BYTES * numbers * (1 if settings.record == "statistics" else settings.replicas)
    contents = f"{', '.join(simulation.rows)} of {settings.replicas:,} replicas"
    memory = predicted_memory(simulation, workers, in_memory=False)
    return Prediction("particles", "", seconds, memory, size + HEADER, contents)
