"""Run of an ensemble: threads advance blocks of replicas, show progress, and save states from which it can go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from meanfield.arguments import as_whole
from meanfield.ensembles.arrays import DIGEST, Array, Record
from meanfield.ensembles.collectors import Collector, Rows, make_collector
from meanfield.ensembles.simulation import Simulation, check_memory
from meanfield.ensembles.stepper import Stepper
from meanfield.errors import BlowUpError, InputError
from meanfield.process.cores import available_cores, one_thread
from meanfield.process.interrupts import uninterrupted
from meanfield.process.progress import progress_bar
from meanfield.results.solved import Solved
from meanfield.typing import IntArray

FIRST_CALL = 64
"""Number of steps of the first call of a stepper."""

TRIAL_SECONDS = 2.0
"""Time in seconds after which the pace of a run is known well enough to say how long it will take."""

DAY = 86400.0
"""Seconds of a day."""

CALL_SECONDS = 0.2
"""Time in seconds, about, that a stepper runs between two checks of the clock and of the keyboard."""

STEPPER_PREFIX = "stepper_"
"""Prefix of the names of a stepper's state among those of its block."""

MakeStepper = Callable[[range], Stepper]
"""Function that makes the stepper of a range of replicas."""


class Ensemble:
    """Execution of all replicas of a simulation on several threads.

    Parameters
    ----------
    make_stepper : callable
        From a range of replicas to their stepper.
    collector : Collector
        Takes the results.
    record : Record
        Keeps states.
    """

    def __init__(self, simulation: Simulation, make_stepper: MakeStepper, collector: Collector, record: Record) -> None:
        self._simulation, self._make_stepper = simulation, make_stepper
        self._collector, self._record = collector, record
        self._replicas, self._blocks = simulation.particles.replicas, simulation.blocks
        self._step_at = simulation.step_at
        self._failed: IntArray = record.open_array("failed", (self._replicas,), np.int64)
        """Step at which each replica blew up, or -1."""
        self.marks = {name: record.open_array(name, (self._replicas,), np.int64) for name in simulation.marks}
        """Whole numbers that are kept of each replica, by name."""
        self._done = np.zeros(len(self._blocks), dtype=bool)
        self._digests = np.zeros((len(self._blocks), DIGEST), np.uint8)
        """Digest of the results of each block that is done."""
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._saved_at = time.monotonic()
        self._rounds = 0
        """Number of blocks that a thread advances, one after another."""
        self._too_long: InputError | None = None

    def run(self, workers: int) -> str:
        """Run all replicas that are not done, and return the status.

        Raises
        ------
        InputError
            If that would take longer than the problem allows.
        """
        saved = self._record.load_state("ensemble")
        if saved is not None:
            self._done[:], self._digests[:] = saved["done"], saved["digests"]
            self._collector.restore(saved)
            for b in np.flatnonzero(self._done):
                self._record.check(self._results(int(b)), self._digests[b])
        steps, left = int(self._step_at[-1]), np.flatnonzero(~self._done)
        self._rounds = -(-len(left) // workers)
        with progress_bar(steps * self._replicas, f"SGD ({self._simulation.label})", "step") as bar:

            def tick(count: int) -> None:
                with self._lock:
                    bar.update(count)

            tick(steps * sum(len(self._blocks[b]) for b in np.flatnonzero(self._done)))
            with ThreadPoolExecutor(max(1, min(workers, len(left)))) as pool:
                futures: list[Future[None]] = []
                try:
                    for b in left:
                        with uninterrupted():
                            futures.append(pool.submit(self._run_block, int(b), tick))
                    for future in futures:
                        future.result()
                except BaseException as error:
                    self._stop.set()
                    if not isinstance(error, KeyboardInterrupt):
                        raise
        if self._too_long is not None:
            raise self._too_long
        if self._stop.is_set():
            self._save()
            return "interrupted"
        return self._status()

    def _status(self) -> str:
        failed = np.flatnonzero(self._failed >= 0)
        if not len(failed):
            return "complete"
        replica = failed[self._failed[failed].argmin()]
        return BlowUpError(
            self._simulation.time_of(self._failed[replica]),
            f"the weights of replica {replica} are no longer finite",
            self._simulation.remedy,
        ).status

    def _run_block(self, b: int, tick: Callable[[int], None]) -> None:
        replicas, last = self._blocks[b], len(self._step_at) - 1
        if self._stop.is_set():
            return
        stepper = self._make_stepper(replicas)
        rows = self._collector.rows(replicas)
        output, step = self._resume_block(b, stepper, rows)
        tick(step * len(replicas))
        pace, trial = _Pace(), _Trial()
        saved_at = time.monotonic()
        while output < last:
            end = int(self._step_at[output + 1])
            while step < end and stepper.reached.max() >= step:  # else none is finite any more
                count = min(pace.steps, end - step)
                stepper.advance(step, count)
                step += count
                pace.look(count)
                if (seconds_per_step := trial.pace(step)) is not None:
                    self._check_length(seconds_per_step)
                tick(count * len(replicas))
                if self._stop.is_set() or time.monotonic() - saved_at > self._record.save_every:
                    self._save_block(b, output, step, stepper, rows)
                    saved_at = time.monotonic()
                if self._stop.is_set():
                    return
            output += 1
            if not self._keep(replicas, output, stepper, rows):
                tick((int(self._step_at[-1]) - step) * len(replicas))
                break
        self._finish_block(b, stepper, rows)

    def _check_length(self, seconds_per_step: float) -> None:
        """Stop a run that would take longer than the problem allows, at the pace of one of its blocks."""
        settings, steps = self._simulation.particles, int(self._step_at[-1])
        days = seconds_per_step * steps * self._rounds / DAY
        if days > settings.longest_days:
            number, unit = (days, "days") if days < 1000 else (days / 365, "years")
            length = f"{float(f'{number:.2g}'):,g} {unit}"
            self._too_long = InputError(
                f"particles: {self._replicas} replicas of {steps:.4g} steps ('{self._simulation.label}') would take "
                f"about {length} at the pace of the first seconds, and particles.longest_days = "
                f"{settings.longest_days:g}; lower time.stop, {self._simulation.size} or particles.replicas, or raise "
                "particles.longest_days"
            )
            self._stop.set()

    def _keep(self, replicas: range, output: int, stepper: Stepper, rows: Rows) -> bool:
        """Keep the results of replicas that are finite at an output time; false if there are none."""
        finite = stepper.reached >= self._step_at[output]
        if not finite.any():
            return False
        found = stepper.rows
        for name, row in rows.items():
            row[finite, output] = found[name][finite]
        self._collector.keep_snapshot(replicas, output, finite, stepper)
        return True

    def _resume_block(self, b: int, stepper: Stepper, rows: Rows) -> tuple[int, int]:
        """Restore a block: the last output time that is kept, and the next step."""
        state = self._record.load_state(f"block-{b}")
        if state is None:
            self._keep(self._blocks[b], 0, stepper, rows)
            return 0, 0
        output = int(state["output"])
        for name, row in rows.items():
            row[:] = state[f"rows_{name}"]
        self._record.check(self._collector.written(self._blocks[b], output), state["digest"])
        stepper.reached = state["reached"]
        stepper.restore(
            {key.removeprefix(STEPPER_PREFIX): value for key, value in state.items() if key.startswith(STEPPER_PREFIX)}
        )
        return output, int(state["step"])

    def _save_block(self, b: int, output: int, step: int, stepper: Stepper, rows: Rows) -> None:
        position = {"output": np.array(output), "step": np.array(step), "reached": stepper.reached}
        results = {f"rows_{name}": row for name, row in rows.items()}
        digest = self._record.digest(self._collector.written(self._blocks[b], output))
        own = {f"{STEPPER_PREFIX}{name}": value for name, value in stepper.state.items()}
        self._record.save_state(f"block-{b}", position | results | {"digest": digest} | own)

    def _finish_block(self, b: int, stepper: Stepper, rows: Rows) -> None:
        replicas = self._blocks[b]
        place = slice(replicas.start, replicas.stop)
        self._failed[place] = np.where(stepper.reached < self._step_at[-1], stepper.reached, -1)
        for name, mark in stepper.marks(rows).items():
            self.marks[name][place] = mark
        self._digests[b] = self._record.digest(self._results(b))
        with self._lock:
            self._collector.add(b, rows)
            self._done[b] = True
            due = time.monotonic() - self._saved_at > self._record.save_every
        if due:
            self._save()

    def _results(self, b: int) -> list[Array]:
        """Results of a block that is done, in the record."""
        replicas = self._blocks[b]
        marks = [array[replicas.start : replicas.stop] for array in (self._failed, *self.marks.values())]
        return [*self._collector.written(replicas, len(self._step_at) - 1), *marks]

    def _save(self) -> None:
        """Save which blocks are done; their own states are then no longer needed."""
        with self._lock:
            self._record.save_state(
                "ensemble", {"done": self._done, "digests": self._digests} | dict(self._collector.state)
            )
            self._saved_at = time.monotonic()
        for b in np.flatnonzero(self._done):
            self._record.forget_state(f"block-{b}")


class _Trial:
    """Pace of the first seconds of a block, after a first call that may compile."""

    def __init__(self) -> None:
        self._from: tuple[int, float] | None = None
        self._over = False

    def pace(self, step: int) -> float | None:
        """Seconds per step, once, when they are known at a step."""
        now = time.monotonic()
        if self._from is None:
            self._from = step, now
        first, since = self._from
        if self._over or now - since < TRIAL_SECONDS:
            return None
        self._over = True
        return (now - since) / (step - first)


class _Pace:
    """Number of steps in one call of compiled code, adapted to the time that calls take."""

    def __init__(self) -> None:
        self.steps = FIRST_CALL
        self._since = time.monotonic()

    def look(self, steps: int) -> None:
        """Adapt the number of steps to the time since the last check, during which `steps` were taken."""
        now = time.monotonic()
        took, self._since = now - self._since, now
        if took > 2 * CALL_SECONDS:
            self.steps = max(1, self.steps // 2)
        elif took < 0.5 * CALL_SECONDS and steps == self.steps:
            self.steps *= 2


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
