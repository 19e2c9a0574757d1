"""Images from files, by the format in which they are published.

CIFAR-10 and STL-10 are bytes without a head, or pickled dictionaries. A pickle is a program: here it may make numbers,
texts, bytes, lists, tuples and dictionaries, what it asks for of numpy is met by stand-ins that only remember what they
are given, and everything else is refused.
"""

from __future__ import annotations

import os
import pickle
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from meanfield.errors import InputError
from meanfield.ingredients.images.labelled import Images, checked_images, read_mnist

Format = Literal["arrays", "mnist", "cifar10", "stl10"]

ARRAYS = (".npy", ".npz")
"""Suffixes of files of arrays."""


def read_images(format: Format, paths: Sequence[Path], labels: Path | None = None) -> Images:
    """Images of one or more files.

    Parameters
    ----------
    format : str
        `arrays` (.npz with `images` and perhaps `labels`, or .npy), `mnist` (idx files, also of other sets in that
        format), `cifar10` (the Python or the binary version), or `stl10`.
    paths : sequence of Path
        Several batches of CIFAR-10, and one file of the others.
    labels : Path, optional
        File of labels of `mnist`, `stl10`, or of a .npy file of images (.npy, or .npz with `labels`); the others hold
        them.

    Raises
    ------
    InputError
        If a file is missing, damaged or of another format.
    """
    for path in (*paths, *([] if labels is None else [labels])):
        if not os.path.isfile(path):  # false, where `Path.is_file` raises, for names that no file can have
            raise InputError(f"{path}: no such file of images or labels; correct the path")
    if len(paths) != 1 and format != "cifar10":
        raise InputError(f"{len(paths)} files of images: format = '{format}' has one; give one path")
    if format == "cifar10":
        batches = [_read_cifar10(path) for path in paths]
        whole = [batch.labels for batch in batches if batch.labels is not None]
        return Images(np.concatenate([batch.pixels for batch in batches]), np.concatenate(whole))
    (path,) = paths
    if format == "mnist":
        return read_mnist(path, labels)
    return read_stl10(path, labels) if format == "stl10" else _read_arrays(path, labels)


def _read_cifar10(path: Path) -> Images:
    with open(path, "rb") as file:
        pickled = file.read(1) == b"\x80"  # a binary file begins with a label
    return read_cifar10_pickle(path) if pickled else read_cifar10_records(path)


def _read_arrays(path: Path, labels: Path | None) -> Images:
    if path.suffix.lower() not in ARRAYS:
        raise InputError(f"{path}: arrays are read from .npz and .npy files; convert it, or name its `format`")
    images, own = _arrays(path, "images", "labels")
    if labels is None:
        return checked_images(str(path), images, own)
    if labels.suffix.lower() not in ARRAYS:
        raise InputError(f"{labels}: labels of arrays are read from .npz and .npy files; convert it")
    return checked_images(str(path), images, _arrays(labels, "labels")[0], str(labels))


def _arrays(path: Path, name: str, other: str = "") -> tuple[Any, Any]:
    """The array of a .npy file, or those of an .npz file with a name and perhaps another one."""
    try:
        with open(path, "rb") as file:
            found = np.load(file, allow_pickle=False)
            if not isinstance(found, np.lib.npyio.NpzFile):
                return found, None
            with found:
                if name not in found:
                    raise ValueError(f"it holds {', '.join(found) or 'nothing'}, and no '{name}'")
                return found[name], found.get(other)
    except (OSError, ValueError, EOFError, BadZipFile, zlib.error, MemoryError, SyntaxError) as error:
        reason = str(error).partition("\n")[0]
        if "allow_pickle" in reason:  # advice that would execute what stands in the file
            reason = "it holds objects in place of numbers, or no arrays at all"
        raise InputError(f"{path}: cannot be read as {name} ({reason}); save them by numpy.savez") from error


CIFAR_SIDE, STL_SIDE, CHANNELS, CLASSES = 32, 96, 3, 10


def read_cifar10_records(path: Path) -> Images:
    """Images of a binary file of CIFAR-10, such as `data_batch_1.bin`: a byte for the label, and planes by channel.

    Raises
    ------
    InputError
        If it cannot be read or is damaged.
    """
    records = read_records(path, 1 + CHANNELS * CIFAR_SIDE**2, "CIFAR-10")
    return Images(planes(records[:, 1:], CIFAR_SIDE), checked_labels(path, records[:, 0], 0))


def read_stl10(path: Path, labels: Path | None = None) -> Images:
    """Images of a file of STL-10, such as `train_X.bin`: planes by channel, each column by column.

    Parameters
    ----------
    labels : Path, optional
        `train_y.bin`, with classes from 1 on; images without labels have no such file.

    Raises
    ------
    InputError
        If a file cannot be read or is damaged.
    """
    records = read_records(path, CHANNELS * STL_SIDE**2, "STL-10")
    upright = planes(records, STL_SIDE).swapaxes(1, 2)
    if labels is None:
        return Images(upright)
    classes = checked_labels(labels, read_records(labels, 1, "labels of STL-10")[:, 0], 1)
    return checked_images(str(path), upright, classes, str(labels))


def read_records(path: Path, size: int, what: str) -> NDArray[np.uint8]:
    """Records of a number of bytes each, shape (records, size).

    Raises
    ------
    InputError
        If it cannot be read or does not hold whole records.
    """
    try:
        found = np.fromfile(path, dtype=np.uint8)
    except (OSError, MemoryError) as error:
        raise InputError(f"{path}: cannot be read as {what} ({error}); correct the path") from error
    if len(found) == 0 or len(found) % size:
        if found[:2].tobytes() == b"\x1f\x8b":  # of gzip, as the sets are published
            raise InputError(f"{path}: is compressed, and {what} is read from the files in it; unpack it by tar -xzf")
        raise InputError(
            f"{path}: has {len(found):,} bytes, and {what} a multiple of {size:,}; it is damaged, or of another format"
        )
    return found.reshape(-1, size)


def planes(rows: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Images, shape (images, side, side, channels), from rows that hold one channel after the other."""
    return np.moveaxis(rows.reshape(-1, CHANNELS, side, side), 1, -1)


def checked_labels(path: Path, labels: NDArray[np.uint8], first: int) -> NDArray[np.int64]:
    """Classes from 0 on, from those in a file, which number them from `first` on.

    Raises
    ------
    InputError
        If there are others than ten classes.
    """
    classes = labels.astype(np.int64) - first
    if classes.min() < 0 or classes.max() >= CLASSES:
        raise InputError(
            f"{path}: holds the label {int(labels.min() if classes.min() < 0 else labels.max())}, and labels are from "
            f"{first} to {first + CLASSES - 1}; it is damaged, or of another format"
        )
    return classes


Bytes = bytes | bytearray


class _Inert:
    """Stand-in, which takes what it is given and does nothing with it."""

    def __init__(self, *given: Any) -> None:
        self.given: Any = given

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Array(_Inert):
    """Stand-in for an array."""

    state: Any = None

    @property
    def values(self) -> NDArray[np.uint8]:
        """The numbers, if they are bytes without sign."""
        if self.state is None:  # numpy._core.numeric._frombuffer(buffer, dtype, shape, order)
            numbers, kind, shape, order = self.given
        else:
            _, shape, kind, by_columns, numbers = self.state
            order = "F" if by_columns else "C"
        if not isinstance(kind, _Type) or kind.given[0] not in ("u1", b"u1") or not isinstance(numbers, Bytes):
            raise ValueError("it holds numbers of another type")
        return np.frombuffer(numbers, dtype=np.uint8).reshape(tuple(shape), order=order)


class _Type(_Inert):
    """Stand-in for the type of an array."""


class _Encoded(_Inert):
    """Stand-in for the function that turns text into bytes, which stands in pickles of old protocols."""

    def __new__(cls, text: str, encoding: str) -> Any:
        """Bytes of a text."""
        if encoding not in ("latin1", "latin-1"):
            raise pickle.UnpicklingError(f"the encoding {encoding}")
        return text.encode("latin1")


class _Class(_Inert):
    """Stand-in for the class of arrays, which is an argument only."""


STAND_INS: dict[tuple[str, str], type[_Inert]] = {
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _Array for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _Array for core in ("core", "_core")},
    ("numpy", "ndarray"): _Class,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _Encoded,
}
"""Classes that a pickle may ask for, and those that it gets in their place."""


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Stand-in, in place of the import."""
        if (module, name) not in STAND_INS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not imported")
        return STAND_INS[module, name]


def read_cifar10_pickle(path: Path) -> Images:
    """Images of a Python file of CIFAR-10, such as `data_batch_1`.

    Raises
    ------
    InputError
        If it cannot be read, is damaged, or asks for anything but arrays and dictionaries.
    """
    try:
        with open(path, "rb") as file:
            found = _Reader(file, encoding="bytes").load()
        rows, labels = _entry(found, "data").values, _entry(found, "labels")
        if rows.ndim != 2 or rows.shape[1] != CHANNELS * CIFAR_SIDE**2 or len(rows) == 0:
            raise ValueError(f"its data have the shape {rows.shape}, not (images, {CHANNELS * CIFAR_SIDE**2})")
        if not isinstance(labels, list) or len(labels) != len(rows):
            raise ValueError(f"it has no list of {len(rows)} labels")
        classes = np.array([label if type(label) is int and 0 <= label < 256 else 255 for label in labels], np.uint8)
    except Exception as error:  # a damaged pickle raises whatever its program leads to
        reason = str(error) or type(error).__name__
        raise InputError(
            f"{path}: cannot be read as a batch of CIFAR-10 ({reason}); download it again, or the binary version"
        ) from error
    return Images(planes(rows, CIFAR_SIDE), checked_labels(path, classes, 0))


def _entry(found: Any, key: str) -> Any:
    """Entry of the dictionary, whose keys are bytes or text."""
    if not isinstance(found, dict):
        raise ValueError("it is no dictionary")
    for name in (key.encode(), key):
        if name in found:
            return found[name]
    raise ValueError(f"it has no '{key}'")
