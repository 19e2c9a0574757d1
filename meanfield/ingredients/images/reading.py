"""Images from files, by the format in which they are published."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal
from zipfile import BadZipFile

import numpy as np

from meanfield.errors import InputError
from meanfield.ingredients.images.binary import read_cifar10_records, read_stl10
from meanfield.ingredients.images.idx import read_mnist
from meanfield.ingredients.images.labelled import Images, checked_images
from meanfield.ingredients.images.pickled import read_cifar10_pickle

Format = Literal["arrays", "mnist", "cifar10", "stl10"]

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
        File of labels of `mnist`, `stl10`, or of a .npy file of images; the others hold them.

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
    if path.suffix.lower() not in (".npy", ".npz"):
        raise InputError(f"{path}: arrays are read from .npz and .npy files; convert it, or name its `format`")
    try:
        found = np.load(path, allow_pickle=False)
        if path.suffix.lower() == ".npz":
            with found:
                if "images" not in found:
                    raise ValueError(f"it holds {', '.join(found) or 'nothing'}, and no 'images'")
                return checked_images(str(path), found["images"], found.get("labels"))
        classes = None if labels is None else np.load(labels, allow_pickle=False)
    except InputError:
        raise
    except (OSError, ValueError, EOFError, BadZipFile, MemoryError, SyntaxError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path}: cannot be read as images ({reason}); save them by numpy.savez") from error
    return checked_images(str(path), found, classes)
