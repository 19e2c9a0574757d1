"""Number of cores that this process may use, and of threads that compiled loops share their work among."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""File of Linux that holds the CPU quota of a container: microseconds of CPU time (or "max"), and per how many."""


def available_cores() -> int:
    """Number of cores that this process may use: a cluster, a container or `taskset` may grant fewer than there are."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _quota(cores)))


def _quota(cores: int) -> int:
    """Number of cores that a container's CPU quota is worth, rounded up; all of them without a quota."""
    try:
        time, period = map(int, QUOTA.read_text().split())
    except (OSError, ValueError):  # no control groups of version 2, or "max"
        return cores
    return math.ceil(time / period)


_granted = [math.inf]
"""Numbers of threads that callers grant, the last one to those in its context."""


def threads_of_loops() -> int:
    """Number of threads for compiled loops: NUMBA_NUM_THREADS may say less than there are cores."""
    import numba

    return int(min(available_cores(), numba.config.NUMBA_NUM_THREADS, _granted[-1]))  # type: ignore[attr-defined]


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Context in which compiled loops have no more threads, as beside other workers that share the cores."""
    _granted.append(threads)
    try:
        yield
    finally:
        _granted.pop()
