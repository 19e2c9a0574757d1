"""Disks that fill up at any place of a write: the error says so, the earlier file is intact, and later it works."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from meanfield.cli import DONE, FAILED
from validation.faults.children import run_child
from validation.faults.scripts import Script, stage
from validation.faults.trials import Tally, folder, names, one_line
from validation.faults.writers import Writer

DISK = 64 << 20
"""Bytes of the disk that is filled."""

ROOM = 16384
"""Bytes that folders and locks take besides the file."""


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


def _limited(limit: int, work: Callable[[], object]) -> None:
    """Files cannot grow beyond a limit: what an ordinary user can do about a disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        work()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _write(writer: Writer, path: Path, limit: int | None = None) -> int:
    """Write version 1 as a script would; the exit code."""
    try:
        if limit is None:
            writer.write(path, 1)
        else:
            _limited(limit, lambda: writer.write(path, 1))
    except OSError as error:
        os.write(2, f"failed: {error}\n".encode())
        return FAILED
    return DONE


def _trial(tally: Tally, writer: Writer, path: Path, contents: dict[bytes, str], limit: int | None) -> None:
    ended = run_child(lambda: _write(writer, path, limit))
    found = contents.get(path.read_bytes(), "DAMAGED")
    expected = {DONE: "new file", FAILED: "earlier file"}.get(ended.code)
    tally.add(
        "error, earlier file" if ended.code == FAILED else f"code {ended.code}, {found}",
        "" if found == expected else f"code {ended.code}, {found}: {ended.err[-300:]}",
        one_line(ended.err, f"{path}: cannot be written (", "MiB free") if ended.code == FAILED else "",
        "" if set(names(path.parent)) <= {path.name, "ballast"} else f"left behind: {names(path.parent)}",
        inside=ended.code == FAILED,
    )


def _contents(writer: Writer, path: Path) -> dict[bytes, str]:
    result = {}
    for version, name in ((1, "new file"), (0, "earlier file")):
        writer.write(path, version)
        result[path.read_bytes()] = name
    return result


def fill_disk(writer: Writer, count: int, random: np.random.Generator) -> Tally:
    """A real disk with room for a part of the file, from nothing to all of it."""
    tally = Tally("full disk", writer.name)
    with small_disk() as disk:
        if disk is None:
            tally.note = "needs root, to mount a disk"
            return tally
        path = disk / writer.file
        contents = _contents(writer, path)
        for left in random.integers(0, len(path.read_bytes()) + ROOM, count).tolist():
            with _filled(disk, left):
                _trial(tally, writer, path, contents, None)
            writer.write(path, 0)
    return tally


def limit_files(writer: Writer, count: int, random: np.random.Generator) -> Tally:
    """A limit on the size of files, from nothing to the size that is needed."""
    tally = Tally("file size limit", writer.name)
    with folder() as place:
        path = place / writer.file
        contents = _contents(writer, path)
        for limit in random.integers(0, len(path.read_bytes()), count).tolist():
            _trial(tally, writer, path, contents, limit)
            writer.write(path, 0)
    return tally


def fill_disk_of_script(script: Script, count: int, random: np.random.Generator) -> Tally:
    """The same for a script, which is given the same command again when there is room."""
    tally, theirs = Tally("full disk", f"`{script.name}.py`"), stage(script)
    with small_disk() as disk:
        if disk is None:
            tally.note = "needs root, to mount a disk"
            return tally
        for number in range(count):
            place = disk / f"{number}"
            place.mkdir()
            theirs.set_up(place)
            with _filled(disk, int(random.integers(0, theirs.size * (1 + script.resumes) + ROOM))):
                ended = run_child(script.work(place))
                kinds, damage = theirs.found(place)
            resumed = run_child(script.work(place))
            again, _ = theirs.found(place)
            tally.add(
                f"code {ended.code}, {kinds}",
                damage,
                one_line(ended.err) if ended.code else "",
                "" if (resumed.code, again) == (DONE, "new result") else f"again: {resumed.code}, {again}",
                theirs.left(place),
                inside=ended.code != DONE,
            )
    return tally


def full_standard_output(script: Script, count: int, random: np.random.Generator) -> Tally:
    """What a script says goes to a full disk; its results do not."""
    tally, theirs = Tally("full disk, of standard output", f"`{script.name}.py`"), stage(script)
    for _ in range(count):
        with folder() as place:
            theirs.set_up(place)
            ended = run_child(_to_full_device(script.work(place)))
            kinds, damage = theirs.found(place)
            wrong = "" if ended.code == FAILED and kinds.startswith("new result") else f"code {ended.code}, {kinds}"
            tally.add(f"code {ended.code}, {kinds}", damage, wrong, one_line(ended.err, "No space left"))
    return tally


def _to_full_device(work: Callable[[], int]) -> Callable[[], int]:
    def redirected() -> int:
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
        sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)  # so that the first line is refused
        return work()

    return redirected
