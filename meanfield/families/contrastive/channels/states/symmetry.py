"""Subspaces in which channels coincide, and symmetries of the velocity of several channels, found on the velocity.

Equal channels stay equal, so that groups of them move like one channel each. In the overlaps of one channel of each
group a state is inside the domain, where Newton's method takes it for what it is.

Channels may always change places. Flips of a channel or of a feature, exchanges of features and their rotations are
symmetries of some problems: an even activation allows flips of channels, equal laws exchanges, and equal Gaussian laws
rotations, which make a continuum of every state that has learnt one of these features.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import permutations, product

import numpy as np

from meanfield.families.contrastive.channels.states.field import ROOM_SHARE, SmoothField, random_state
from meanfield.numerics.continuation import rough_differences
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
        step = min(1e-7, ROOM_SHARE * self.room(z))  # errors of truncation and rounding are about equal
        return values, rough_differences(self.values, z, values, step)

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


ZERO_TOLERANCE = 1e-10
"""Size of an overlap below which it is rounding."""

SAME_STATE = 1e-6
"""Largest distance of two states that are one."""


class Symmetries:
    """Signed permutations of the overlaps that commute with the velocity, and rotations of features."""

    def __init__(self, field: SmoothField) -> None:
        self._field, self._d1, self._d2 = field, field.features, field.channels
        rng = np.random.default_rng(0)
        self._probes = [0.9 * random_state(field, rng) for _ in range(2)]
        self._values = [field(x) for x in self._probes]
        self._allowed = (1e-9 + 10 * field.closure.error) * field.size  # rounding of the velocity is below 1e-9
        self.channel_flips = self._holds(*self._element(channel_sign=np.r_[-1.0, np.ones(self._d2 - 1)]))
        flips = [np.array(signs) for signs in product((1.0, -1.0), repeat=self._d1)]
        self.feature_flips = [flip for flip in flips if self._holds(*self._element(feature_sign=flip))]
        self.classes = self._alike()
        self.rotating = [c for c in self.classes if len(c) > 1 and self._rotates(c[0], c[1])]

    @cached_property
    def _elements(self) -> tuple[FloatArray, FloatArray]:
        """Places and signs of all signed permutations, shapes (elements, n)."""
        orders = []
        for images in product(*(permutations(c) for c in self.classes)):
            orders.append(np.arange(self._d1, dtype=np.int64))
            orders[-1][np.concatenate(self.classes)] = np.concatenate(images)
        signs = product((1.0, -1.0), repeat=self._d2) if self.channel_flips else [(1.0,) * self._d2]
        made = [
            self._element(flip, order, np.array(sign), np.array(places))
            for flip, order, sign, places in product(
                self.feature_flips, orders, list(signs), permutations(range(self._d2))
            )
        ]
        return np.array([place for place, _ in made], dtype=np.int16), np.array([sign for _, sign in made])

    def images(self, x: FloatArray) -> FloatArray:
        """Images of overlaps under all signed permutations, shape (elements, n), themselves among them."""
        places, signs = self._elements
        return np.asarray(signs * x[places])

    def representative(self, x: FloatArray) -> FloatArray:
        """One of the images of overlaps, the same for all of them: channel k has most of feature k, if it can."""
        images = self.images(np.where(np.abs(x) < ZERO_TOLERANCE, 0.0, x)) + 0.0
        q = images[:, : self._d1 * self._d2].reshape(-1, self._d1, self._d2)
        order = np.column_stack([np.einsum("nkk->n", q[:, : self._d2, : self._d1]), images])
        return np.asarray(images[np.lexsort(np.round(order, 9).T[::-1])[-1]])  # ordered by nine digits

    def same(self, x: FloatArray, y: FloatArray) -> bool:
        """Whether overlaps are images of each other."""
        distances = np.abs(self._invariants(self.images(x)) - self._invariants(y[None])).max(axis=1)
        return bool(distances.min() < SAME_STATE)

    def copies(self, x: FloatArray) -> float:
        """Number of different images of overlaps, infinite if features can be rotated in them."""
        q, _ = self._field.unpacked(x)
        if any(np.abs(q[c]).max() > SAME_STATE for c in self.rotating):
            return np.inf
        images = self.images(x)
        return len(images) / np.count_nonzero(np.abs(images - x).max(axis=1) < SAME_STATE)

    def _invariants(self, x: FloatArray) -> FloatArray:
        """Numbers that tell states apart but for rotations of features, for overlaps of shape (states, n)."""
        if not self.rotating:
            return x
        size = self._d1 * self._d2
        q = x[:, :size].reshape(-1, self._d1, self._d2)
        turning = [f for c in self.rotating for f in c]
        parts = [np.delete(q, turning, axis=1), *(np.einsum("nfk,nfl->nkl", q[:, c], q[:, c]) for c in self.rotating)]
        return np.concatenate([part.reshape(len(x), -1) for part in (*parts, x[:, size:])], axis=1)

    def _element(
        self,
        feature_sign: FloatArray | None = None,
        feature_order: Numbers | None = None,
        channel_sign: FloatArray | None = None,
        channel_order: Numbers | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Places and signs of a signed permutation of overlaps in one vector."""
        d1, d2 = self._d1, self._d2
        features = np.arange(d1) if feature_order is None else feature_order
        channels = np.arange(d2) if channel_order is None else channel_order
        f_sign = np.ones(d1) if feature_sign is None else feature_sign
        c_sign = np.ones(d2) if channel_sign is None else channel_sign
        n, pairs = d1 * d2, np.triu_indices(d2, 1)
        number = np.zeros((d2, d2), dtype=int)
        number[pairs] = number.T[pairs] = n + np.arange(len(pairs[0]))
        places = np.arange(n).reshape(d1, d2)[np.ix_(features, channels)].ravel()
        return (
            np.concatenate([places, number[np.ix_(channels, channels)][pairs]]),
            np.concatenate([np.outer(f_sign, c_sign).ravel(), np.outer(c_sign, c_sign)[pairs]]),
        )

    def _holds(self, places: FloatArray, signs: FloatArray) -> bool:
        return all(
            np.abs(self._field(signs * x[places]) - signs * b[places]).max() <= self._allowed
            for x, b in zip(self._probes, self._values, strict=True)
        )

    def _alike(self) -> list[list[int]]:
        """Features that may change places, in classes."""
        classes: list[list[int]] = []
        for f in range(self._d1):
            for c in classes:
                order = np.arange(self._d1, dtype=np.int64)
                order[[c[0], f]] = f, c[0]
                if self._holds(*self._element(feature_order=order)):
                    c.append(f)
                    break
            else:
                classes.append([f])
        return classes

    def _rotates(self, f: int, g: int) -> bool:
        """Whether two features may be rotated into each other."""
        turn = np.eye(self._d1)
        cos, sin = np.cos(0.6), np.sin(0.6)  # an angle of no special value
        turn[np.ix_([f, g], [f, g])] = [[cos, sin], [-sin, cos]]

        def turned(x: FloatArray) -> FloatArray:
            q, M = self._field.unpacked(x)
            return self._field.packed(turn @ q, M)

        return all(
            np.abs(self._field(turned(x)) - turned(b)).max() <= self._allowed
            for x, b in zip(self._probes, self._values, strict=True)
        )
