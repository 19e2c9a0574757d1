"""Lock of a folder that one process uses at a time; the kernel releases it when the process ends, however it ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from enum import Enum
from pathlib import Path
from typing import Self

from meanfield.errors import InputError

try:
    import fcntl
except ImportError:  # Windows: processes are not kept apart there
    fcntl = None  # type: ignore[assignment]

LOCK = "lock"
"""Name of the file in a folder that is locked; its text names the process that holds the lock."""


class Answer(Enum):
    """Outcome of an attempt to take the lock of a folder."""

    OURS = "nobody else has it until it is let go"
    TAKEN = "another process has it"
    UNKNOWN = "this file system has no locks"


class FolderLock:
    """Lock of a folder for one process at a time; within the process, taking it once more is free.

    Parameters
    ----------
    folder : Path
        Created when it is taken; the folder that it is in must exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file: int | None = None
        self._holds = 0

    def make(self) -> bool:
        """Create the folder; false if it exists."""
        try:
            self.folder.mkdir()
        except FileExistsError:
            return False
        return True

    def take(self) -> Answer:
        """Try to take the lock, without waiting."""
        while True:
            self.make()
            try:
                file = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
            except FileNotFoundError:  # whoever had the folder has just deleted it
                continue
            answer = _lock(file)
            if answer is Answer.OURS and self._is_current(file):
                self._file = file
                _say_who(file)
                return answer
            os.close(file)
            if answer is not Answer.OURS:
                return answer

    def _is_current(self, file: int) -> bool:
        """Whether the file that was locked is still the one in the folder."""
        try:
            return os.path.samestat(os.fstat(file), os.stat(self.folder / LOCK))
        except FileNotFoundError:
            return False

    def let_go(self) -> None:
        """Release the lock, and delete the folder if it is empty."""
        with contextlib.suppress(OSError):
            if os.listdir(self.folder) == [LOCK]:
                os.unlink(self.folder / LOCK)
                self.folder.rmdir()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def empty(self) -> None:
        """Delete everything in the folder."""
        for entry in self.folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != LOCK:
                entry.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        """Take the lock.

        Raises
        ------
        InputError
            If another process has it.
        """
        if self._holds == 0 and self.take() is Answer.TAKEN:
            raise InputError(
                f"{self.folder}: is in use by {_holder(self.folder)}; wait until that has ended, or name another output"
            )
        self._holds += 1
        return self

    def __exit__(self, *error: object) -> None:
        self._holds -= 1
        if self._holds == 0:
            self.let_go()


def _lock(file: int) -> Answer:
    if fcntl is None:
        return Answer.UNKNOWN
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return Answer.TAKEN
    except OSError:  # some network file systems
        return Answer.UNKNOWN
    return Answer.OURS


def _say_who(file: int) -> None:
    """Write the owner of the lock to its file, for messages; a disk without room for it is no reason to stop."""
    with contextlib.suppress(OSError):
        os.ftruncate(file, 0)
        os.pwrite(file, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)


def _holder(folder: Path) -> str:
    with contextlib.suppress(OSError):
        return (folder / LOCK).read_text(encoding="utf-8") or "another process"
    return "another process"
