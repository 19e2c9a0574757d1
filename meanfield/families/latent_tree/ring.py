"""Law of two objects on a ring of pixels that are shifted at random, seen by nodes through two neighbouring pixels."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field

from meanfield.ingredients.part import Part
from meanfield.typing import BoolArray, FloatArray

FIELD = 2
"""Number of neighbouring pixels that nodes see."""

OBJECTS = ((0, 1), (0, 2))
"""Pixels of both objects, from their place on."""


class RingObjects(Part):
    """Two objects on a ring, two pixels each: side by side, or with a gap; views have them at any place."""

    law: Literal["ring_objects"]
    sites: int = Field(
        default=8, ge=4, le=10**6, description="d, number of pixels of the ring; with 3 objects coincide"
    )

    @property
    def given_object(self) -> FloatArray:
        """Probabilities of the patterns 00, 01, 10, 11 in the field of two pixels given the object, shape (2, 4)."""
        found = np.zeros((len(OBJECTS), 1 << FIELD))
        for z, pixels in enumerate(OBJECTS):
            for place in range(-max(pixels), FIELD):  # elsewhere no pixel of the object is in the field
                pattern = [(k - place) in pixels for k in range(FIELD)]
                found[z, 2 * pattern[0] + pattern[1]] += 1.0 / self.sites
            found[z, 0] += 1.0 - found[z].sum()
        return found

    def views(self, rng: Generator, objects: BoolArray) -> BoolArray:
        """Which of the two pixels views of objects cover, shape (views, 2); the objects are False for the first."""
        place = rng.integers(self.sites, size=len(objects))
        far = np.where(objects, OBJECTS[1][1], OBJECTS[0][1])
        pixel = np.arange(FIELD)
        first = pixel == place[:, None]
        second = pixel == ((place + far) % self.sites)[:, None]
        return np.asarray(first | second)
