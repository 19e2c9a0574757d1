"""Peak rates of the machine, on one core and on several, which bound everything else.

Divisions wait for nothing and stay in the first-level cache. Multiply-adds are those of a polynomial, almost without
loads. The triad a = b + c/2 moves 24 bytes per element; that a line which is written is read first is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np

from validation.benchmarks.table import Row, Table
from validation.benchmarks.timing import CORES, Work, rate

COMPILED: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


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
"""Limits by name: the function that makes the work, the size of one call, and the unit of its rate in millions."""


def limit_rates(name: str) -> tuple[float, float]:
    """On one core, and on all at once, each with a work of its own."""
    make, amount, _ = LIMITS[name]
    return rate(make, amount, 1) / 1e6, rate(make, amount, CORES) / 1e6


def tables() -> Iterator[Table]:
    rows = []
    for name, (_, _, unit) in LIMITS.items():
        one, all_cores = limit_rates(name)
        rows += [
            Row(name, one, unit),
            Row(f"{name}, {CORES} cores at once", all_cores, unit, "one core", one),
        ]
    yield Table("Limits of the machine", "processor time of each thread; medians", tuple(rows))
