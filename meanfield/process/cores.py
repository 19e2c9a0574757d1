"""Processor cores that this process may use."""

from __future__ import annotations

import os


def available_cores() -> int:
    """Cores that this process may use: a cluster or `taskset` may grant fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
