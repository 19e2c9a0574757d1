"""A fault that is tried, and what is counted: how often on which writer, what came of it, and what went wrong."""

from __future__ import annotations

import resource
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass
class Tally:
    """All trials of one fault on one writer.

    Parameters
    ----------
    fault, writer : str
    """

    fault: str
    writer: str
    tried: int = 0
    inside: int = 0
    """Trials that hit while a file was being written."""
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    note: str = ""

    def add(self, outcome: str, *wrong: str, inside: bool = False) -> None:
        """Count one trial; what went wrong is empty where nothing did."""
        self.tried += 1
        self.inside += inside
        self.outcomes[outcome] += 1
        self.wrong += [what for what in wrong if what]


Trials = Callable[[Tally, Any, int, np.random.Generator], None]


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong on purpose while a subject writes a file.

    Parameters
    ----------
    title : str
    trials : callable
        Tries it on a subject so many times, and counts.
    """

    title: str
    trials: Trials

    def __call__(self, subject: object, count: int, random: np.random.Generator) -> Tally:
        """Try it on a subject."""
        tally = Tally(self.title, str(subject))
        self.trials(tally, subject, count, random)
        return tally


def fault(title: str) -> Callable[[Trials], Fault]:
    """Make a fault of a function that tries it."""
    return lambda trials: Fault(title, trials)


@contextmanager
def folder() -> Iterator[Path]:
    """A folder of its own for a trial, which anybody may enter."""
    path = Path(tempfile.mkdtemp(prefix="meanfield-faults-"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def limited(what: int, limit: int) -> Iterator[None]:
    """A soft limit of this process for a while, such as `resource.RLIMIT_FSIZE`."""
    resource.setrlimit(what, (limit, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.setrlimit(what, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def names(path: Path) -> list[str]:
    """Names of the files in a folder."""
    return sorted(entry.name for entry in path.iterdir())


def left_behind(path: Path, *expected: str) -> str:
    """Files in a folder that should not be there; empty if there are none."""
    strangers = sorted(set(names(path)) - set(expected))
    return f"left behind: {strangers}" if strangers else ""


def unless(right: bool, what: str) -> str:
    """Message of a fault, empty where a condition holds."""
    return "" if right else what


def one_line(err: str, *needed: str) -> str:
    """Fault of a message that should be short and say what is needed; empty if there is none."""
    lines = err.splitlines()
    if "Traceback" in err or not 1 <= len(lines) <= 3:
        return f"message: {err[-400:]!r}"
    return "".join(f"no {word!r} in {err!r}" for word in needed if word not in err)
