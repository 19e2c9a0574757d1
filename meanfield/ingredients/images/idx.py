"""Files of the idx format, in which MNIST is published, compressed by gzip or not.

Two bytes of 0, one for the type of the numbers, one for the number of dims, the sizes as big-endian numbers of 32 bits,
and the numbers. Those of MNIST have 8 bits.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meanfield.errors import InputError
from meanfield.ingredients.images.labelled import Images, checked_images

GZIP = b"\x1f\x8b"
"""First bytes of a file that gzip has compressed."""


def read_mnist(path: Path, labels: Path | None = None) -> Images:
    """Images of MNIST, or of another set in its format.

    Parameters
    ----------
    path : Path
        `train-images-idx3-ubyte` for instance, with or without `.gz`.
    labels : Path, optional
        `train-labels-idx1-ubyte`.

    Raises
    ------
    InputError
        If a file cannot be read or is damaged.
    """
    return checked_images(str(path), read_idx(path, 3), None if labels is None else read_idx(labels, 1), str(labels))


def read_idx(path: Path, dims: int) -> NDArray[np.uint8]:
    """Numbers of a file of the idx format.

    Parameters
    ----------
    dims : int
        Number of dims that it shall have: 3 for images, 1 for labels.

    Raises
    ------
    InputError
        If it is no such file, is cut, or too long.
    """
    try:
        with open(path, "rb") as plain:
            compressed = plain.read(2) == GZIP
            plain.seek(0)
            return _read(gzip.GzipFile(fileobj=plain) if compressed else plain, path, dims)
    except (OSError, EOFError, zlib.error, MemoryError) as error:
        raise InputError(f"{path}: cannot be read as an idx file ({error}); download it again") from error


def _read(file: Any, path: Path, dims: int) -> NDArray[np.uint8]:
    head = file.read(4)
    if head != bytes([0, 0, 0x08, dims]):  # 8 is the type of unsigned bytes
        raise InputError(
            f"{path}: begins with {head.hex(' ') or 'nothing'}, and an idx file of {dims} dim(s) of bytes with 00 00 "
            f"08 {dims:02x}; give {'images' if dims == 3 else 'labels'} of MNIST's format"
        )
    sizes = file.read(4 * dims)
    shape = tuple(int(size) for size in np.frombuffer(sizes[: 4 * (len(sizes) // 4)], dtype=">u4"))
    wanted = int(np.prod(shape, dtype=object)) if len(shape) == dims else 0
    numbers = file.read(wanted)
    if len(numbers) != wanted or wanted == 0 or file.read(1):
        raise InputError(
            f"{path}: says that it holds numbers of the shape {shape}, and holds {'more' if wanted else 'other'} than "
            f"these {wanted:,}, or fewer ({len(numbers):,}); download it again"
        )
    return np.frombuffer(numbers, dtype=np.uint8).reshape(shape)
