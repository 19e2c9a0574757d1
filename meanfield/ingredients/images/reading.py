"""Images from files, by the format in which they are published."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np

from meanfield.errors import InputError
from meanfield.ingredients.images.binary import read_cifar10_records, read_stl10
from meanfield.ingredients.images.idx import read_mnist
from meanfield.ingredients.images.labelled import Images, checked_images
from meanfield.ingredients.images.pickled import read_cifar10_pickle

Format = Literal["arrays", "mnist", "cifar10", "stl10"]

ARRAYS = (".npy", ".npz")
"""Suffixes of files of arrays."""

PICKLE = b"\x80"
"""First byte of a pickle; a binary file of CIFAR-10 begins with a label."""


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
        pickled = file.read(1) == PICKLE
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
