"""A few tiny images of bars, from which examples learn: class 0 has horizontal ones, class 1 vertical ones."""

from __future__ import annotations

import numpy as np

from meanfield.typing import FloatArray, IntArray

SIDE = 4


def make_bars() -> tuple[FloatArray, IntArray]:
    """Images of one or two bars, with and without a weaker pixel, shape (images, 4, 4), and their classes."""
    images, labels = [], []
    for first in range(SIDE):
        for second in range(first, SIDE):
            image = np.zeros((SIDE, SIDE))
            image[[first, second]] = 1.0
            image[second, first] = 0.75
            images += [image, image.T]
            labels += [0, 1]
    return np.array(images), np.array(labels)
