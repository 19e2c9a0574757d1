"""Cores that this process may use, and threads of compiled loops and of linear algebra.

By default a library of linear algebra has a thread per core, and those of a small product wait for one another in a
loop. Beside busy workers they take ten times the processor time of the work.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


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


def one_thread() -> AbstractContextManager[object]:
    """Context in which linear algebra takes one thread, in the whole process."""
    limits: AbstractContextManager[object] = _libraries(len(sys.modules)).limit(limits=1, user_api="blas")
    return limits


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """Libraries of this process: to find them takes milliseconds, and new ones come with new modules."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
