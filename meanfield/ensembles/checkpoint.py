"""Checkpoint: storage of a run in a folder, from which a killed run is resumed when it is started again.

Arrays are files mapped into memory, so that they take none of it however large they are. States are files written
beside their target, flushed and renamed: a kill leaves the old state or the new one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np
from numpy.lib.format import dtype_to_descr, write_array_header_1_0
from numpy.typing import DTypeLike

from meanfield.arguments import as_flag, as_number, as_path
from meanfield.ensembles.arrays import Array, Identity, Record, State, blank
from meanfield.errors import InputError
from meanfield.process.atomic_files import write_atomically
from meanfield.process.checksum import append_checksum, verify_checksum
from meanfield.process.locking import LOCK, FolderLock
from meanfield.results.made_by import RESTART

IDENTITY_FILE = "run.txt"
"""Name of the file that holds the identity of the run to which the folder belongs."""

DELETION_FILE = "over.txt"
"""Name of the file that replaces `IDENTITY_FILE` while the folder is being deleted: a run
cannot be resumed from what is left in it."""

VALUES_AT_ONCE = 1 << 15
"""Number of values that are written at once when a file is created."""


class Checkpoint(Record):
    """Arrays and states of one run in a folder, which one process has at a time.

    It has it while the run goes on; use the checkpoint in a `with` statement to have it longer, such as until the
    results are saved and the folder is removed.

    Parameters
    ----------
    folder : str or Path
        Created when the run begins; one that is there already must belong to the same run, which then goes on.
    save_every : float
        Seconds between two states, and so what a killed run loses at most.
    restart : bool
        Forget an unfinished run that is there, whatever it is of, and begin anew.

    Raises
    ------
    InputError
        If the folder is no path, `save_every` no number from 0 on, or `restart` neither True nor False.
    """

    def __init__(self, folder: str | Path, save_every: float = 10.0, restart: bool = False) -> None:
        self.folder = as_path(folder, "folder", "give the path of a folder for the unfinished run")
        self.save_every = as_number(save_every, "save_every", "give a number of seconds, 0 or more", least=0.0)
        self._restart = as_flag(restart, "restart", "give True to forget an unfinished run, or False to go on with it")
        self._lock = FolderLock(self.folder)
        self._arrays: dict[str, np.memmap[Any, Any]] = {}
        self._remedy = f"begin this run anew: {RESTART}"

    @property
    def in_memory(self) -> bool:
        """See `Record.in_memory`."""
        return False

    def __enter__(self) -> Self:
        """Lock the folder for this process.

        Raises
        ------
        InputError
            If another process has it, or it is a folder of other files.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        if self.folder.is_dir() and not self._is_ours():
            raise InputError(f"{self.folder}: holds files that are no unfinished run; name a folder of its own")
        self._lock.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.__exit__()

    def _is_ours(self) -> bool:
        """Whether the folder is empty, or has files by which a run can be recognised."""
        names = set(os.listdir(self.folder))
        return not names or not names.isdisjoint({LOCK, IDENTITY_FILE, DELETION_FILE})

    @contextmanager
    def open(self, identity: Identity) -> Iterator[None]:
        """See `Record.open`.

        Raises
        ------
        InputError
            If the folder holds another run, or one that other functions or files began, or cannot be entered.
        """
        with self:
            self._begin(identity)
            yield

    def _begin(self, identity: Identity) -> None:
        path = self.folder / IDENTITY_FILE
        if self._restart:
            self._restart = False  # what is begun now may be resumed with this checkpoint
            self._end()
        if (self.folder / DELETION_FILE).is_file():  # killed while it was deleted
            self._delete()
        if not path.is_file():
            write_atomically(path, lambda part: Path(part).write_text(identity.written(), encoding="utf-8"))
            return
        found = identity.differences(path.read_bytes().decode(errors="replace"))
        if found is None:
            raise InputError(
                f"{self.folder}: holds an unfinished run of another problem, or of another version of meanfield; "
                "finish that one with the problem file and version that began it, name another output or folder, or "
                f"{self._remedy}"
            )
        if found:
            raise InputError(
                f"{self.folder}: holds an unfinished run that other functions, files or versions began: "
                f"{'; '.join(found)}. Take the change back, name another output or folder, or {self._remedy}"
            )

    def open_array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike = float) -> Array:
        """See `Record.open_array`.

        Raises
        ------
        InputError
            If the disk is too full, or the file is damaged.
        """
        path, header = self.folder / f"{name}.npy", _header(shape, np.dtype(dtype))
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if not path.is_file():
            self._check_disk(size)
            write_atomically(path, lambda part: _write_blank(Path(part), shape, np.dtype(dtype)))
        with path.open("rb") as file:
            if file.read(len(header)) != header or path.stat().st_size != len(header) + size:
                raise self._damaged(path, f"it is no array of {np.dtype(dtype)} of shape {shape}")
        array = np.memmap(path, dtype, "r+", len(header), shape)
        self._arrays[name] = array
        return np.asarray(array)

    def _check_disk(self, needed: int) -> None:
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise InputError(
                f"{self.folder}: this run keeps {needed / 2**30:.3g} GiB there, but {free / 2**30:.3g} GiB are free; "
                "name fewer particles.snapshots, set particles.snapshot_precision = 'single', or use another disk"
            )

    def save_state(self, name: str, state: State) -> None:
        """See `Record.save_state`."""
        for array in self._arrays.values():
            array.flush()
        write_atomically(self.folder / f"{name}.npz", lambda part: _write_state(part, state))

    def load_state(self, name: str) -> State | None:
        """See `Record.load_state`.

        Raises
        ------
        InputError
            If the file is damaged.
        """
        path = self.folder / f"{name}.npz"
        if not path.is_file():
            return None
        if not verify_checksum(path, self._remedy):
            raise self._damaged(path, "its end is missing")
        try:
            with np.load(path, allow_pickle=False) as file:
                return dict(file)
        except (ValueError, EOFError, BadZipFile) as error:
            raise self._damaged(path, error) from error

    def forget_state(self, name: str) -> None:
        """See `Record.forget_state`."""
        (self.folder / f"{name}.npz").unlink(missing_ok=True)

    def digest(self, arrays: Iterable[Array]) -> Array:
        """See `Record.digest`."""
        digest = hashlib.sha256()
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
        return np.frombuffer(digest.digest(), np.uint8)

    def check(self, arrays: Iterable[Array], digest: Array) -> None:
        """See `Record.check`.

        Raises
        ------
        InputError
            If the values are others.
        """
        if not np.array_equal(self.digest(arrays), digest):
            raise self._damaged(self.folder, "its arrays are not what was written there")

    @property
    def begun(self) -> bool:
        """Whether there is a run to resume."""
        return (self.folder / IDENTITY_FILE).is_file()

    def remove(self) -> None:
        """Delete the folder, once its run is saved elsewhere; arrays that are still in use stay valid."""
        with self:
            self._end()

    def _end(self) -> None:
        """Delete all files of the run that is there, if there is one."""
        if self.begun:
            os.replace(self.folder / IDENTITY_FILE, self.folder / DELETION_FILE)
            self._delete()

    def _damaged(self, path: Path, error: object) -> InputError:
        return InputError(f"{path}: is damaged ({error}); {self._remedy}")

    def _delete(self) -> None:
        """Delete all files of the run, the mark of its end last."""
        for entry in self.folder.iterdir():
            if entry.suffix in (".npy", ".npz"):
                entry.unlink()
        self._lock.empty()


def _header(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    """Header of the file of an array."""
    header = BytesIO()
    write_array_header_1_0(header, {"descr": dtype_to_descr(dtype), "fortran_order": False, "shape": shape})
    return header.getvalue()


def _write_blank(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Write every value, so that a full disk is noticed here, and not as a crash when the mapped file is filled."""
    size = int(np.prod(shape))
    with path.open("wb") as file:
        file.write(_header(shape, dtype))
        for first in range(0, size, VALUES_AT_ONCE):
            file.write(np.full(min(VALUES_AT_ONCE, size - first), blank(dtype), dtype).tobytes())


def _write_state(part: str, state: State) -> None:
    with open(part, "wb") as file:
        np.savez(file, **state)  # type: ignore[arg-type]
    append_checksum(part)
