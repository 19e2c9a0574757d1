"""Symmetries of the velocity of order parameters, found on the velocity itself.

Students, features and side variables may change places or signs, by themselves or together, and students or features
may be rotated. A map counts if the velocity commutes with it at random states.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from meanfield.families.update_rule.fixed_points.velocity import PROBES, Velocity
from meanfield.families.update_rule.rates import State, packed
from meanfield.typing import FloatArray

RESOLUTION = 1e-9
"""Largest change of the velocity under a symmetry, relative to its size: rounding, which averages over kinks gather."""

SAME_STATE = 1e-6
"""Largest distance of two states that are one, in units of 1 plus their largest number."""

ANGLE = 0.6
"""Angle of no special value by which rotations are tried."""


class Map(NamedTuple):
    """Orthogonal maps of students, features and side variables."""

    students: FloatArray
    features: FloatArray
    side: FloatArray


class Symmetries:
    """Symmetries of a velocity.

    Parameters
    ----------
    velocity : Velocity

    Attributes
    ----------
    generators : list of Map
        Exchanges and flips of signs that generate all that were found.
    rotations : list of Map
        Rotations of two students, or of two features, by an angle.
    """

    def __init__(self, velocity: Velocity) -> None:
        self._velocity = velocity
        rng = np.random.default_rng(1)
        self._probes = [velocity.random(rng, 0.3) for _ in range(PROBES // 2)]
        self._values = [self._rates(x) for x in self._probes]
        self.generators = list(self._found())
        system, one = velocity.system, self._one
        self.rotations = [
            turn
            for turn in [
                *(one._replace(students=_turned(system.students, *pair)) for pair in _pairs(system.students)),
                *(one._replace(features=_turned(system.features, *pair)) for pair in _pairs(system.features)),
            ]
            if self._holds(turn)
        ]

    @property
    def _one(self) -> Map:
        system = self._velocity.system
        return Map(*(np.eye(size) for size in (system.students, system.features, len(system.side))))

    def _found(self) -> Iterator[Map]:
        """Generators: of students or features alone, then of both together where neither is one alone."""
        students, features, side = ([one, *_simple(len(one))] for one in self._one)
        pairs = list(product(range(len(students)), range(len(features))))
        alone = {
            (i, j): found
            for i, j in pairs
            if not (i and j) and (found := self._with_side(students[i], features[j], side[i + j == 0 :])) is not None
        }
        yield from alone.values()
        if len(self._one.students) * len(self._one.features) <= 9:
            for i, j in pairs:
                if i and j and not {(i, 0), (0, j)} & {*alone}:
                    found = self._with_side(students[i], features[j], side)
                    if found is not None:
                        yield found

    def _with_side(self, students: FloatArray, features: FloatArray, sides: list[FloatArray]) -> Map | None:
        """Symmetry of students and features with one of some maps of side variables; None if there is none."""
        return next((how for side in sides if self._holds(how := Map(students, features, side))), None)

    def _rates(self, x: FloatArray) -> FloatArray:
        y = np.zeros(len(self._velocity.start))
        y[self._velocity.free] = self._velocity(x)
        return y

    def _holds(self, how: Map) -> bool:
        """Whether the velocity commutes with a map that changes something."""
        velocity, changes = self._velocity, False
        for x, rate in zip(self._probes, self._values, strict=True):
            y, image = velocity.embedded(x), self.image(how, velocity.embedded(x))
            kept = np.ones(len(y), dtype=bool)
            kept[velocity.free] = False
            if np.abs(image - y)[kept].max(initial=0.0) > RESOLUTION:
                return False
            change = self._rates(image[velocity.free]) - self.image(how, rate)
            if not np.abs(change[velocity.free]).max() <= RESOLUTION * max(velocity.size, float(np.abs(rate).max())):
                return False
            changes = changes or bool(np.abs(image - y).max() > SAME_STATE)
        return changes

    def image(self, how: Map, y: FloatArray) -> FloatArray:
        """Image of all order parameters under a map."""
        R, Q, v = self._velocity.state(y)
        return packed(State(how.students @ R @ how.features.T, how.students @ Q @ how.students.T, how.side @ v))

    def images(self, x: FloatArray) -> FloatArray:
        """Images of free order parameters under all exchanges and flips, shape (images, n), the given ones first."""
        velocity = self._velocity
        found, new = [velocity.embedded(x)], [velocity.embedded(x)]
        while new and len(found) < 5000:
            y = new.pop()
            for how in self.generators:
                image = self.image(how, y)
                if np.abs(np.array(found) - image).max(axis=1).min() > SAME_STATE * (1.0 + np.abs(y).max()):
                    found.append(image)
                    new.append(image)
        return np.array(found)[:, velocity.free]

    def copies(self, x: FloatArray) -> float:
        """Number of images of a state, infinite where a rotation moves it."""
        y = self._velocity.embedded(x)
        if any(np.abs(self.image(turn, y) - y).max() > 1e3 * SAME_STATE for turn in self.rotations):
            return np.inf
        return float(len(self.images(x)))

    def invariants(self, x: FloatArray) -> FloatArray:
        """Numbers of a state that no rotation changes: singular values of R, eigenvalues of Q, and side variables."""
        R, Q, v = self._velocity.state(self._velocity.embedded(x))
        return np.concatenate([np.linalg.svd(R, compute_uv=False), np.linalg.eigvalsh(Q), np.sort(np.abs(v))])

    def representative(self, x: FloatArray) -> FloatArray:
        """One of the images of a state, the same for all: student k has most of feature k, if it can."""
        images = np.round(self.images(x), 9) + 0.0
        diagonal = [np.trace(self._velocity.state(self._velocity.embedded(image)).R) for image in images]
        order = np.lexsort(np.column_stack([np.round(diagonal, 6), images]).T[::-1])
        return np.asarray(self.images(x)[order[-1]])


def _pairs(size: int) -> Iterator[tuple[int, int]]:
    return combinations(range(size), 2)


def _simple(size: int) -> list[FloatArray]:
    """Flips of one sign, of all, and exchanges of two."""
    flips = [np.diag(np.where(np.arange(size) == k, -1.0, 1.0)) for k in range(size)]
    exchanges = [np.eye(size)[np.where(np.isin(np.arange(size), pair), sum(pair) - np.arange(size), np.arange(size))]
                 for pair in _pairs(size)]  # fmt: skip
    return [*flips, *([-np.eye(size)] if size > 1 else []), *exchanges]


def _turned(size: int, i: int, j: int) -> FloatArray:
    turn = np.eye(size)
    turn[np.ix_([i, j], [i, j])] = [[np.cos(ANGLE), np.sin(ANGLE)], [-np.sin(ANGLE), np.cos(ANGLE)]]
    return turn
