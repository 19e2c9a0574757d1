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

from meanfield.arguments import as_path
from meanfield.errors import InputError
from meanfield.process.interrupts import uninterrupted
from meanfield.process.locking import Answer, FolderLock


def check_writable(path: str | Path) -> None:
    """Refuse an output path before hours are spent on computing what cannot be saved.

    Raises
    ------
    InputError
        If the directory does not exist or is not writable, or the path is a directory, a device or a pipe, is
        write-protected, or has a name that no file can have.
    """
    path = as_path(path, "path", "give the path of the file to write")
    mode = _mode(path)
    if stat.S_ISDIR(mode):
        raise InputError(f"{path}: is a directory; give the name of a file in it")
    if mode and not stat.S_ISREG(mode):
        raise InputError(f"{path}: is a device or a pipe, which a file would replace; choose another name")
    # Permissions without any of which a file is protected, even from an administrator, to whom the system allows all.
    if mode and not (mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) and os.access(path, os.W_OK)):
        raise InputError(f"{path}: is write-protected; choose another name for the output, or allow it by chmod +w")
    _mode(_numbered_workplace(path, 0), path)  # whose name is longer
    folder = _target(path).parent
    shown = folder if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise InputError(f"{path}: the output directory {shown} does not exist; create it or choose another")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{path}: the output directory {shown} is not writable; choose another")


def _mode(path: Path, output: Path | None = None) -> int:
    """Mode of the file at a path, in the bits of `stat`; 0 if there is none. Messages name the output."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        reason = f"cannot be written ({error.strerror}); choose another name for the output"
        raise InputError(f"{output or path}: {reason}") from error


def _target(path: Path) -> Path:
    """The file that is replaced: where a path is a link, the one that it leads to, and the link stays."""
    return Path(os.path.realpath(path))


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

    Where `path` is a link, this is done where it leads to.

    Parameters
    ----------
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
    target = _target(path)
    try:
        with _workplace(target) as folder:
            part = folder / target.name
            write(str(part))
            if flush:
                with open(part, "rb+") as file:
                    os.fsync(file.fileno())
            os.replace(part, target)
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
        lock = FolderLock(_numbered_workplace(path, number))
        new = lock.make()
        answer = lock.take()
        if answer is Answer.OURS or (answer is Answer.UNKNOWN and new):
            break
    return lock


def _numbered_workplace(path: Path, number: int) -> Path:
    return path.with_name(f".{path.name}.{number}.part")


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
