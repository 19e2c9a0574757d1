"""Images from a file in the format of MNIST, seen through four receptive fields."""

from __future__ import annotations

import gzip
import struct
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from meanfield.errors import InputError
from meanfield.ingredients.file_part import FilePart
from meanfield.typing import FloatArray

Pixels = NDArray[np.uint8]

MAGIC = 0x00000803
"""First four bytes of a file of unsigned bytes in three dims: images, rows, columns."""

HEADER = 16
"""Bytes before the first pixel."""

MOST_BYTES = 1 << 31
"""Largest number of bytes of images."""

FIELDS = 4
"""Number of receptive fields: the quarters of an image."""


class Images(FilePart):
    """Images of a file, each drawn alike; the places of two layers are the four quarters of an image."""

    law: Literal["images"] = "images"
    file: str = Field(
        min_length=1,
        max_length=1000,
        description="images in the IDX format of MNIST, such as train-images-idx3-ubyte, also with .gz; relative to "
        "the problem file",
    )
    rows: int = Field(ge=2, le=1000, multiple_of=2, description="number of rows of an image, for instance 28")
    columns: int = Field(ge=2, le=1000, multiple_of=2, description="number of columns of an image, for instance 28")
    crop: bool = Field(
        default=False,
        description="whether views are random parts of the image, of 0.5 to 1 of its area and 0.5 to 1.5 as wide as "
        "high, at its full size",
    )

    @property
    def places(self) -> int:
        """Number of receptive fields."""
        return FIELDS

    @property
    def dimension(self) -> int:
        """Number of pixels of a receptive field."""
        return self.rows * self.columns // FIELDS

    @property
    def atoms(self) -> Pixels:
        """Images, shape (images, rows, columns).

        Raises
        ------
        InputError
            If the file cannot be read, or has images of another size.
        """
        self.check_trusted("file", self.file)
        path = Path(self.file)
        found = read_idx(path, path.stat().st_mtime_ns if path.is_file() else 0)
        if found.shape[1:] != (self.rows, self.columns):
            raise InputError(
                f"file = '{self.file}' has images of {found.shape[1]} x {found.shape[2]} pixels, but rows = "
                f"{self.rows} and columns = {self.columns}; set these to the size of the images"
            )
        return found


@lru_cache(maxsize=4)
def read_idx(path: Path, version: int) -> Pixels:
    """Images of a file in the IDX format, shape (images, rows, columns).

    Parameters
    ----------
    path : Path
    version : int
        Time at which the file was changed, so that it is then read again.

    Raises
    ------
    InputError
        If there is no such file, or it is damaged or of another format.
    """
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            header = file.read(HEADER)
            if len(header) < HEADER:
                raise InputError(
                    f"file = '{path}' has {len(header)} bytes, and its header alone {HEADER}; get it again"
                )
            magic, *shape = struct.unpack(">4I", header)
            size = int(np.prod([float(length) for length in shape]))
            if magic != MAGIC:
                raise InputError(
                    f"file = '{path}' begins with {magic:#010x}, and images in the IDX format with {MAGIC:#010x}; give "
                    "the file of images, not that of labels"
                )
            if not 0 < size <= MOST_BYTES:
                raise InputError(
                    f"file = '{path}' says that it has {size:,} bytes of pixels; 1 to {MOST_BYTES:,} are read"
                )
            pixels = file.read(size + 1)
    except (OSError, EOFError) as error:
        raise InputError(
            f"file = '{path}' cannot be read ({error}); give a file of images in the IDX format"
        ) from error
    if len(pixels) != size:
        more = "more" if len(pixels) > size else f"{len(pixels):,}"
        raise InputError(
            f"file = '{path}' says that it has {size:,} bytes of pixels, but there are {more}; get it again"
        )
    return np.frombuffer(pixels, dtype=np.uint8).reshape(shape)


def write_idx(path: Path, images: Pixels) -> None:
    """Write images, shape (images, rows, columns), as a file in the IDX format."""
    path.write_bytes(struct.pack(">4I", MAGIC, *images.shape) + np.ascontiguousarray(images, np.uint8).tobytes())


def quarters(images: FloatArray) -> FloatArray:
    """Receptive fields, shape (images, 4, pixels), of images of shape (images, rows, columns)."""
    n, rows, columns = images.shape
    parts = images.reshape(n, 2, rows // 2, 2, columns // 2)
    return np.ascontiguousarray(np.swapaxes(parts, 2, 3)).reshape(n, FIELDS, -1)


def cropped(images: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Random parts of images at the full size, by bilinear interpolation between pixels.

    A part has 0.5 to 1 of the area, and a ratio of width to height whose logarithm is uniform from log 0.5 to log 1.5;
    it is made to fit where it would be larger than the image.
    """
    n, rows, columns = images.shape
    area, ratio = rng.uniform(0.5, 1.0, n) * rows * columns, np.exp(rng.uniform(np.log(0.5), np.log(1.5), n))
    high, wide = np.minimum(np.sqrt(area / ratio), rows), np.minimum(np.sqrt(area * ratio), columns)
    top, left = rng.random(n) * (rows - high), rng.random(n) * (columns - wide)
    y, x = (
        np.clip(start[:, None] + (np.arange(size) + 0.5) * (length / size)[:, None] - 0.5, 0.0, size - 1.0)
        for start, length, size in ((top, high, rows), (left, wide, columns))
    )
    up, west = np.minimum(y.astype(int), rows - 2), np.minimum(x.astype(int), columns - 2)
    down, east = y - up, x - west
    which = np.arange(n)[:, None, None]
    found = np.zeros_like(images)
    for i, share in ((0, 1.0 - down), (1, down)):
        for j, portion in ((0, 1.0 - east), (1, east)):
            found += (
                images[which, (up + i)[:, :, None], (west + j)[:, None, :]] * share[:, :, None] * portion[:, None, :]
            )
    return found
