"""What is counted: how often a fault was tried on a writer, what came of it, and what went wrong."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


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


@contextmanager
def folder() -> Iterator[Path]:
    """A folder of its own for a trial, which anybody may enter."""
    path = Path(tempfile.mkdtemp(prefix="meanfield-faults-"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def names(path: Path) -> list[str]:
    """What is in a folder."""
    return sorted(entry.name for entry in path.iterdir())


def one_line(err: str, *needed: str) -> str:
    """What is wrong with a message that should be short and say what is needed; empty if nothing is."""
    lines = err.splitlines()
    if "Traceback" in err or not 1 <= len(lines) <= 3:
        return f"message: {err[-400:]!r}"
    return "".join(f"no {word!r} in {err!r}" for word in needed if word not in err)
