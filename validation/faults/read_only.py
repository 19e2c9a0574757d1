"""Places where nothing can be written: refused before anything is computed, or said clearly if it happens meanwhile."""

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
from meanfield.results import files
from validation.faults.children import run_child
from validation.faults.full_disk import small_disk
from validation.faults.scripts import Script, stage
from validation.faults.trials import Tally, folder, one_line

NOBODY = 65534
"""A user without rights."""


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


def read_only_disk(script: Script, count: int, random: np.random.Generator) -> Tally:
    """A disk that is mounted for reading."""
    tally, theirs = Tally("read-only disk", f"`{script.name}.py`"), stage(script)
    with small_disk() as disk:
        if disk is None:
            tally.note = "needs root, to mount a disk"
            return tally
        theirs.set_up(disk)
        for _ in range(count):
            with _read_only(disk):
                ended = run_child(script.work(disk))
            _refused(tally, ended.code, ended.err, *theirs.found(disk), "is not writable; choose another")
    return tally


def read_only_folder(script: Script, count: int, random: np.random.Generator) -> Tally:
    """A folder in which this user may not write."""
    tally, theirs = Tally("read-only folder", f"`{script.name}.py`"), stage(script)
    if os.geteuid() == 0 and not _seen_by_everybody(Path(__file__).resolve().parent):
        tally.note = "needs another user than root, or a clone that other users may read"
        return tally
    with folder() as place:
        theirs.set_up(place)
        place.chmod(0o555)
        for _ in range(count):
            ended = run_child(_without_rights(script.work(place)))
            _refused(tally, ended.code, ended.err, *theirs.found(place), "is not writable; choose another")
        place.chmod(0o755)
    return tally


def _refused(tally: Tally, code: int, err: str, kinds: str, damage: str, *needed: str) -> None:
    tally.add(
        f"code {code}, {kinds}",
        damage,
        one_line(err, *needed),
        "" if code == BAD_INPUT else f"exit code {code}",
        "" if kinds == "earlier result" else kinds,
    )


def _before_writing(act: Callable[[], object], work: Callable[[], int]) -> Callable[[], int]:
    """Something happens between the last check of the path and the writing."""

    def acted() -> int:
        write = files.write_atomically

        def late(*arguments: Any) -> None:
            files.write_atomically = write
            act()
            write(*arguments)

        files.write_atomically = late
        return work()

    return acted


def folder_removed(script: Script, count: int, random: np.random.Generator) -> Tally:
    """The folder of the results is deleted while a script runs."""
    tally, theirs = Tally("folder removed meanwhile", f"`{script.name}.py`"), stage(script)
    for _ in range(count):
        with folder() as place:
            theirs.set_up(place)
            ended = run_child(_before_writing(partial(shutil.rmtree, place), script.work(place)))
            wrong = "" if ended.code == FAILED else f"exit code {ended.code}"
            tally.add(f"code {ended.code}", one_line(ended.err, "No such file or directory"), wrong)
    return tally


def replaced_by_folder(script: Script, count: int, random: np.random.Generator) -> Tally:
    """Somebody puts a folder where the result should go."""
    tally, theirs = Tally("a folder in its place meanwhile", f"`{script.name}.py`"), stage(script)
    for _ in range(count):
        with folder() as place:
            theirs.set_up(place)
            ended = run_child(_before_writing(partial(_replace, place / script.outputs[0]), script.work(place)))
            wrong = "" if ended.code == FAILED else f"exit code {ended.code}"
            tally.add(f"code {ended.code}", one_line(ended.err, "Is a directory"), wrong)
    return tally


def _replace(path: Path) -> None:
    path.unlink()
    path.mkdir()
