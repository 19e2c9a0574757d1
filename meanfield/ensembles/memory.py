"""Memory that an ensemble takes, predicted before it takes any."""

from __future__ import annotations

import psutil

from meanfield.ensembles.simulation import Simulation
from meanfield.ensembles.statistics import BINS, EXACT
from meanfield.errors import InputError

BYTES_PER_NUMBER = 8
"""Number of bytes of a double."""


def predicted_memory(simulation: Simulation, workers: int, in_memory: bool) -> int:
    """Bytes that a run takes at its peak, besides what Python and its packages take.

    Parameters
    ----------
    simulation : Simulation
    workers : int
        Threads.
    in_memory : bool
        Whether what is kept is in memory, and not in files.
    """
    return _kept(simulation, in_memory) + _of_threads(simulation, workers)


def _kept(simulation: Simulation, in_memory: bool) -> int:
    """Bytes of what is kept of all replicas."""
    replicas, rows = simulation.particles.replicas, _bytes_of_rows(simulation)
    kept = replicas * BYTES_PER_NUMBER
    if simulation.particles.record == "statistics":
        kept += (3 * min(replicas, EXACT) + 4 * BINS) * rows  # quantiles take copies
    elif in_memory:
        kept += replicas * (rows + simulation.snapshot_bytes)
    return kept


def _of_threads(simulation: Simulation, workers: int) -> int:
    """Bytes of the blocks that are advanced at once."""
    blocks = simulation.blocks
    return min(workers, len(blocks)) * (len(blocks[0]) * _bytes_of_rows(simulation) + simulation.working_set)


def _bytes_of_rows(simulation: Simulation) -> int:
    """Bytes of the rows of one replica."""
    columns = max((place.stop for place in simulation.columns.values()), default=0)
    return int(simulation.time.outputs * columns * BYTES_PER_NUMBER)


def check_memory(simulation: Simulation, workers: int, in_memory: bool) -> None:
    """Refuse a run that does not fit into the memory that is free.

    Raises
    ------
    InputError
        With the keys to change.
    """
    settings = simulation.particles
    kept, of_threads = _kept(simulation, in_memory), _of_threads(simulation, workers)
    needed = kept + of_threads
    free = psutil.virtual_memory().available
    if needed <= 0.8 * free:  # other programs need some memory, too
        return
    # what takes less than a tenth of the memory is not worth while to save
    keeps_much, threads_take_much = (part >= 0.1 * needed for part in (kept, of_threads))
    remedies = [f"lower {simulation.size}" + " or particles.replicas" * keeps_much]
    if keeps_much and simulation.snapshot_index and in_memory:
        remedies.append("name fewer particles.snapshots, or save to a file with solvers/simulate_sgd.py")
    elif keeps_much and settings.record == "replicas" and in_memory:
        remedies.append("set particles.record = 'statistics'")
    if threads_take_much and simulation.together == 1:  # replicas go together where one takes next to none
        remedies.append(f"use fewer workers than {workers}")
    raise InputError(
        f"particles: {settings.replicas} replicas with N = {simulation.N:.15g} ('{simulation.label}') take "
        f"{needed / 2**30:.3g} GiB, but {free / 2**30:.3g} GiB are free; {'; '.join(remedies)}"
    )
