"""A record in a folder: what a killed run had saved is there when it is started again.

Arrays are files mapped into memory, so that they take none of it however large they are. States are files written
beside their target, flushed and renamed: a kill leaves the old state or the new one.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import DTypeLike

from meanfield.errors import InputError
from meanfield.record import Record, State, blank
from meanfield.storage import write_atomically

BLOCK = 1 << 15
"""Values that are written at once when a file is created."""


class Checkpoint(Record):
    """Arrays and states of one run in a folder.

    Parameters
    ----------
    folder : str or Path
        Created when the run begins; one that is there already must belong to the same run, which then goes on.
    save_every : float
        Seconds between two states, and so what a killed run loses at most.
    """

    def __init__(self, folder: str | Path, save_every: float = 10.0) -> None:
        self.folder = Path(folder)
        self.save_every = save_every
        self._arrays: dict[str, np.memmap[Any, Any]] = {}

    @property
    def in_memory(self) -> bool:
        """See `Record.in_memory`."""
        return False

    def open(self, identity: str) -> None:
        """See `Record.open`.

        Raises
        ------
        InputError
            If the folder holds another run.
        """
        path = self.folder / "run.txt"
        if not path.is_file():
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, lambda part: Path(part).write_text(identity, encoding="utf-8"))
        elif path.read_text(encoding="utf-8") != identity:
            raise InputError(
                f"{self.folder}: holds an unfinished run of another problem, or of another version of meanfield; "
                "finish that one with the problem file and version that began it, or delete the folder"
            )

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike = float) -> np.ndarray[Any, np.dtype[Any]]:
        """See `Record.array`.

        Raises
        ------
        InputError
            If the disk is too full.
        """
        path = self.folder / f"{name}.npy"
        if not path.is_file():
            self._check_disk(int(np.prod(shape)) * np.dtype(dtype).itemsize)
            write_atomically(path, lambda part: _write_blank(Path(part), shape, np.dtype(dtype)))
        array = open_memmap(path, mode="r+")
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
        """See `Record.load_state`."""
        path = self.folder / f"{name}.npz"
        if not path.is_file():
            return None
        with np.load(path) as file:
            return dict(file)

    def forget_state(self, name: str) -> None:
        """See `Record.forget_state`."""
        (self.folder / f"{name}.npz").unlink(missing_ok=True)

    @property
    def begun(self) -> bool:
        """Whether there is something to go on with."""
        return (self.folder / "run.txt").is_file()

    def remove(self) -> None:
        """Delete the folder, once its run is saved elsewhere; arrays that are still in use stay valid."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _write_blank(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Write every value, so that a full disk is noticed here, and not as a crash when the mapped file is filled."""
    open_memmap(path, mode="w+", dtype=dtype, shape=shape).flush()
    size = int(np.prod(shape))
    with path.open("r+b") as file:
        file.seek(os.path.getsize(path) - size * dtype.itemsize)
        for first in range(0, size, BLOCK):
            file.write(np.full(min(BLOCK, size - first), blank(dtype), dtype).tobytes())


def _write_state(part: str, state: State) -> None:
    with open(part, "wb") as file:
        np.savez(file, **state)  # type: ignore[arg-type]
