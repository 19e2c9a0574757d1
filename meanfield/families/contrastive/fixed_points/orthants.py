"""Zeros of a field with overlaps of given signs: from scattered starts, with those that are known deflated."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from meanfield.numerics.continuation import Equations, newton
from meanfield.typing import FloatArray

Rates = Callable[[FloatArray], FloatArray]


class Coincident:
    """Face in which parts of its features have one overlap q each, by the variables sqrt(m) q of m features.

    Parameters
    ----------
    face : callable
        See `Orthant`.
    parts : list of list of int
        Places of the features of each part.
    """

    def __init__(self, face: Rates, parts: list[list[int]]) -> None:
        self._face, self._root = face, np.sqrt([len(part) for part in parts])
        self.first = [part[0] for part in parts]
        number = [k for k, part in enumerate(parts) for _ in part]
        self._part = np.array(number)[np.argsort(np.concatenate(parts))]

    def __call__(self, x: FloatArray) -> FloatArray:
        """Field by these variables."""
        return np.asarray(self._root * self._face(self.expanded(x))[..., self.first])

    def expanded(self, x: FloatArray) -> FloatArray:
        """Overlaps of all features."""
        return np.asarray((x / self._root)[..., self._part])

    def reduced(self, q: FloatArray) -> FloatArray:
        """Variables of overlaps that coincide."""
        return np.asarray(self._root * q[..., self.first])


FRUITLESS = 12
"""Starts in a row that bring nothing new before an orthant is left, unless indices say that a zero is missing."""

BESIDE = 0.05
"""Distance from a zero at which others are searched for that branched off from it."""

MOST_SCATTERED = 64
"""Largest number of scattered starts, for each dimension, in the ball; as many are next to the sphere."""


class Orthant:
    """Search for approximate zeros with overlaps of given signs, which goes on where it was left.

    Parameters
    ----------
    face : callable
        q -> b(q) of a face, in units of the size of the field, shapes (..., n).
    signs, powers : ndarray, shape (n,)
        Signs of the overlaps, and the powers p of the variables x = |q|^p: 2 where the field is odd in an overlap.
    likely : list of ndarray, shape (n,)
        Overlaps that are tried first.
    """

    def __init__(self, face: Rates, signs: FloatArray, powers: FloatArray, likely: list[FloatArray]) -> None:
        self._face, self._signs, self._powers = face, signs, powers
        axis = [signs * (norm / len(signs)) ** 0.5 for norm in (0.1, 0.35, 0.6, 0.8, 0.95)]  # values of q.q
        self._likely = [*likely, *axis]
        self._starts = self._scattered()
        self._known: list[FloatArray] = []
        self._beside: list[FloatArray] = []
        self._fruitless = 0
        self.exhausted = False

    def leave_out(self, images: FloatArray, isolated: bool) -> None:
        """Take a zero, which stands in rows with its images, for known: it is not to be found again."""
        self._known += list(np.abs(images) ** self._powers)
        if isolated:
            self._beside += list(images[:1])
            self._fruitless = 0

    def zeros(self) -> Iterator[FloatArray]:
        """Zeros that are new, until starts in a row bring nothing; whoever takes one calls `leave_out` for it."""
        for start in self._likely:
            yield from self._from(np.abs(start) ** self._powers)
        self._likely = []
        self._fruitless = 0
        for start in self._starts:
            self._fruitless += 1
            yield from self._from(start)
            if self._fruitless >= FRUITLESS:
                return
        self.exhausted = True

    def beside(self) -> Iterator[FloatArray]:
        """Zeros that are new, from starts beside those that are known, along the directions of the linearised rates."""
        while self._beside:
            q = self._beside.pop()
            _, slope = self._equations(np.abs(q) ** self._powers)
            for along in np.linalg.eig(slope)[1].real.T:
                for step in (BESIDE, -BESIDE):
                    start = q + step * along
                    yield from self._from(np.abs(start * (np.linalg.norm(q) / np.linalg.norm(start))) ** self._powers)

    def _from(self, start: FloatArray) -> Iterator[FloatArray]:
        """The zero that a start leads to, if it is new."""
        x = _root(self._equations, self._rates, start, self._known)
        # Zeros closer to a smaller face cannot be told from those in it.
        if x is None or np.any(x < 1e-3**self._powers):
            return
        if all(np.linalg.norm(x - other) > 1e-7 for other in self._known):
            yield self._signs * x ** (1.0 / self._powers)

    def _scattered(self) -> Iterator[FloatArray]:
        """Scattered starts, half of them next to the sphere, in three parts that are sorted by rates."""
        n = len(self._signs)
        parts, norms = scattered_parts(n, MOST_SCATTERED * n)
        for few in np.split(np.arange(len(parts)), [len(parts) // 4, len(parts) // 2]):
            both = np.concatenate([norms[few], 1.0 - 0.05 * norms[few] ** 2])
            starts = (both[:, None] * np.tile(parts[few], (2, 1))) ** (0.5 * self._powers)
            yield from starts[np.argsort(np.linalg.norm(self._rates(starts), axis=1))]

    def _rates(self, x: FloatArray) -> FloatArray:
        q = self._signs * np.maximum(x, 0.0) ** (1.0 / self._powers)
        inside = np.all(x > 0.0, axis=-1) & (np.square(q).sum(axis=-1) < 1.0)
        return np.asarray(np.where(inside[..., None], self._face(q) / np.where(q == 0.0, 1.0, q), np.nan))

    def _equations(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        steps = 1e-5 * x  # inwards; Newton's method then converges by five digits a step
        ahead = self._rates(np.concatenate([x[None], x - np.diag(steps)]))
        return ahead[0], ((ahead[0] - ahead[1:]) / steps[:, None]).T


def _root(equations: Equations, rates: Rates, x: FloatArray, known: list[FloatArray]) -> FloatArray | None:
    """Root of the rates from a start, to rounding, which no tolerance tells beforehand."""
    root = newton(equations, x, known, 1e-9, rates)
    for _ in range(2):
        if root is None:
            return None
        values, slope = equations(root)
        root = root - np.linalg.lstsq(slope, values, rcond=None)[0] if np.all(np.isfinite(slope)) else None
    return root if root is not None and np.all(root > 0.0) else None


def directions_of(face: Rates, signs: FloatArray) -> FloatArray:
    """Points of the sphere of an orthant near which the field may vanish, shape (points, n)."""
    parts, _ = scattered_parts(len(signs), 8 * len(signs))
    points = (1.0 - 2e-16) * signs * np.sqrt(parts)  # rounded inwards
    size = np.linalg.norm(face(points), axis=1)
    likely = np.argsort(size)[:2]
    return np.asarray(points[likely[size[likely] < 0.05]])  # of the size of the field, which vanishes at a zero


def scattered_parts(n: int, count: int) -> tuple[FloatArray, FloatArray]:
    """Points of the face sum_k u_k = 1 of a simplex, shape (count, n), evenly scattered, and numbers in (0, 1)."""
    from scipy.stats import qmc  # imported where it is used: it takes longer than most scripts run

    cube = qmc.Sobol(n + 1, scramble=False).random_base2(count.bit_length())[1 : count + 1]  # the first is a corner
    parts = np.log1p(-cube[:, :n]) ** 2  # of exponential variables, squared: many are small
    return parts / parts.sum(axis=1, keepdims=True), cube[:, n]
