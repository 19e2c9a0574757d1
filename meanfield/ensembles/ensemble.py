"""Run blocks of replicas over all cores, show how far they are, and save states from which to go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from meanfield.ensembles.arrays import DIGEST, Array, Record
from meanfield.ensembles.collectors import Collector, Rows
from meanfield.errors import BlowUpError
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.closures.expectation import no_expectation
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.batch import training_of
from meanfield.families.contrastive.sgd.draws import IntArray
from meanfield.families.contrastive.sgd.steppers import STEPPERS, Stepper, WithWeights
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

MOST_TOGETHER = 256
"""Replicas of a chain that are advanced by one call."""

LEAST_BLOCKS = 16
"""Blocks are smaller if there would be fewer, so that every worker has something to do."""

FIRST_CALL = 64
"""Steps of the first call."""

CALL_SECONDS = 0.2
"""About how long compiled code runs between two looks at the clock and at the keyboard."""


def blocks_of(method: str, replicas: int) -> list[range]:
    """Replicas that are advanced together; their numbers do not depend on it."""
    size = min(MOST_TOGETHER, -(-replicas // LEAST_BLOCKS)) if method == "chain" else 1
    return [range(first, min(first + size, replicas)) for first in range(0, replicas, size)]


def winners(q: FloatArray, escape: IntArray) -> IntArray:
    """The feature that won in each replica: the one with the largest |q_k| at the end, if |q| has escaped by then.

    Right after the escape the order may still change: the replica may have to pass a saddle between recovery states.

    Parameters
    ----------
    q : ndarray, shape (replicas, d1)
        Overlaps at the end; NaN where they are not finite.
    escape : ndarray of int, shape (replicas,)
        The step of the escape, or -1.

    Returns
    -------
    ndarray of int, shape (replicas,)
        Index of the feature; -1 where there is none.
    """
    decided = (escape >= 0) & np.isfinite(q).all(axis=1)
    return np.asarray(np.where(decided, np.abs(q).argmax(axis=1), -1))


class Ensemble:
    """All replicas of a problem.

    Parameters
    ----------
    problem : Problem
    method : str
        A key of `STEPPERS`.
    collector : Collector
        Takes the results.
    record : Record
        Keeps states.
    """

    def __init__(self, problem: Problem, method: str, collector: Collector, record: Record) -> None:
        self._problem, self._method = problem, method
        self._training = training_of(problem)
        # Only population centring needs the limit's averages: other SGD goes on where they are hard or do not exist.
        population = problem.model.centering == "population"
        self._expectation = Closure(problem).expectation if population else no_expectation()
        self._collector, self._record = collector, record
        N, self._replicas = problem.particles.dimension, problem.particles.replicas
        self._step_at = np.rint(problem.time.outputs_at * N).astype(np.int64)
        self._blocks = blocks_of(method, self._replicas)
        self._failed = record.array("failed", (self._replicas,), np.int64)
        """The step at which each replica blew up, or -1."""
        self.escape = record.array("escape", (self._replicas,), np.int64)
        """The step at which each replica escaped, or -1."""
        self.winner = record.array("winner", (self._replicas,), np.int64)
        """The feature that won in each replica (see `winners`), or -1."""
        self._done = np.zeros(len(self._blocks), dtype=bool)
        self._digests = np.zeros((len(self._blocks), DIGEST), np.uint8)
        """Of the results of each block that is done."""
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._saved_at = time.monotonic()

    def run(self, workers: int) -> str:
        """Run all replicas that are not done, and return the status."""
        saved = self._record.load_state("ensemble")
        if saved is not None:
            self._done[:], self._digests[:] = saved["done"], saved["digests"]
            self._collector.restore(saved)
            for b in np.flatnonzero(self._done):
                self._record.check(self._results(int(b)), self._digests[b])
        steps, left = int(self._step_at[-1]), np.flatnonzero(~self._done)
        with progress_bar(steps * self._replicas, f"SGD ({self._method})", "step") as bar:

            def tick(count: int) -> None:
                with self._lock:
                    bar.update(count)

            tick(steps * sum(len(self._blocks[b]) for b in np.flatnonzero(self._done)))
            with ThreadPoolExecutor(max(1, min(workers, len(left)))) as pool:
                futures = [pool.submit(self._run_block, int(b), tick) for b in left]
                try:
                    for future in futures:
                        future.result()
                except BaseException as error:
                    self._stop.set()
                    if not isinstance(error, KeyboardInterrupt):
                        raise
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
            self._failed[replica] / self._problem.particles.dimension,
            f"the weights of replica {replica} are no longer finite",
            "lower model.learning_rate, or prior.strength if it is large",
        ).status

    def _run_block(self, b: int, tick: Callable[[int], None]) -> None:
        replicas, last = self._blocks[b], len(self._step_at) - 1
        if self._stop.is_set():
            return
        stepper: Stepper = STEPPERS[self._method](self._problem, self._training, self._expectation, replicas)
        rows = self._collector.rows(replicas)
        output, step = self._resume_block(b, stepper, rows)
        tick(step * len(replicas))
        pace, saved_at = _Pace(), time.monotonic()
        while output < last:
            end = int(self._step_at[output + 1])
            while step < end and stepper.reached.max() >= step:  # else none is finite any more
                count = min(pace.steps, end - step)
                stepper.advance(step, count)
                step += count
                pace.look(count)
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

    def _keep(self, replicas: range, output: int, stepper: Stepper, rows: Rows) -> bool:
        """Keep the results of replicas that are finite at an output time; false if there are none."""
        finite = stepper.reached >= self._step_at[output]
        if not finite.any():
            return False
        rows.q[finite, output] = stepper.overlap[finite]
        rows.r[finite, output] = stepper.prior_work[finite]
        if isinstance(stepper, WithWeights):
            self._collector.keep_weights(replicas[0], output, stepper)
        return True

    def _resume_block(self, b: int, stepper: Stepper, rows: Rows) -> tuple[int, int]:
        """The last output time that is kept, and the step to take next."""
        state = self._record.load_state(f"block-{b}")
        if state is None:
            self._keep(self._blocks[b], 0, stepper, rows)
            return 0, 0
        output = int(state["output"])
        rows.q[:], rows.r[:] = state["rows_q"], state["rows_r"]
        self._record.check(self._collector.written(self._blocks[b], output), state["digest"])
        stepper.reached, stepper.escape = state["reached"], state["escape"]
        stepper.restore(state)
        return output, int(state["step"])

    def _save_block(self, b: int, output: int, step: int, stepper: Stepper, rows: Rows) -> None:
        position = {"output": np.array(output), "step": np.array(step), "rows_q": rows.q, "rows_r": rows.r}
        marks = {"reached": stepper.reached, "escape": stepper.escape}
        digest = self._record.digest(self._collector.written(self._blocks[b], output))
        self._record.save_state(f"block-{b}", position | marks | {"digest": digest} | dict(stepper.state))

    def _finish_block(self, b: int, stepper: Stepper, rows: Rows) -> None:
        replicas = self._blocks[b]
        place = slice(replicas.start, replicas.stop)
        self._failed[place] = np.where(stepper.reached < self._step_at[-1], stepper.reached, -1)
        self.escape[place] = stepper.escape
        self.winner[place] = winners(rows.q[:, -1], stepper.escape)
        self._digests[b] = self._record.digest(self._results(b))
        with self._lock:
            self._collector.add(b, rows)
            self._done[b] = True
            due = time.monotonic() - self._saved_at > self._record.save_every
        if due:
            self._save()

    def _results(self, b: int) -> list[Array]:
        """What is in the record of a block that is done."""
        replicas = self._blocks[b]
        marks = [array[replicas.start : replicas.stop] for array in (self._failed, self.escape, self.winner)]
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


class _Pace:
    """How many steps to take in one call of compiled code."""

    def __init__(self) -> None:
        self.steps = FIRST_CALL
        self._since = time.monotonic()

    def look(self, steps: int) -> None:
        """Adapt to how long it was since the last look, during which `steps` were taken."""
        now = time.monotonic()
        took, self._since = now - self._since, now
        if took > 2 * CALL_SECONDS:
            self.steps = max(1, self.steps // 2)
        elif took < 0.5 * CALL_SECONDS and steps == self.steps:
            self.steps *= 2
