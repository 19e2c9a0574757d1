"""All zeros of the vector field b(q) in the closed unit ball, face by face.

Where features that are not there stay away, each face in which some overlaps vanish is invariant, and searched by
itself for zeros with all its overlaps; of faces and orthants that symmetries map to each other one is. On the sphere of
every face b points inwards, so that the indices sign det(-db/dq) of all zeros in it add up to 1 (Poincare and Hopf):
where they do not, the search of the face goes on. Features that depend on each other have no such faces.

Where features that are not there stay away, b_k = q_k r_k, and zeros with all overlaps of one sign pattern are those of
the relative growth rates r_k: zeros in smaller faces, of which there are many, do not attract Newton's method there.
Where features may be flipped, r is a function of the similarities u_k = q_k^2, for a quadratic activation a polynomial
of low degree, near q = 0 for any a linear function, so that few starts suffice: beside zeros of smaller faces,
from which others branch off, on the axis of symmetry, and scattered ones in the order of their rates, some of them
next to the sphere, within 1e-3 of which zeros may lie. The zeros that were found are deflated. Features that may be
exchanged have one overlap in many zeros, also in such as few starts lead to; these have fewer variables, and are
searched for first. Where indices say that a zero is missing starts are beside those that are known, from which it
may have branched off, and then all searches of the face go on where they were left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, combinations, cycle, product
from typing import NamedTuple

import numpy as np

from meanfield.families.contrastive.fixed_points.orthants import Coincident, Orthant, directions_of
from meanfield.families.contrastive.fixed_points.search import Face
from meanfield.families.contrastive.fixed_points.symmetries import (
    SAME_ZERO,
    copies,
    distinct,
    exchanges,
    is_reflected,
    is_separable,
)
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.numerics.growth_rates import RATE_RESOLUTION
from meanfield.typing import FloatArray, IntArray

BY_CELLS = 2
"""Largest number of features whose faces are searched by cells, where there is another way."""


class Zero(NamedTuple):
    """A zero q of the field, shape (d1,), and the Jacobian db/dq there."""

    q: FloatArray
    slope: FloatArray


def all_zeros(field: VectorField, flips: FloatArray, size: float, fineness: int = 1) -> list[Zero]:
    """Zeros of b in the closed unit ball.

    Parameters
    ----------
    flips : ndarray, shape (flips, d1)
        Sign symmetries of the field.
    size : float
        Size of the field; see `field_size`.
    fineness : int
        Factor of the number of cells or starts along each direction.

    Returns
    -------
    list of Zero
        All zeros, each once; of a continuum one for each face that it meets.
    """
    d1 = field.features
    if is_reflected(flips) or (d1 > BY_CELLS and is_separable(field)):
        return _Faces(field, flips, size).zeros(fineness)
    found = [Zero(q, jacobian_at(field, q)) for q in Face(field, tuple(range(d1)), size).zeros(False, fineness)]
    return _with_images(found, flips, [list(range(d1))])


def _with_images(zeros: Iterable[Zero], flips: FloatArray, orders: list[list[int]]) -> list[Zero]:
    """Zeros with their images under exchanges and flips, each once; minors of Jacobians stay under flips."""
    moved = [Zero(q[order], slope[np.ix_(order, order)]) for q, slope in zeros for order in orders]
    apart = [moved[i] for i in distinct([zero.q for zero in moved])]
    images = [Zero(image, zero.slope) for zero in apart for image in copies(zero.q, flips)]
    return [images[i] for i in distinct([zero.q for zero in images])]


class _Faces:
    """Search of the faces in which some overlaps vanish, the smallest first.

    Parameters
    ----------
    field, flips, size
        See `all_zeros`.
    """

    def __init__(self, field: VectorField, flips: FloatArray, size: float) -> None:
        self._field, self._flips, self._size = field, flips, size
        self._reflected = is_reflected(flips)
        d1 = field.features
        self._orders = exchanges(field) if d1 > BY_CELLS else [list(range(d1))]
        alone = (flips.sum(axis=1) == d1 - 2) @ (flips < 0)  # whether each feature may be flipped by itself
        self._powers = np.where(alone, 2.0, 1.0)
        origin = np.zeros(d1)
        self._found = [Zero(origin, jacobian_at(field, origin))]

    def zeros(self, fineness: int) -> list[Zero]:
        """All zeros, each once."""
        d1 = self._field.features
        searched: set[tuple[int, ...]] = set()
        for dimensions in range(1, d1 + 1):
            for kept in combinations(range(d1), dimensions):
                if kept not in searched:
                    searched |= {tuple(sorted(order.index(k) for k in kept)) for order in self._orders}
                    self._search(kept, fineness)
        return self._found

    def _search(self, kept: tuple[int, ...], fineness: int) -> None:
        """Add the zeros of one face, and of its images."""
        face, before = Face(self._field, kept, self._size), self._found
        if self._field.features <= BY_CELLS or len(kept) == 1:
            found = [x for x in face.zeros(self._reflected, fineness) if np.all(np.abs(x) > SAME_ZERO)]
            self._found = before + self._images(face, found)
            return
        patterns = list(self._patterns(face, list(kept)))
        found = [x for pattern in patterns for x in pattern.on_sphere()]
        for beside in cycle((False, True)):
            found += [x for pattern in patterns for x in pattern.zeros(beside)]
            self._found = before + self._images(face, found)
            if self._adds_up(list(kept)) or (beside and not any(pattern.goes_on for pattern in patterns)):
                break

    def _images(self, face: Face, found: list[FloatArray]) -> list[Zero]:
        """Zeros that were found in a face, with all their images."""
        places = map(face.embedded, found)
        return _with_images((Zero(q, jacobian_at(self._field, q)) for q in places), self._flips, self._orders)

    def _patterns(self, face: Face, kept: list[int]) -> Iterator[_Pattern]:
        """Searches of a face by signs of its overlaps; of those that symmetries map to each other one."""
        done: set[tuple[float, ...]] = set()
        for signs in product((1.0, -1.0), repeat=len(kept)):
            if signs not in done:
                orthant = face.embedded(np.array(signs))
                images = [orthant[order] for order in self._orders]
                done |= {tuple(image[kept].tolist()) for flip in self._flips for image in flip * images}
                at = np.array(signs)
                moved = [[order[k] for k in kept] for order in self._orders]
                alike = [[kept.index(k) for k in order] for order in moved if set(order) == set(kept)]
                exchanges = np.unique([order for order in alike if np.array_equal(at[order], at)], axis=0)
                partitions, beside = self._partitions(kept, at), self._beside(kept, at)
                yield _Pattern(face, at, self._powers[kept], partitions, beside, exchanges)

    def _beside(self, kept: list[int], signs: FloatArray) -> list[FloatArray]:
        """Points of an orthant next to zeros in which one of its overlaps vanishes: where others may branch off."""
        starts: dict[tuple[float, ...], FloatArray] = {}  # one of those that exchanges map to each other
        for zero in self._found:
            q = zero.q[kept]
            if np.count_nonzero(q) == np.count_nonzero(zero.q) == len(kept) - 1 and np.all(q * signs >= 0.0):
                raised = np.where(q == 0.0, 0.05 * signs, 0.99 * q)
                start = np.zeros(len(zero.q))
                start[kept] = raised
                starts[max(tuple(np.round(start[order], 6)) for order in self._orders)] = raised
        return list(starts.values())

    def _partitions(self, kept: list[int], signs: FloatArray) -> list[list[list[int]]]:
        """Partitions of the features of an orthant into those with one overlap, the coarsest first, up to exchanges."""
        images = np.array(self._orders)[:, kept]
        alike = [
            [j for j in range(len(kept)) if signs[j] == signs[i] and np.any(images[:, i] == kept[j])]
            for i in range(len(kept))
        ]
        groups = sorted({tuple(group) for group in alike})
        found = []
        for cut in product(*(_terms(len(group)) for group in groups)):
            pairs = zip(groups, cut, strict=True)
            found.append([list(part) for group, sizes in pairs for part in _cut(group, sizes)])
        return sorted(found, key=len)

    def _adds_up(self, kept: list[int]) -> bool:
        """Whether the indices of the zeros of a face add up to 1, or are no test: one is marginal or on the sphere."""
        left = np.setdiff1d(np.arange(self._field.features), kept)
        total = 0.0
        for zero in self._found:
            if np.any(zero.q[left]):
                continue
            rates = np.linalg.eigvals(zero.slope[np.ix_(kept, kept)])
            if np.abs(rates.real).min() <= RATE_RESOLUTION * self._size or np.linalg.norm(zero.q) > 1.0 - 1e-9:
                return True
            total += np.sign(np.linalg.det(-zero.slope[np.ix_(kept, kept)]))
        return total == 1.0


class _Pattern:
    """Search of the zeros of a face with overlaps of given signs, which goes on where it was left.

    Parameters
    ----------
    face : Face
    signs, powers : ndarray, shape (n,)
        See `Orthant`.
    partitions : list
        Partitions of the features into those with one overlap, which are searched in this order.
    beside : list of ndarray, shape (n,)
        Points next to zeros of smaller faces.
    exchanges : ndarray of int, shape (orders, n)
        Orders of the features that leave the field and the signs as they are.
    """

    def __init__(
        self,
        face: Face,
        signs: FloatArray,
        powers: FloatArray,
        partitions: list[list[list[int]]],
        beside: list[FloatArray],
        exchanges: IntArray,
    ) -> None:
        self._face, self._signs, self._exchanges = face, signs, exchanges
        self._searches: list[tuple[Coincident, Orthant]] = []
        for parts in partitions:
            plane = Coincident(face, parts)
            likely = beside if len(parts) == len(signs) else []
            self._searches.append((plane, Orthant(plane, signs[plane.first], powers[plane.first], likely)))
        self._at_rest = False

    @property
    def goes_on(self) -> bool:
        """Whether there are starts left."""
        return not all(search.exhausted for _, search in self._searches)

    def on_sphere(self) -> list[FloatArray]:
        """Zeros with |q| = 1."""
        face, signs = self._face, self._signs
        return [x for x in face.on_sphere(directions_of(face, signs)) if np.all(signs * x > SAME_ZERO)]

    def zeros(self, beside: bool) -> Iterator[FloatArray]:
        """Zeros that are new, those first in which features that may be exchanged have one overlap.

        Parameters
        ----------
        beside : bool
            Whether starts are those beside known zeros.
        """
        for plane, search in self._searches:
            for x in search.beside() if beside else search.zeros():
                q = self._face.polished(plane.expanded(x))
                isolated = q is not None and not self._face.in_continuum(q)
                self._leave_out(plane.expanded(x), isolated)
                if q is None or np.any(self._signs * q <= SAME_ZERO) or (self._at_rest and not isolated):
                    continue
                self._at_rest = self._at_rest or not isolated
                yield q

    def _leave_out(self, q: FloatArray, isolated: bool) -> None:
        """Leave out a zero and its images in all searches; of those of a continuum there may be any number."""
        images = np.unique(q[self._exchanges], axis=0)
        for plane, search in self._searches:
            reduced = plane.reduced(images)
            there = np.abs(plane.expanded(reduced) - images).max(axis=1) < SAME_ZERO
            search.leave_out(reduced[there], isolated)


def jacobian_at(field: VectorField, q: FloatArray) -> FloatArray:
    """Jacobian db/dq, shape (d1, d1), on the sphere by extrapolation from inside."""
    spacing = 1e-4  # of the points inside
    slope = field.jacobian(q)
    if np.linalg.norm(q) < 1.0 - spacing or (np.all(np.isfinite(slope)) and np.linalg.norm(q) < 1.0 - 1e-9):
        return slope
    near, middle, far = (field.jacobian((1.0 - k * spacing) * q) for k in (1, 2, 3))
    return 3.0 * near - 3.0 * middle + far


def _terms(n: int, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """Ways to write a number as a sum, terms in falling order."""
    if n == 0:
        yield ()
    for first in range(min(n, most or n), 0, -1):
        yield from ((first, *rest) for rest in _terms(n - first, first))


def _cut(group: Sequence[int], sizes: Sequence[int]) -> Iterator[Sequence[int]]:
    """Parts of a group of these sizes."""
    for last, size in zip(accumulate(sizes), sizes, strict=True):
        yield group[last - size : last]
