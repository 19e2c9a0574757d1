"""Subspaces in which channels coincide: equal channels stay equal, so that groups of them move like one channel each.

In the overlaps of one channel of each group a state is inside the domain, where Newton's method takes it for what it
is. The velocity is that of all channels.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from meanfield.families.contrastive.channels.states.field import SmoothField, rough_differences
from meanfield.typing import FloatArray

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


class Coincidence:
    """Velocity, in units of its size, of the overlaps of groups of equal channels.

    Parameters
    ----------
    group : ndarray of int, shape (d2,)
        Number of the group of each channel.
    sign : ndarray, shape (d2,)
        Sign of each channel relative to the first one of its group.
    """

    def __init__(self, field: SmoothField, group: Numbers, sign: FloatArray) -> None:
        self.field, self._sign = field, sign
        _, self._first, self._group = np.unique(group, return_index=True, return_inverse=True)
        self.groups = len(self._first)
        self._pairs = np.triu_indices(self.groups, 1)

    @property
    def alone(self) -> bool:
        """Whether no channels coincide."""
        return self.groups == self.field.channels

    def packed(self, q: FloatArray, M: FloatArray) -> FloatArray:
        """Unknowns of overlaps of groups, q of shape (d1, groups)."""
        return np.concatenate([np.ravel(q), M[self._pairs]])

    def restricted(self, x: FloatArray) -> FloatArray:
        """Unknowns of the overlaps x of all channels, or velocities of the one from those of the other."""
        q, M = self.field.unpacked(x)
        return self.packed(q[:, self._first], M[np.ix_(self._first, self._first)])

    def embedded(self, z: FloatArray) -> FloatArray:
        """Overlaps of all channels in one vector."""
        q, M = self._unpacked(z)
        whole = self._sign[:, None] * self._sign * M[np.ix_(self._group, self._group)]
        return self.field.packed(q[:, self._group] * self._sign, whole)

    def room(self, z: FloatArray) -> float:
        """Least eigenvalue of K of the groups."""
        q, M = self._unpacked(z)
        return float(np.linalg.eigvalsh(M - q.T @ q).min())

    def values(self, z: FloatArray) -> FloatArray:
        """Velocity of the unknowns; NaN outside of the domain."""
        if not np.isfinite(z).all() or not self.room(z) > 0.0:
            return np.full(len(z), np.nan)
        return self.restricted(self.field(self.embedded(z))) / self.field.size

    def equations(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Velocity of the unknowns and its Jacobian; NaN outside of the domain."""
        values = self.values(z)
        if not np.isfinite(values).all():
            return values, np.full((len(z), len(z)), np.nan)
        return values, rough_differences(self.values, z, values, self.room(z))

    def _unpacked(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        size = self.field.features * self.groups
        M = np.eye(self.groups)
        M[self._pairs] = M.T[self._pairs] = z[size:]
        return z[:size].reshape(self.field.features, self.groups), M


def coincidences(field: SmoothField) -> Iterator[Coincidence]:
    """All groupings of channels, up to their order; the one without equal channels first."""
    for sizes in sorted(_partitions(field.channels, field.channels), key=len, reverse=True):
        yield Coincidence(field, np.repeat(np.arange(len(sizes), dtype=np.int64), sizes), np.ones(field.channels))


def coincidence_near(field: SmoothField, x: FloatArray) -> Coincidence:
    """Grouping of the channels that nearly coincide, up to a sign."""
    _, M = field.unpacked(x)
    group = np.arange(len(M), dtype=np.int64)
    for k in range(len(M)):
        for j in range(k):
            if abs(M[k, j]) > 0.9:
                group[group == group[k]] = group[j]
    first = np.array([int(np.flatnonzero(group == number)[0]) for number in group])
    return Coincidence(field, group, np.where(M[np.arange(len(M)), first] < 0, -1.0, 1.0))


def _partitions(whole: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Positive integers that add up to a whole, each set once, from the largest on."""
    if whole == 0:
        yield ()
    for part in range(min(whole, largest), 0, -1):
        for rest in _partitions(whole - part, part):
            yield (part, *rest)
