"""What the machine can do at best, on one core and on several: the rates that bound everything else.

Divisions wait for nothing and stay in the first-level cache. Multiply-adds are those of a polynomial, almost without
loads. The triad a = b + c/2 moves 24 bytes per element; that a line which is written is read first is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from threading import Barrier
from typing import Any

import numba
import numpy as np

Work = Callable[[], Any]

ROUNDS = 9
TURN = 0.02
"""Seconds that each work gets in each round."""

COMPILED: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


def take_turns(
    works: Sequence[Work], clock: Callable[[], float] = time.perf_counter, rounds: int = ROUNDS, turn: float = TURN
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


def rate(make: Callable[[], Work], amount: float, cores: int) -> float:
    """Amounts per second of all cores together, each with a work of its own.

    Timed by the processor time of each thread, so that other programs on the machine disturb less.
    """
    barrier = Barrier(cores)

    def one_core(_: int) -> float:
        work = make()
        barrier.wait()
        return amount / median(take_turns([work], clock=time.thread_time)[0])

    with ThreadPoolExecutor(cores) as pool:
        return sum(pool.map(one_core, range(cores)))


@numba.njit(**COMPILED)
def divide(x: np.ndarray, result: np.ndarray, times: int) -> None:
    for _ in range(times):
        for i in range(x.size):
            result[i] = 1.0 / (x[i] + result[i])


@numba.njit(**COMPILED)
def multiply_add(x: np.ndarray, result: np.ndarray, times: int) -> None:
    for _ in range(times):
        for i in range(x.size):
            a = b = c = d = result[i]
            for _ in range(16):  # four chains at once hide the latency
                a, b, c, d = a * x[i] + 0.1, b * x[i] + 0.2, c * x[i] + 0.3, d * x[i] + 0.4
            result[i] = 0.25 * (a + b) * (c + d)


@numba.njit(**COMPILED)
def triad(a: np.ndarray, b: np.ndarray, c: np.ndarray, times: int) -> None:
    for _ in range(times):
        for i in range(a.size):
            a[i] = b[i] + 0.5 * c[i]


def _calls(function: Callable[..., None], arrays: int, size: int, total: int) -> Callable[[], Work]:
    def make() -> Work:
        data = [np.linspace(0.1, 0.4, size) for _ in range(arrays)]
        return lambda: function(*data, max(1, total // size))

    return make


LIMITS: dict[str, tuple[Callable[[], Work], float, str]] = {
    "divisions": (_calls(divide, 2, 1000, 2_000_000), 2e6, "M/s"),
    "multiply-adds": (_calls(multiply_add, 2, 1000, 100_000), 2 * 64 * 1e5, "Mflop/s"),
    "triad in the second-level cache, 0.5 MB": (_calls(triad, 3, 20_000, 2_000_000), 24 * 2e6, "MB/s"),
    "triad beyond the caches, 300 MB": (_calls(triad, 3, 12_500_000, 12_500_000), 24 * 12.5e6, "MB/s"),
}
"""What makes the work, how much one call of it does, and the unit of its rate in millions."""
