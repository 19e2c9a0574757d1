"""Measurement of times by benchmarks: in turns, after a call that does not count, as medians."""

from __future__ import annotations

import math
import os
import signal
import struct
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from threading import Barrier
from typing import Any

from validation.benchmarks.table import Row

Work = Callable[[], Any]

CORES = os.cpu_count() or 1
ROUNDS = 9
TURN = 0.02
"""Time in seconds that each work gets in each round."""

ONE_THREAD = "one core; processor time of its thread, so that other programs disturb less; medians"
WALL = "wall time: means something on an idle machine only; medians"


def take_turns(
    works: Sequence[Work], clock: Callable[[], float] = time.thread_time, rounds: int = ROUNDS, turn: float = TURN
) -> list[list[float]]:
    """Times of one call of each work, one per round, after two calls that do not count."""
    counts = []
    for work in works:
        work()
        started = clock()
        work()
        counts.append(max(1, round(turn / max(clock() - started, 1e-9))))
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, count, column in zip(works, counts, times, strict=True):
            started = clock()
            for _ in range(count):
                work()
            column.append((clock() - started) / count)
    return times


def seconds(
    *works: Work, clock: Callable[[], float] = time.thread_time, rounds: int = ROUNDS, turn: float = TURN
) -> list[float]:
    """Median time of one call of each work; they take turns."""
    return [median(column) for column in take_turns(works, clock, rounds, turn)]


def limited(measure: Callable[[], float], most: float) -> float:
    """What a process of its own measures; NaN if it takes more than `most` seconds of processor time.

    Raises
    ------
    RuntimeError
        If the process failed; it has said why.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process
        signal.setitimer(signal.ITIMER_PROF, most)
        try:
            os.write(writing, struct.pack("d", measure()))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        found = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError("a row of a benchmark failed; the traceback above says why")
    return struct.unpack("d", found)[0] if found else math.nan


def rate(make: Callable[[], Work], amount: float, cores: int) -> float:
    """Amounts per second of all cores together, each with a work of its own, by the processor time of each thread."""
    barrier = Barrier(cores)

    def one_core(_: int) -> float:
        work = make()
        barrier.wait()
        return amount / seconds(work)[0]

    with ThreadPoolExecutor(cores) as pool:
        return sum(pool.map(one_core, range(cores)))


def timed_row(what: str, work: Callable[[], str], compiled: bool = False) -> Row:
    """One call that takes a second or so, and what it found; `compiled` says that a call before has compiled all."""
    if not compiled:
        work()
    wall, processor = time.perf_counter(), time.process_time()
    found = work()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    return Row(what, processor, "s", note=f"{found} ({wall:.3g} s on the clock)")
