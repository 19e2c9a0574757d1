"""All zeros of the vector field b(q) in the closed unit ball, face by face.

Where features that are not there stay away, each face in which some overlaps vanish is invariant, and searched by
itself for zeros with all its overlaps; of faces and orthants that symmetries map to each other one is. On the sphere of
every face b points inwards, so that the indices sign det(-db/dq) of all zeros in it add up to 1 (Poincare and Hopf).
Features that depend on each other, or have a mean, are lasting: they are kept in every face, and have either sign.

Where features that are not there stay away, b_k = q_k r_k, and zeros with all overlaps of one sign pattern are those of
the relative growth rates r_k: zeros in smaller faces, of which there are many, do not attract Newton's method there.
Where features may be flipped, r is a function of the similarities u_k = q_k^2, for a quadratic activation a polynomial
of low degree, near q = 0 for any a linear function, so that few starts suffice: beside zeros of smaller faces, from
which others branch off, on the axis of symmetry, and scattered ones in the order of their rates, some of them next to
the sphere, within 1e-3 of which zeros may lie, and beside zeros with a rate that almost vanishes. Many zeros are left
as they are by symmetries, also such as few starts lead to; the planes of these have fewer variables, and are searched
first. The zeros that were found are deflated. Where indices say that one is missing, starts all over these planes, and
then over the face, are tried without deflation, which many zeros make a hindrance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from meanfield.families.contrastive.fixed_points.planes import Plane, Search, directions_of
from meanfield.families.contrastive.fixed_points.search import MOST_GRID_FEATURES, Face
from meanfield.families.contrastive.fixed_points.symmetries import (
    SAME_ZERO,
    copies,
    distinct,
    exchanges,
    invariant_planes,
    is_reflected,
    lasting,
    symmetries_of,
)
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.numerics.growth_rates import RATE_RESOLUTION
from meanfield.typing import FloatArray

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
    if is_reflected(flips) or d1 > MOST_GRID_FEATURES or (d1 > BY_CELLS and not lasting(field)):
        return _Faces(field, flips, size).zeros(fineness)
    found = [Zero(q, jacobian_at(field, q)) for q in Face(field, tuple(range(d1)), size).zeros(False, fineness)]
    return _with_images(found, flips, [list(range(d1))])


def indices_add_up(zeros: Iterable[Zero], kept: list[int], size: float) -> bool:
    """Whether the indices of all zeros of a face add up to 1, or are no test: one is marginal or on the sphere."""
    total = 0.0
    for q, slope in zeros:
        inner = slope[np.ix_(kept, kept)]
        if np.abs(np.linalg.eigvals(inner).real).min() <= RATE_RESOLUTION * size or np.linalg.norm(q) > 1.0 - 1e-9:
            return True
        total += np.sign(np.linalg.det(-inner))
    return total == 1.0


def _with_images(zeros: Iterable[Zero], flips: FloatArray, orders: list[list[int]]) -> list[Zero]:
    """Zeros with their images under exchanges and flips, each once; minors of Jacobians stay under flips."""
    moved = [Zero(q[order], slope[np.ix_(order, order)]) for q, slope in zeros for order in orders]
    apart = [moved[i] for i in distinct([zero.q for zero in moved])]
    images = [Zero(image, zero.slope) for zero in apart for image in copies(zero.q, flips)]
    return [images[i] for i in distinct([zero.q for zero in images])]


PATIENCE = {False: 256, True: 1000}
"""Starts without deflation in a row that bring nothing new before a plane is left, and before the whole face is. In a
plane of three dimensions, of five equal features with a mean, the first start that led to a missing state was the 201st
one."""


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
        self._lasting = lasting(field)
        self._powers = np.where(alone, 2.0, 1.0)
        self._powers[self._lasting] = 0.0
        self._found: list[Zero] = []

    def zeros(self, fineness: int) -> list[Zero]:
        """All zeros, each once."""
        d1 = self._field.features
        if not self._lasting:
            origin = np.zeros(d1)
            self._found = [Zero(origin, jacobian_at(self._field, origin))]
        searched: set[tuple[int, ...]] = set()
        for dimensions in range(1, d1 + 1):
            for kept in combinations(range(d1), dimensions):
                if kept not in searched and set(kept) >= set(self._lasting):
                    searched |= {tuple(sorted(order.index(k) for k in kept)) for order in self._orders}
                    self._search(list(kept), fineness)
        return self._found

    def _search(self, kept: list[int], fineness: int) -> None:
        """Add the zeros of one face, and of its images."""
        face = Face(self._field, tuple(kept), self._size)
        if self._field.features <= BY_CELLS or len(kept) == 1:
            found = [x for x in face.zeros(self._reflected, fineness) if self._lasting or np.all(np.abs(x) > SAME_ZERO)]
            self._found = self._found + self._images(face, found)
            return
        orthants = list(self._orthants(kept))
        patterns = [self._pattern(face, kept, signs) for signs in orthants]
        whole = [signs for signs in orthants if np.all(signs)]
        on_sphere = [(x, signs) for signs in whole for x in face.on_sphere(directions_of(face, signs))]
        self._go_through(face, kept, patterns, [x for x, signs in on_sphere if np.all(signs * x > SAME_ZERO)])

    def _go_through(self, face: Face, kept: list[int], patterns: list[_Pattern], found: list[FloatArray]) -> None:
        """Add the zeros that searches find in a face, and others found there, with all their images."""
        found += [x for pattern in patterns for x in pattern.zeros()]
        self._found = self._found + self._images(face, found)
        if indices_add_up(self._inside(kept), kept, self._size):
            return
        bases = {basis.tobytes(): basis for pattern in patterns for basis in pattern.bases}
        planes = [Plane(face, basis, np.zeros(basis.shape[1])) for basis in [*bases.values(), np.eye(len(kept))]]
        planes.sort(key=lambda plane: plane.dimensions)
        searches = [Search(plane, patience=PATIENCE[plane.dimensions == len(kept)], deflated=False) for plane in planes]
        pattern = _Pattern(face, symmetries_of(kept, self._orders, self._flips), searches)
        for zero in self._inside(kept):
            pattern.leave_out(zero.q[kept], isolated=True)
        for x in pattern.zeros():
            self._found = self._found + self._images(face, [x])
            if indices_add_up(self._inside(kept), kept, self._size):
                return

    def _inside(self, kept: list[int]) -> list[Zero]:
        """The zeros that are known in a face, those of smaller ones included."""
        left = np.setdiff1d(np.arange(self._field.features), kept)
        return [zero for zero in self._found if not np.any(zero.q[left])]

    def _images(self, face: Face, found: list[FloatArray]) -> list[Zero]:
        """Zeros that were found in a face, with all their images."""
        places = map(face.embedded, found)
        return _with_images((Zero(q, jacobian_at(self._field, q)) for q in places), self._flips, self._orders)

    def _orthants(self, kept: list[int]) -> Iterator[FloatArray]:
        """Signs of the overlaps of a face, 0 for lasting ones; of those that symmetries map to each other one."""
        done: set[tuple[float, ...]] = set()
        for signs in product(*((0.0,) if k in self._lasting else (1.0, -1.0) for k in kept)):
            if signs not in done:
                orthant = np.zeros(self._field.features)
                orthant[kept] = signs
                images = [orthant[order] for order in self._orders]
                done |= {tuple(image[kept].tolist()) for flip in self._flips for image in flip * images}
                yield np.array(signs)

    def _pattern(self, face: Face, kept: list[int], signs: FloatArray) -> _Pattern:
        """Search of the zeros of a face with overlaps of these signs."""
        group = symmetries_of(kept, self._orders, self._flips, signs)
        searches = []
        for basis in invariant_planes(group):
            powers = self._powers[kept][np.abs(basis).argmax(axis=0)]
            likely = [] if np.any(signs) else [np.zeros(len(kept))]
            if len(basis.T) == len(kept):
                likely += self._beside(kept, signs)
            upright = basis * np.where(signs @ basis < 0.0, -1.0, 1.0)
            searches.append(Search(Plane(face, upright, powers), likely))
        return _Pattern(face, group, searches)

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


class _Pattern:
    """Searches of a face, or of an orthant of it, in planes that symmetries leave as they are, which go on.

    Parameters
    ----------
    face : Face
    group : ndarray, shape (symmetries, n, n)
        Symmetries of the field that leave the face and the orthant as they are.
    searches : list of Search
        Searches in the order in which they are gone through.
    """

    def __init__(self, face: Face, group: FloatArray, searches: list[Search]) -> None:
        self._face, self._group, self._searches = face, group, searches
        self._at_rest = False

    @property
    def bases(self) -> list[FloatArray]:
        """Bases of the planes between lines and the whole face, the first entry of each vector positive."""
        found = [search.plane.basis for search in self._searches]
        firsts = [basis[np.abs(basis).argmax(axis=0), range(basis.shape[1])] for basis in found]
        between = [1 < basis.shape[1] < len(basis) for basis in found]
        return [basis * np.sign(first) for basis, first, kept in zip(found, firsts, between, strict=True) if kept]

    def zeros(self) -> Iterator[FloatArray]:
        """Zeros that are new, those of the most symmetric planes first."""
        for search in self._searches:
            for x in search.zeros():
                q = self._face.polished(x)
                isolated = q is not None and not self._face.in_continuum(q)
                self.leave_out(x, isolated, self._face.equations(x)[1] if isolated else None)
                if q is not None and (isolated or not self._at_rest):
                    self._at_rest = self._at_rest or not isolated
                    yield q

    def leave_out(self, q: FloatArray, isolated: bool, slope: FloatArray | None = None) -> None:
        """Leave out a zero and its images in all searches; of those of a continuum there may be any number.

        With the Jacobian at the zero, which the images share but for their order, others are tried beside it.
        """
        images = np.unique(np.round(self._group @ q, 12), axis=0)
        for search in self._searches:
            search.leave_out(images, isolated)
            if slope is not None:
                search.try_beside(q, slope)


def jacobian_at(field: VectorField, q: FloatArray) -> FloatArray:
    """Jacobian db/dq, shape (d1, d1), on the sphere by extrapolation from inside."""
    spacing = 1e-4  # of the points inside
    slope = field.jacobian(q)
    if np.linalg.norm(q) < 1.0 - spacing or (np.all(np.isfinite(slope)) and np.linalg.norm(q) < 1.0 - 1e-9):
        return slope
    near, middle, far = (field.jacobian((1.0 - k * spacing) * q) for k in (1, 2, 3))
    return 3.0 * near - 3.0 * middle + far
