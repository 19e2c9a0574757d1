"""Datasets to netCDF files and back. Writing is atomic: a killed run leaves the old file or none. Damage is noticed."""

from __future__ import annotations

import itertools
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import netCDF4
import numpy as np
import xarray as xr

from meanfield.errors import InputError
from meanfield.process.checksum import append_seal, check_seal
from meanfield.process.interrupts import uninterrupted
from meanfield.process.locking import Answer, FolderLock
from meanfield.process.progress import progress_bar
from meanfield.results import checks, schema

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.figure import Figure

COMPRESSED_FROM = 10_000
"""Variables with at least this many values are compressed."""

LARGE = 1 << 22
"""Variables with at least this many values are written piece by piece."""

ANIMATION_WRITERS = {"gif": "pillow", "mp4": "ffmpeg"}
"""What writes a format, as matplotlib calls it."""

CHUNK = 1 << 18
"""Values of a chunk at most: what is compressed, and read again, at once."""

UNREADABLE = (OSError, ValueError, RuntimeError, AttributeError, TypeError, KeyError, IndexError, OverflowError)
"""What netCDF raises over files that are none, and xarray over attributes to which CF conventions give a meaning."""


def check_writable(path: str | Path) -> None:
    """Refuse an output path before hours are spent on computing what cannot be saved.

    Raises
    ------
    InputError
        If the directory does not exist or is not writable, or the path is a directory.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: is a directory; give the name of a file in it")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the output directory {path.parent} does not exist; create it or choose another")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{path}: the output directory {path.parent} is not writable; choose another")


def save(dataset: xr.Dataset, path: str | Path) -> None:
    """Write a Dataset to a netCDF file with a checksum : to a temporary file beside it, then renamed.

    Parameters
    ----------
    dataset : xarray.Dataset
        A result of any method, or a comparison.
    path : str or Path
        The file; an existing one is replaced.

    Raises
    ------
    InputError
        If the path is none that can be written to.
    OSError
        If writing fails, as it does when the disk is full; what was there before is intact.
    """
    path = Path(path)
    check_writable(path)
    dataset = schema.brought_up_to_date(dataset)
    large = [str(name) for name, variable in dataset.variables.items() if variable.size >= LARGE]
    encoding = {
        str(name): _compression(variable.shape)
        for name, variable in dataset.variables.items()
        if COMPRESSED_FROM <= variable.size < LARGE
    }

    def write(part: str) -> None:
        try:
            with uninterrupted():  # xarray's locks
                dataset.drop_vars(large).to_netcdf(part, engine="netcdf4", encoding=encoding)
            if large:
                _append({name: dataset.variables[name] for name in large}, part)
        except RuntimeError as error:  # all that netCDF says of a full disk is "HDF error"
            os.truncate(part, 0)  # HDF5 keeps the file open, and its room on the disk, until the process ends
            raise OSError(str(error)) from error
        append_seal(part)

    write_atomically(path, write)


def _append(variables: Mapping[str, xr.Variable], part: str) -> None:
    """Write large variables piece by piece, with a bar, because compressing them takes long."""
    pieces = {name: _pieces(variable.shape) for name, variable in variables.items()}
    with (
        netCDF4.Dataset(part, "a") as file,
        progress_bar(sum(map(len, pieces.values())), "saving", "piece") as bar,
    ):
        for name, variable in variables.items():
            for dim, size in variable.sizes.items():
                if dim not in file.dimensions:
                    file.createDimension(str(dim), size)
            options = _compression(variable.shape) | ({"fill_value": math.nan} if variable.dtype.kind == "f" else {})
            target = file.createVariable(name, variable.dtype, tuple(map(str, variable.dims)), **options)
            target.setncatts(variable.attrs)
            for piece in pieces[name]:
                target[piece] = variable.values[piece]
                bar.update()


def _pieces(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Indices of the leading dims, as many as have single entries in a chunk."""
    chunks = _chunks(shape)
    leading = next((axis for axis, size in enumerate(chunks) if size > 1), len(chunks))
    return list(np.ndindex(*shape[: max(1, leading)]))


def _compression(shape: tuple[int, ...]) -> dict[str, Any]:
    return {"zlib": True, "complevel": 1, "shuffle": True, "chunksizes": _chunks(shape)}


def _chunks(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The trailing dims that fit into a chunk whole, a part of the next one, and single entries of those before."""
    chunks, left = [], CHUNK
    for size in reversed(shape):
        chunks.append(max(1, min(size, left)))
        left //= chunks[-1]
    return tuple(reversed(chunks))


def check_figure_path(path: str | Path) -> None:
    """Refuse a figure's path before anything is computed.

    Raises
    ------
    InputError
        If the path cannot be written to, or its ending names no format.
    """
    from matplotlib.backend_bases import FigureCanvasBase

    path = Path(path)
    check_writable(path)
    known, kind = sorted(FigureCanvasBase.get_supported_filetypes()), path.suffix.removeprefix(".")
    if kind not in known:
        raise InputError(f"{path}: '{kind}' is no figure format; use one of {', '.join(known)}")


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure in the format of the path's ending, as atomically as a Dataset.

    Raises
    ------
    InputError
        If the path cannot be written to, or its ending names no format.
    """
    path = Path(path)
    check_figure_path(path)
    write_atomically(path, lambda part: figure.savefig(part, dpi=150, format=path.suffix.removeprefix(".")))


def check_animation_path(path: str | Path) -> None:
    """Refuse an animation's path before anything is computed.

    Raises
    ------
    InputError
        If the path cannot be written to, its ending is not gif or mp4, or what writes mp4 is not installed.
    """
    from matplotlib.animation import writers

    path = Path(path)
    check_writable(path)
    kind = path.suffix.removeprefix(".")
    if kind not in ANIMATION_WRITERS:
        raise InputError(f"{path}: '{kind}' is no animation format; use one of {', '.join(ANIMATION_WRITERS)}")
    if not writers.is_available(ANIMATION_WRITERS[kind]):
        raise InputError(
            f"{path}: {kind} is written by {ANIMATION_WRITERS[kind]}, which is not installed; "
            "install it, or choose a name that ends in .gif"
        )


def save_animation(animation: FuncAnimation, path: str | Path, frames_per_second: int = 10) -> None:
    """Write an animation as GIF or, where ffmpeg is installed, as MP4, as atomically as a Dataset.

    Raises
    ------
    InputError
        If the path cannot be written to, its ending is not gif or mp4, or what writes mp4 is not installed.
    """
    path = Path(path)
    check_animation_path(path)
    writer = ANIMATION_WRITERS[path.suffix.removeprefix(".")]

    def write(part: str) -> None:
        with progress_bar(0, "drawing", "frame") as bar:

            def advance(frame: int, frames: int) -> None:
                bar.total = frames
                bar.update()

            try:
                animation.save(part, writer=writer, fps=frames_per_second, progress_callback=advance)
            except subprocess.CalledProcessError as error:  # ffmpeg's, which Ctrl-C reaches as well
                if isinstance(error.__context__, KeyboardInterrupt):
                    raise error.__context__ from None
                raise OSError(f"{writer} ended with code {error.returncode}") from error

    write_atomically(path, write)


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
    """A hidden folder for one writer of `path`, rid of what a killed one left in it."""
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
    """The first of the folders for `path` that no living writer has."""
    for number in itertools.count():
        lock = FolderLock(path.with_name(f".{path.name}.{number}.part"))
        new = lock.make()
        answer = lock.take()
        if answer is Answer.OURS or (answer is Answer.UNKNOWN and new):
            break
    return lock


def delete_abandoned(folder: Path) -> None:
    """Delete what killed writers left in a folder whose files need not be written again."""
    for part in folder.glob(".*.part"):
        lock = FolderLock(part)
        if lock.take() is Answer.OURS:
            lock.empty()
            lock.let_go()


def _free(path: Path) -> str:
    """How much room there is, which most often says what is wrong."""
    try:
        return f"{shutil.disk_usage(path.parent).free / 2**20:.3g} MiB free on its disk"
    except OSError as error:
        return f"{path.parent}: {error.strerror}"


def load(path: str | Path) -> xr.Dataset:
    """Read a result into memory, close the file, and check it: its bytes, and what it says.

    Raises
    ------
    InputError
        If the file is missing, is damaged, cannot be read as netCDF or is no result of ours.

    Notes
    -----
    A file that another program wrote is not taken for ours. To take it as it is, read it with `xarray.load_dataset` and
    `save` it.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file; run a solver with -o {path} first")
    sealed = check_seal(path)
    try:
        with uninterrupted(), xr.open_dataset(path, engine="netcdf4") as file:  # xarray's locks
            dataset = file.load()
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be read as netCDF ({error}); give a file written by a solver") from error
    try:
        checks.check(dataset)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if not sealed and dataset.attrs["schema_version"] >= schema.CHECKSUM_SINCE:
        raise InputError(
            f"{path}: is damaged, or was written by another program: it lacks the seal at the end of every result that "
            "meanfield saved; run the solver again, or, to take the file as it is, "
            f"meanfield.save(xarray.load_dataset('{path}'), '{path}')"
        )
    return dataset
