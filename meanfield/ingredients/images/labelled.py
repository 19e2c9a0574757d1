"""Images with their labels, as every reader returns them, and files of the idx format, in which MNIST is published.

Such a file, compressed by gzip or not, holds two bytes of 0, one for the type of the numbers, one for the number of
dims, the sizes as big-endian numbers of 32 bits, and the numbers. Those of MNIST have 8 bits.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meanfield.errors import InputError
from meanfield.typing import FloatArray, IntArray

LARGEST_PIXEL = 1e6
"""Largest size of a pixel that is a float."""

CHANNELS = (1, 3, 4)
"""Numbers of channels of grey and coloured pictures."""


@dataclass(frozen=True)
class Images:
    """Images of one size.

    Parameters
    ----------
    pixels : ndarray, shape (images, height, width, channels)
        Whole numbers, or floats.
    labels : ndarray of int, shape (images,), optional
        Classes from 0 on.
    white : float, optional
        Value of a pixel that becomes 1; by default 255 for 8 bits without sign, and 1 for floats.
    """

    pixels: NDArray[Any]
    labels: IntArray | None = None
    white: float | None = None

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def inputs(self) -> int:
        """Number of numbers of an image."""
        return int(np.prod(self.pixels.shape[1:]))

    def values(self, chosen: Any = slice(None)) -> FloatArray:
        """Pixels of chosen images as floats, divided by `white`."""
        pixels, white = self.pixels[chosen], self.white
        if white is None:
            white = 255.0 if pixels.dtype == np.uint8 else 1.0  # the largest byte becomes 1
        return np.asarray(pixels / white, dtype=float)


def checked_images(source: str, pixels: Any, labels: Any = None, source_of_labels: str | None = None) -> Images:
    """Images of arrays, which anybody may have made.

    Parameters
    ----------
    source : str
        What they come from, for messages.
    pixels : array_like, shape (images, height, width) or (images, height, width, channels)
    labels : array_like of int, shape (images,), optional
    source_of_labels : str, optional
        What these come from, if that is something else.

    Raises
    ------
    InputError
        If they are no images, or labels do not belong to them.
    """
    pixels = np.asarray(pixels)
    if pixels.ndim not in (3, 4) or 0 in pixels.shape or pixels.dtype.kind not in "uif":
        raise InputError(
            f"{source}: holds {pixels.dtype} of shape {pixels.shape}; give real numbers of shape (images, height, "
            "width) or (images, height, width, channels)"
        )
    if pixels.ndim == 3:
        pixels = pixels[..., None]
    elif pixels.shape[1] in CHANNELS and min(pixels.shape[2:]) > max(CHANNELS):
        raise InputError(
            f"{source}: holds images of shape {pixels.shape[1:]}, {pixels.shape[1]} pixels high with "
            f"{pixels.shape[3]} channels, which look like channels first; give numpy.moveaxis(images, 1, -1)"
        )
    if pixels.dtype.kind == "f":
        wrong = ~(np.abs(pixels).max(axis=(1, 2, 3)) <= LARGEST_PIXEL)
        if wrong.any():
            raise InputError(
                f"{source}: image {int(np.argmax(wrong))} holds a pixel that is not finite, or beyond "
                f"{LARGEST_PIXEL:g}; remove or rescale it"
            )
    if labels is None:
        return Images(pixels)
    labels, owner = np.asarray(labels), source if source_of_labels is None else source_of_labels
    if labels.dtype.kind not in "ui" or labels.shape != pixels.shape[:1] or labels.min() < 0:
        raise InputError(
            f"{owner}: its labels are {labels.dtype} of shape {labels.shape}; give a whole number >= 0 for each of "
            f"the {len(pixels)} images"
        )
    return Images(pixels, labels.astype(np.int64))


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
