"""Filters on the circle: angles, tangential fields and walls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from meanfield.typing import FloatArray


class HasField(Protocol):
    """Interface of a field of filters."""

    def field(self, w: FloatArray) -> FloatArray:
        """F of filters, shape (filters, coordinates)."""

    @property
    def amplification(self) -> float:
        """Rounding of the field, relative to its size and to that of a double."""


def on_circle(angle: FloatArray) -> FloatArray:
    """Filters (cos theta, sin theta), shape (angles, 2)."""
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def tangential(source: HasField) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
    """Function of angles, which returns the tangential field and the size of the whole field."""

    def field(angle: FloatArray) -> tuple[FloatArray, FloatArray]:
        w = on_circle(angle)
        F = source.field(w)
        return F[:, 1] * w[:, 0] - F[:, 0] * w[:, 1], np.abs(F).sum(axis=1) * source.amplification

    return field


def walls_of(atoms: FloatArray, kinks: Sequence[float]) -> FloatArray:
    """Angles at which w.x of an atom is a kink of the activation."""
    length = np.hypot(*atoms.T)
    angle = np.arctan2(atoms[:, 1], atoms[:, 0])
    found = [np.empty(0)]
    for kink in kinks:
        reaches = (length > 0) & (length >= abs(kink))
        apart = np.arccos(np.clip(kink / length[reaches], -1.0, 1.0))
        found += [angle[reaches] + apart, angle[reaches] - apart]
    return np.concatenate(found)
