"""Too little memory, from nothing to enough: exit code 1, a clear line, the earlier result intact."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil

from meanfield.cli import DONE, FAILED
from validation.faults.children import run_child
from validation.faults.scripts import Stage, on_scripts
from validation.faults.trials import Tally, limited, one_line, unless

MOST_BYTES = 64 << 20
"""Largest number of bytes, beyond those of its beginning, that a script is allowed."""


@on_scripts("out of memory")
def too_little(tally: Tally, theirs: Stage, place: Path, random: np.random.Generator) -> None:
    """Limits of the address space, at which allocations fail one by one; a kernel that kills does so by kill -9."""
    ended = run_child(_limited(int(random.integers(0, MOST_BYTES)), theirs.script.work(place)))
    kinds, damage = theirs.found(place)
    tally.add(
        f"code {ended.code}, {kinds}",
        damage,
        one_line(ended.err) if ended.code != DONE else "",
        unless(ended.code in (DONE, FAILED), f"exit code {ended.code}"),
        theirs.run_again(place)[1],
        theirs.left(place),
    )


def _limited(more: int, work: Callable[[], int]) -> Callable[[], int]:
    def with_little() -> int:
        with limited(resource.RLIMIT_AS, psutil.Process().memory_info().vms + more):
            return work()

    return with_little
