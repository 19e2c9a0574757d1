"""Predicted cost of replicas: processor time of some steps, memory at the peak, and the size of the file."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count
from typing import Any

from meanfield.ensembles.ensemble import DAY
from meanfield.ensembles.simulation import BYTES_PER_NUMBER, Simulation, check_memory, predicted_memory
from meanfield.ensembles.statistics import LEVELS
from meanfield.errors import InputError
from meanfield.explanation.prediction import HEADER, Prediction, seconds_of
from meanfield.process.cores import available_cores


def cost_of_replicas(
    simulation: Simulation,
    make: Callable[[range], Any],
    step: float = 1.0,
    output: float = 1.0,
    same: Callable[[Any], object] | None = None,
) -> Prediction:
    """Cost of all replicas, from some steps of one block of them, or of a smaller trial in its place.

    Parameters
    ----------
    simulation : Simulation
    make : callable
        Stepper of a range of replicas, or a trial of it with fewer samples.
    step, output : float
        Work of a step and of an output of the run, relative to the trial.
    same : callable, optional
        What an output of a stepper does that costs the same in the trial.

    Raises
    ------
    InputError
        If they would take longer than `particles.longest_days`, or more memory than is free.
    """

    def seconds() -> float:
        calls, stepper = count(), make(simulation.blocks[0])
        per_step = step * seconds_of(lambda: stepper.advance(next(calls), 1))
        per_output = seconds_of(lambda: stepper.rows)
        unchanged = min(per_output, seconds_of(lambda: same(stepper))) if same else 0.0
        per_output = unchanged + output * (per_output - unchanged)
        rounds = math.ceil(len(simulation.blocks) / available_cores())
        return rounds * (int(simulation.step_at[-1]) * per_step + simulation.time.outputs * per_output)

    return prediction_of_replicas(simulation, seconds, ", ".join(simulation.rows))


def prediction_of_replicas(simulation: Simulation, seconds: Callable[[], float], names: str) -> Prediction:
    """Cost of all replicas whose time is known, or found by a trial that memory is checked before.

    Parameters
    ----------
    simulation : Simulation
    seconds : callable
        Predicted time of all replicas.
    names : str
        What the file holds of each replica.

    Raises
    ------
    InputError
        If they would take longer than `particles.longest_days`, or more memory than is free.
    """
    check_memory(simulation, available_cores(), in_memory=False)
    time = seconds()
    _check_days(simulation, time)
    memory = predicted_memory(simulation, available_cores(), in_memory=False)
    contents, size = _contents_of(simulation, names)
    return Prediction("particles", "", time, memory, size + HEADER, contents)


def _check_days(simulation: Simulation, seconds: float) -> None:
    """Refuse replicas that would take longer than `particles.longest_days`.

    Raises
    ------
    InputError
        With the keys to change.
    """
    settings = simulation.particles
    if seconds > settings.longest_days * DAY:
        raise InputError(
            f"{settings.replicas:,} replicas of {simulation.step_at[-1]:.3g} steps would take about "
            f"{seconds / DAY:,.2g} days, and particles.longest_days = {settings.longest_days:g}; lower time.stop, "
            f"{simulation.size} or particles.replicas, or raise particles.longest_days"
        )


def _contents_of(simulation: Simulation, names: str) -> tuple[str, int]:
    """What a file holds in words, and the number of bytes of its numbers."""
    settings, statistics = simulation.particles, simulation.particles.record == "statistics"
    widths = {name: math.prod(shape) for name, shape in simulation.rows.items()}
    ranked = widths if simulation.quantiles is None else simulation.quantiles
    numbers = sum(
        n * (1 + n + len(LEVELS) * (name in ranked)) if statistics else n * settings.replicas
        for name, n in widths.items()
    )
    snapshots = settings.replicas * simulation.snapshot_bytes
    contents = f"{'statistics' if statistics else names} of {settings.replicas:,} replicas"
    if snapshots:
        contents += f", weights at {len(simulation.snapshot_index)} times"
    return contents, BYTES_PER_NUMBER * simulation.time.outputs * numbers + snapshots
