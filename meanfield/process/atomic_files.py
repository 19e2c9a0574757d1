"""Atomic writing of files: a killed run leaves the old file or the new one, never a part of one."""

from __future__ import annotations

import itertools
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from meanfield.errors import InputError
from meanfield.process.interrupts import uninterrupted
from meanfield.process.locking import Answer, FolderLock


def check_writable(path: str | Path) -> None:
    """Refuse an output path before hours are spent on computing what cannot be saved.

    Raises
    ------
    InputError
        If the directory does not exist or is not writable, or the path is a directory, a device or a pipe, or has a
        name that no file can have.
    """
    path = Path(path)
    mode = _mode(path)
    if stat.S_ISDIR(mode):
        raise InputError(f"{path}: is a directory; give the name of a file in it")
    if mode and not stat.S_ISREG(mode):
        raise InputError(f"{path}: is a device or a pipe, which a file would replace; choose another name")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the output directory {path.parent} does not exist; create it or choose another")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{path}: the output directory {path.parent} is not writable; choose another")


def _mode(path: Path) -> int:
    """What is at a path, in the bits of `stat`; 0 if there is nothing."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose another name for the output") from error


def save_text(text: str, path: str | Path) -> None:
    """Write a text, such as a page, as atomically as a Dataset.

    Raises
    ------
    InputError
        If the path cannot be written to.
    """
    path = Path(path)
    check_writable(path)
    write_atomically(path, lambda part: Path(part).write_text(text, encoding="utf-8"))


def write_atomically(path: Path, write: Callable[[str], object], flush: bool = True) -> None:
    """Write to a file of the same name in a hidden folder beside `path`, flush it to the disk, then move it.

    Parameters
    ----------
    path : Path
    write : callable
        Writes to the path that it is given.
    flush : bool
        Without it a crash of the machine, though not of the program, may leave a file that is cut short: for files
        whose readers notice and make them again.

    Raises
    ------
    OSError
        If it cannot be written; what was there before is intact.
    """
    try:
        with _workplace(path) as folder:
            part = folder / path.name
            write(str(part))
            if flush:
                with open(part, "rb+") as file:
                    os.fsync(file.fileno())
            os.replace(part, path)
    except OSError as error:
        raise OSError(f"{path}: cannot be written ({error.strerror or error}; {_free(path)})") from error


@contextmanager
def _workplace(path: Path) -> Iterator[Path]:
    """Hidden folder for one writer of `path`, without files that a killed writer left in it."""
    lock = None
    try:
        with uninterrupted():
            lock = _first_free(path)
        lock.empty()
        # In a folder with a name of its own, because a program that a killed writer began may still be about to write.
        yield Path(tempfile.mkdtemp(dir=lock.folder))
    finally:
        with uninterrupted():
            if lock is not None:
                lock.empty()
                lock.let_go()


def _first_free(path: Path) -> FolderLock:
    """First of the folders for `path` that no living writer has."""
    for number in itertools.count():
        lock = FolderLock(path.with_name(f".{path.name}.{number}.part"))
        new = lock.make()
        answer = lock.take()
        if answer is Answer.OURS or (answer is Answer.UNKNOWN and new):
            break
    return lock


def delete_abandoned(folder: Path) -> None:
    """Delete files that killed writers left in a folder, if they need not be written again."""
    for part in folder.glob(".*.part"):
        lock = FolderLock(part)
        if lock.take() is Answer.OURS:
            lock.empty()
            lock.let_go()


def _free(path: Path) -> str:
    """Free space on the disk, in words, which is the most frequent cause of a failure."""
    try:
        return f"{shutil.disk_usage(path.parent).free / 2**20:.3g} MiB free on its disk"
    except OSError as error:
        return f"{path.parent}: {error.strerror}"
