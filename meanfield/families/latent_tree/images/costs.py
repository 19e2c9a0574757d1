"""Predicted cost of training on images, from some steps."""

from __future__ import annotations

import math
from itertools import count

from meanfield.ensembles.ensemble import DAY
from meanfield.ensembles.memory import check_memory, predicted_memory
from meanfield.errors import InputError
from meanfield.explanation.prediction import Prediction
from meanfield.explanation.rates import seconds_of
from meanfield.families.latent_tree.images.problem import ImageProblem
from meanfield.families.latent_tree.images.simulation import BYTES, simulation_of
from meanfield.families.latent_tree.images.stepper import ImageReplicas
from meanfield.process.cores import available_cores

HEADER = 40_000
"""Number of bytes of a file besides its numbers."""


def particles(problem: ImageProblem) -> Prediction:
    """Cost of training.

    Raises
    ------
    InputError
        If it would take longer than `particles.longest_days`, or more memory than is free.
    """
    simulation, settings, workers = simulation_of(problem), problem.particles, available_cores()
    check_memory(simulation, workers, in_memory=False)
    calls, stepper = count(), ImageReplicas(problem, simulation.blocks[0])
    per_step = seconds_of(lambda: stepper.advance(next(calls), 1))
    per_output = seconds_of(lambda: stepper.rows)
    rounds = math.ceil(len(simulation.blocks) / workers)
    seconds = rounds * (problem.time.stop * problem.steps_per_time * per_step + problem.time.outputs * per_output)
    if seconds > settings.longest_days * DAY:
        raise InputError(
            f"{settings.replicas:,} replicas would take about {seconds / DAY:,.2g} days, and particles.longest_days = "
            f"{settings.longest_days:g}; lower time.stop, particles.replicas or network.widths, or raise "
            "particles.longest_days"
        )
    numbers = problem.time.outputs * len(simulation.rows)
    size = settings.replicas * (BYTES * numbers + simulation.snapshot_bytes) + HEADER
    contents = f"{', '.join(simulation.rows)} of {settings.replicas:,} replicas"
    return Prediction("particles", "", seconds, predicted_memory(simulation, workers, in_memory=False), size, contents)
