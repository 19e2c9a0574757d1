"""Measurement of times by benchmarks: in turns, after a call that does not count, as medians."""

from __future__ import annotations

import math
import os
import signal
import time
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


def limited(work: Work, most: float) -> float:
    """Processor time of one call; NaN if it takes more than `most` seconds, for which no one waits."""

    def stop(*_: object) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGPROF, stop)
    started = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, most)
    try:
        work()
        return time.process_time() - started
    except (_TooLongError, SystemError) as error:  # the latter where the clock rings within compiled code
        if isinstance(error, _TooLongError) or isinstance(error.__cause__, _TooLongError):
            return math.nan
        raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


class _TooLongError(Exception):
    """Raised by the clock."""


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
