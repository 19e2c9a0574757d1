"""Processor time of one evaluation, once its compiled code is loaded."""

from __future__ import annotations

import time
from collections.abc import Callable

ROUND, LONG = 0.01, 0.03
"""Processor seconds that a measurement takes about, and those of a call that is measured once."""


def seconds_of(work: Callable[[], object]) -> float:
    """Processor seconds of one call; the first is not timed, because it may compile or load."""
    work()
    first = _mean(work)
    return first if first > LONG else min(first, _mean(work))  # what disturbs a short one is seldom there twice


def _mean(work: Callable[[], object]) -> float:
    started, count = time.process_time(), 0
    while (spent := time.process_time() - started) < ROUND:
        work()
        count += 1
    return spent / count
