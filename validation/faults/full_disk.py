"""Disks that fill up at any place of a write: the error says so, the earlier file is intact, and later it works."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np

from meanfield.cli import DONE, FAILED
from validation.faults.children import run_child
from validation.faults.scripts import NO_DISK, Stage, on_scripts
from validation.faults.trials import Tally, fault, folder, left_behind, limited, one_line, unless
from validation.faults.writers import Writer

DISK = 64 << 20
"""Size in bytes of the disk that is filled."""

ROOM = 16384
"""Number of bytes that folders and locks take besides the file."""


def _mount(options: str, place: Path) -> bool:
    """Whether a disk in memory could be mounted, which takes root."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextmanager
def small_disk() -> Iterator[Path | None]:
    """A disk of `DISK` bytes, or None where this user cannot mount one."""
    place = Path(tempfile.mkdtemp(prefix="meanfield-disk-"))
    mounted = _mount(f"size={DISK}", place)
    try:
        yield place if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(place)], check=True)
        place.rmdir()


@contextmanager
def _filled(disk: Path, left: int) -> Iterator[None]:
    """The disk, with so many bytes free."""
    ballast = disk / "ballast"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, free - left))
    try:
        yield
    finally:
        ballast.unlink()


def _trial(tally: Tally, writer: Writer, path: Path, contents: dict[bytes, str], limit: int | None) -> None:
    """Write version 1 as a script would, and version 0 when there is room again."""
    ended = run_child(lambda: _write(writer, path, limit))
    found = contents.get(path.read_bytes(), "DAMAGED")
    right = found == {DONE: "new file", FAILED: "earlier file"}.get(ended.code)
    tally.add(
        "error, earlier file" if ended.code == FAILED else f"code {ended.code}, {found}",
        unless(right, f"code {ended.code}, {found}: {ended.err[-300:]}"),
        one_line(ended.err, f"{path}: cannot be written (", "MiB free") if ended.code == FAILED else "",
        left_behind(path.parent, path.name, "ballast"),
        inside=ended.code == FAILED,
    )


def _write(writer: Writer, path: Path, limit: int | None) -> int:
    """The exit code."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with nullcontext() if limit is None else limited(resource.RLIMIT_FSIZE, limit):
            writer.write(path, 1)
    except OSError as error:
        os.write(2, f"failed: {error}\n".encode())
        return FAILED
    return DONE


@fault("full disk")
def fill_disk(tally: Tally, writer: Writer, count: int, random: np.random.Generator) -> None:
    """A real disk with room for a part of the file, from nothing to all of it."""
    with small_disk() as disk:
        if disk is None:
            tally.note = NO_DISK
            return
        path = disk / writer.file
        contents = writer.contents(path)
        for left in random.integers(0, len(path.read_bytes()) + ROOM, count).tolist():
            with _filled(disk, left):
                _trial(tally, writer, path, contents, None)
            writer.write(path, 0)


@fault("file size limit")
def limit_files(tally: Tally, writer: Writer, count: int, random: np.random.Generator) -> None:
    """A limit on the size of files, from nothing to the size that is needed: what an ordinary user can do."""
    with folder() as place:
        path = place / writer.file
        contents = writer.contents(path)
        for limit in random.integers(0, len(path.read_bytes()), count).tolist():
            _trial(tally, writer, path, contents, limit)
            writer.write(path, 0)


@on_scripts("full disk", small_disk)
def fill_disk_of_script(tally: Tally, theirs: Stage, place: Path, random: np.random.Generator) -> None:
    """Fill the disk of a script, which is given its command again when there is room."""
    with _filled(place, int(random.integers(0, theirs.size * (1 + theirs.script.resumes) + ROOM))):
        ended = theirs.run(place)
        kinds, damage = theirs.found(place)
    tally.add(
        f"code {ended.code}, {kinds}",
        damage,
        one_line(ended.err) if ended.code else "",
        theirs.run_again(place)[1],
        theirs.left(place),
        inside=ended.code != DONE,
    )


@on_scripts("full disk, of standard output")
def full_standard_output(tally: Tally, theirs: Stage, place: Path, random: np.random.Generator) -> None:
    """Send the output of a script to a full disk, and its results to another."""
    ended = run_child(_to_full_device(theirs.script.work(place)))
    kinds, damage = theirs.found(place)
    outcome = f"code {ended.code}, {kinds}"
    right = ended.code == FAILED and kinds.startswith("new result")
    tally.add(outcome, damage, unless(right, outcome), one_line(ended.err, "No space left"))


def _to_full_device(work: Callable[[], int]) -> Callable[[], int]:
    def redirected() -> int:
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
        sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)  # so that the first line is refused
        return work()

    return redirected
