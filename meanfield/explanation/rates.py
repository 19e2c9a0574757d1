"""Processor time of one evaluation, once its compiled code is loaded."""

from __future__ import annotations

import time
from collections.abc import Callable

ROUNDS, ROUND = 2, 0.01
"""Number of measurements, of which the least counts, and the processor seconds that each takes about."""


def seconds_of(work: Callable[[], object]) -> float:
    """Processor seconds of one call; the first is not timed, because it may compile or load."""
    work()
    return min(_mean(work) for _ in range(ROUNDS))


def _mean(work: Callable[[], object]) -> float:
    started, count = time.process_time(), 0
    while (spent := time.process_time() - started) < ROUND:
        work()
        count += 1
    return spent / count
