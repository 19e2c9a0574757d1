"""Run of an ensemble from beginning to end: check of its memory, storage, threads, and the arrays of the result."""

from __future__ import annotations

from collections.abc import Callable

from meanfield.arguments import as_whole
from meanfield.ensembles.arrays import Record
from meanfield.ensembles.collectors import make_collector
from meanfield.ensembles.ensemble import Ensemble, MakeStepper
from meanfield.ensembles.simulation import Simulation, check_memory
from meanfield.errors import InputError
from meanfield.process.cores import available_cores, one_thread
from meanfield.results.solved import Solved

STREAMS = "Philox4x32-10, layout 1"
"""Name of the random number generator and its layout: a run can only be resumed with the one that it began with."""

RESULT_FORMAT = "results 4"
"""Name of the format in which results of complete replicas are stored: a run can only be resumed with the one that it
began with."""


def run_ensemble(
    simulation: Simulation,
    prepare: Callable[[], MakeStepper],
    workers: int | None = None,
    record: Record | None = None,
) -> Solved:
    """Run all replicas of a simulation, or resume those of a record.

    Parameters
    ----------
    simulation : Simulation
    prepare : callable
        Called once, when the run is known to fit: computes what all replicas share, and returns what makes the
        stepper of a range of them.
    workers : int, optional
        Threads; by default one per core.
    record : Record, optional
        Where results and states go meanwhile; by default memory.

    Returns
    -------
    Solved
        `time`, the rows or their statistics, snapshots with `snapshot_time`, and marks.

    Raises
    ------
    InputError
        If `workers` is no number of threads, the run does not fit into the free memory or would take longer than
        `particles.longest_days`, or the record belongs to another one.
    """
    if not isinstance(record, Record | None):
        raise InputError(f"record = {record!r:.60}: give a folder as meanfield.Checkpoint(folder), or nothing")
    if workers is not None:
        as_whole(workers, "workers", "give the number of threads, 1 or more, or None for one per core", least=1)
    workers, record = workers or available_cores(), record or Record()
    check_memory(simulation, workers, record.in_memory)
    with record.open(simulation.identity.with_format(STREAMS, RESULT_FORMAT, simulation.label)):
        collector = make_collector(simulation, record)
        ensemble = Ensemble(simulation, prepare(), collector, record)
        with one_thread():
            status = ensemble.run(workers)
    arrays = {"time": simulation.time.outputs_at} | collector.arrays() | ensemble.marks
    effort = {"seed": simulation.particles.seed, "steps": simulation.label}
    return Solved(simulation.particles.kind, arrays, status, effort=effort)
