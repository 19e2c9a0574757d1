"""Files of bytes without a head: the binary version of CIFAR-10, and STL-10."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meanfield.errors import InputError
from meanfield.ingredients.images.labelled import Images, checked_images

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
    path : Path
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
