"""Read-only places: refused before anything is computed, or reported clearly if they become so meanwhile."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from meanfield.cli import BAD_INPUT, FAILED
from meanfield.process import atomic_files
from meanfield.results import files
from validation import ROOT
from validation.faults.children import Ended, run_child
from validation.faults.full_disk import small_disk
from validation.faults.scripts import Script, Stage, on_scripts
from validation.faults.trials import Fault, Tally, one_line, unless

NOBODY = 65534
"""Number of a user without rights."""

WRITING: tuple[Any, ...] = (atomic_files, files)
"""Modules whose `write_atomically` scripts call: for pages, and for results."""


@contextmanager
def _read_only(disk: Path) -> Iterator[None]:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)


def _without_rights(work: Callable[[], int]) -> Callable[[], int]:
    """The work as a user who may read everything there, and write nothing."""

    def dropped() -> int:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        return work()

    return dropped if os.geteuid() == 0 else work


def _seen_by_everybody(path: Path) -> bool:
    """Whether a user without rights may go to a path."""
    return all(place.stat().st_mode & 0o001 for place in (path, *path.parents))


@on_scripts("read-only disk", small_disk)
def read_only_disk(tally: Tally, theirs: Stage, place: Path, random: np.random.Generator) -> None:
    """A disk that is mounted for reading."""
    with _read_only(place):
        _refused(tally, theirs.run(place), *theirs.found(place))


@on_scripts("read-only folder")
def read_only_folder(tally: Tally, theirs: Stage, place: Path, random: np.random.Generator) -> None:
    """A folder in which this user may not write."""
    if os.geteuid() == 0 and not _seen_by_everybody(ROOT / "validation"):
        tally.note = "needs another user than root, or a clone that other users may read"
        return
    place.chmod(0o555)
    _refused(tally, run_child(_without_rights(theirs.script.work(place))), *theirs.found(place))
    place.chmod(0o755)


def _refused(tally: Tally, ended: Ended, kinds: str, damage: str) -> None:
    tally.add(
        f"code {ended.code}, {kinds}",
        damage,
        one_line(ended.err, "is write-protected; choose another"),
        unless(ended.code == BAD_INPUT, f"exit code {ended.code}"),
        unless(kinds == "earlier result", kinds),
    )


def _meanwhile(title: str, act: Callable[[Script, Path], object], says: str) -> Fault:
    """Something happens between the last check of the path and the writing."""

    @on_scripts(title)
    def trial(tally: Tally, theirs: Stage, place: Path, random: np.random.Generator) -> None:
        ended = run_child(_before_writing(partial(act, theirs.script, place), theirs.script.work(place)))
        tally.add(
            f"code {ended.code}",
            one_line(ended.err, says),
            unless(ended.code == FAILED, f"exit code {ended.code}"),
        )

    return trial


def _before_writing(act: Callable[[], object], work: Callable[[], int]) -> Callable[[], int]:
    def acted() -> int:
        write = atomic_files.write_atomically

        def late(*arguments: Any) -> None:
            for module in WRITING:
                module.write_atomically = write
            act()
            write(*arguments)

        for module in WRITING:
            module.write_atomically = late
        return work()

    return acted


def _replace(script: Script, place: Path) -> None:
    path = place / script.outputs[0]
    path.unlink()
    path.mkdir()


folder_removed = _meanwhile(
    "folder removed meanwhile", lambda script, place: shutil.rmtree(place), "No such file or directory"
)
replaced_by_folder = _meanwhile("a folder in its place meanwhile", _replace, "Is a directory")
