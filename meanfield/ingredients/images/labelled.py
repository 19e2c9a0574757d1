"""Images with their labels, as every reader returns them."""

from __future__ import annotations

from dataclasses import dataclass
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
