"""Too little memory, from nothing to enough: exit code 1, a clear line, the earlier result intact."""

from __future__ import annotations

import resource
from collections.abc import Callable

import numpy as np
import psutil

from meanfield.cli import DONE, FAILED
from validation.faults.children import run_child
from validation.faults.scripts import Script, stage
from validation.faults.trials import Tally, folder, one_line

MOST = 64 << 20
"""Bytes beyond those of the beginning that a script is allowed at most."""


def too_little(script: Script, count: int, random: np.random.Generator) -> Tally:
    """Limits of the address space, at which allocations fail one by one; a kernel that kills does so by kill -9."""
    tally, theirs = Tally("out of memory", f"`{script.name}.py`"), stage(script)
    for more in random.integers(0, MOST, count).tolist():
        with folder() as place:
            theirs.set_up(place)
            ended = run_child(_limited(more, script.work(place)))
            kinds, damage = theirs.found(place)
            resumed = run_child(script.work(place))
            again, _ = theirs.found(place)
            tally.add(
                f"code {ended.code}, {kinds}",
                damage,
                one_line(ended.err) if ended.code != DONE else "",
                "" if ended.code in (DONE, FAILED) else f"exit code {ended.code}",
                "" if (resumed.code, again) == (DONE, "new result") else f"again: {resumed.code}, {again}",
                theirs.left(place),
            )
    return tally


def _limited(more: int, work: Callable[[], int]) -> Callable[[], int]:
    def limited() -> int:
        limit = psutil.Process().memory_info().vms + more
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        try:
            return work()
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    return limited
