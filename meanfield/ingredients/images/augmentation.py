"""Augmentations of images: where a view looks, and what its pixels suffer."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from pydantic import Field

from meanfield.ingredients.part import Part
from meanfield.typing import FloatArray


class Augmentation(Part):
    """Random changes of an image, each drawn anew for every view; without a key there is none of that sort."""

    crop: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="least side of the part of an image that a view shows, relative to its own; the part is drawn "
        "uniformly in size and place, and enlarged to the whole",
    )
    shift: int = Field(
        default=0, ge=0, le=1000, description="largest number of pixels by which a view is moved along each axis"
    )
    flip: bool = Field(default=False, description="whether left and right are exchanged in half of all views")
    intensity: float = Field(
        default=0.0, ge=0, le=1, description="largest change of the factor that multiplies all pixels of a view"
    )
    noise: float = Field(
        default=0.0, ge=0, le=1e6, description="standard deviation of Gaussian noise that is added to each pixel"
    )

    @property
    def moves(self) -> bool:
        """Whether a view looks elsewhere than at the whole image."""
        return self.crop < 1.0 or self.shift > 0 or self.flip

    def views(self, images: FloatArray, rng: Generator) -> FloatArray:
        """One view of each image.

        Parameters
        ----------
        images : ndarray, shape (images, height, width, channels)

        Returns
        -------
        ndarray, shape (images, height, width, channels)
            What lies beyond the edge of an image is 0.
        """
        count, height, width, _ = images.shape
        if self.moves:
            side = rng.uniform(self.crop, 1.0, (count, 1))
            rows = self._lines(rng, side, height)
            columns = self._lines(rng, side, width)
            flipped = rng.random(count) < 0.5
            if self.flip:
                columns[flipped] = columns[flipped, ::-1]
            images = _interpolated(images, rows, columns)
        if self.intensity > 0.0:
            images = images * rng.uniform(1.0 - self.intensity, 1.0 + self.intensity, (count, 1, 1, 1))
        if self.noise > 0.0:
            images = images + self.noise * rng.standard_normal(images.shape)
        return images

    def _lines(self, rng: Generator, side: FloatArray, size: int) -> FloatArray:
        """Places in an image, in pixels, of the lines of a view along one axis, shape (views, size).

        `side` has the shape (views, 1).
        """
        first = rng.random(side.shape) * (1.0 - side) * size
        move = rng.integers(-self.shift, self.shift + 1, side.shape)
        return np.asarray(first + side * (np.arange(size) + 0.5) - 0.5 + move)


def _interpolated(images: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Images at other places, linearly between pixels and to 0 beyond the edge."""
    _, height, width, channels = images.shape
    down = np.maximum(1.0 - np.abs(rows[:, :, None] - np.arange(height)), 0.0)
    across = np.maximum(1.0 - np.abs(columns[:, :, None] - np.arange(width)), 0.0)
    if channels == 1:
        return np.asarray((down @ images[..., 0] @ across.swapaxes(1, 2))[..., None])
    planes = down[:, None] @ np.moveaxis(images, -1, 1) @ across[:, None].swapaxes(2, 3)
    return np.asarray(np.moveaxis(planes, 1, -1))
