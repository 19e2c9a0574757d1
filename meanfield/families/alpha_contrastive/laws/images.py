"""Images from a file in the format of MNIST, seen through four receptive fields."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from meanfield.errors import InputError
from meanfield.ingredients.file_part import FilePart
from meanfield.ingredients.images.labelled import read_idx
from meanfield.typing import FloatArray

Pixels = NDArray[np.uint8]

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
        found = self.read_once("file", lambda sha256: _pixels(sha256, Path(self.file)))
        if found.shape[1:] != (self.rows, self.columns):
            raise InputError(
                f"data.file = '{self.file}' has images of {found.shape[1]} x {found.shape[2]} pixels, but rows = "
                f"{self.rows} and columns = {self.columns}; set these to the size of the images"
            )
        return found


@lru_cache(maxsize=4)
def _pixels(sha256: tuple[str, ...], path: Path) -> Pixels:
    """Images of a file, which problems share as long as its bytes do not change."""
    try:
        return read_idx(path, 3)
    except InputError as error:
        raise InputError(f"data.file: {error}") from None


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
    area = rng.uniform(0.5, 1.0, n) * rows * columns
    ratio = np.exp(rng.uniform(np.log(0.5), np.log(1.5), n))
    high = np.minimum(np.sqrt(area / ratio), rows)
    wide = np.minimum(np.sqrt(area * ratio), columns)
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
