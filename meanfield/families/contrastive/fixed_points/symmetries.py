"""Symmetries of the vector field b(q), found on the field itself: flips and exchanges of features, and invariant faces.

A feature whose hidden variable is independent of the others and has a symmetric law may be flipped by itself; features
with the same law may be exchanged; and where c_k is independent of the others, <c_k D(s1 s2)> vanishes with q_k, so
that features that are not there stay away, whatever their laws.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, permutations, product

import numpy as np

from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.typing import FloatArray

SAME_ZERO = 1e-6
"""Distance below which two zeros are one."""


class Probe:
    """The field at three points of no symmetry, to compare with its images.

    Parameters
    ----------
    field : VectorField
    """

    def __init__(self, field: VectorField) -> None:
        points = np.random.default_rng(0).normal(size=(3, field.features))
        self._points = points * np.array([[0.3], [0.6], [0.9]]) / np.linalg.norm(points, axis=1, keepdims=True)
        self._field, self._values = field, field(self._points)
        # a thousand times the rounding of averages
        self._allowed = 1e-9 * max(float(np.abs(self._values).max()), np.finfo(float).tiny)

    def commutes(self, image: Callable[[FloatArray], FloatArray]) -> bool:
        """Whether b(T q) = T b(q) for a map T of rows."""
        return bool(np.abs(self._field(image(self._points)) - image(self._values)).max() <= self._allowed)

    def stays_away(self, feature: int) -> bool:
        """Whether b_k vanishes with q_k."""
        points = self._points.copy()
        points[:, feature] = 0.0
        return bool(np.abs(self._field(points)[:, feature]).max() <= self._allowed)


def sign_symmetries(field: VectorField) -> FloatArray:
    """All sign flips S with b(S q) = S b(q).

    Returns
    -------
    ndarray, shape (flips, d1)
        Flips in rows, the identity first; 2^d1 of them if every feature may be flipped by itself, which holds for
        independent features with symmetric laws. With an even activation and even noise -1 is among them always.
    """
    probe, d1 = Probe(field), field.features
    alone = [k for k in range(d1) if probe.commutes(lambda x, k=k: x * (1.0 - 2.0 * np.eye(d1)[k]))]  # type: ignore[misc]
    others = [k for k in range(d1) if k not in alone]
    flips, rest = np.array(list(product((1.0, -1.0), repeat=d1))), {}
    for signs in product((1.0, -1.0), repeat=len(others)):  # of the others, which may be flipped together
        together = np.ones(d1)
        together[others] = signs
        rest[signs] = not np.any(together < 0) or probe.commutes(lambda x, flip=together: x * flip)  # type: ignore[misc]
    return np.asarray(flips[[rest[tuple(flip[others])] for flip in flips]])


def is_reflected(flips: FloatArray) -> bool:
    """Whether every feature may be flipped by itself, so that one orthant of the ball tells all."""
    return flips.shape == (2 ** flips.shape[1], flips.shape[1])


def lasting(field: VectorField) -> list[int]:
    """Features whose overlaps do not stay away where they vanish: those with a mean, or that depend on others.

    Without any every face in which some overlaps vanish is invariant.
    """
    probe = Probe(field)
    return [k for k in range(field.features) if not probe.stays_away(k)]


def exchanges(field: VectorField) -> list[list[int]]:
    """All permutations P of features with b(P q) = P b(q) that exchanges of two features make, the identity first."""
    probe, d1 = Probe(field), field.features
    classes = list(range(d1))  # the first feature that each may be exchanged with
    for i, j in combinations(range(d1), 2):
        swapped = np.arange(d1)
        swapped[[i, j]] = j, i
        if classes[j] == j and classes[i] == i and probe.commutes(lambda x, order=swapped: x[:, order]):  # type: ignore[misc]
            classes[j] = i
    members = [[k for k in range(d1) if classes[k] == first] for first in sorted(set(classes))]
    orders = []
    for images in product(*(permutations(each) for each in members)):
        order = [0] * d1
        for places, image in zip(members, images, strict=True):
            for place, k in zip(places, image, strict=True):
                order[place] = k
        orders.append(order)
    return orders


def symmetries_of(
    kept: list[int], orders: list[list[int]], flips: FloatArray, signs: FloatArray | None = None
) -> FloatArray:
    """Exchanges with flips that leave a face as it is, and an orthant of it where its signs are given.

    Parameters
    ----------
    kept : list of int
        Features whose overlaps do not vanish in the face.
    signs : ndarray, shape (n,), optional
        0 for overlaps of either sign.

    Returns
    -------
    ndarray, shape (symmetries, n, n)
        Orthogonal matrices that act on the overlaps of the face.
    """
    places = {tuple(kept.index(order[k]) for k in kept) for order in orders if {order[k] for k in kept} == set(kept)}
    allowed, unit, found = np.unique(flips[:, kept], axis=0), np.eye(len(kept)), []
    for place in map(list, sorted(places)):
        wanted = allowed if signs is None else allowed[np.all(allowed * signs[place] == signs, axis=1)]
        found += [flip[:, None] * unit[place] for flip in wanted]
    return np.array(found)


def invariant_planes(group: FloatArray) -> list[FloatArray]:
    """Planes whose points a symmetry leaves where they are: a field is along them there.

    Parameters
    ----------
    group : ndarray, shape (symmetries, n, n)
        Group of exchanges with flips.

    Returns
    -------
    list of ndarray, shape (n, dimensions)
        Orthonormal bases, of the smallest planes first; of planes that the group maps to each other one.
    """
    planes: list[FloatArray] = []
    known: set[bytes] = set()
    for symmetry in group:
        basis = _fixed_by(symmetry)
        if basis.size and _rounded(projector := basis @ basis.T).tobytes() not in known:
            known |= {image.tobytes() for image in _rounded(group @ projector @ group.transpose(0, 2, 1))}
            planes.append(basis)
    return sorted(planes, key=lambda basis: len(basis.T))


def _rounded(projectors: FloatArray) -> FloatArray:
    return np.asarray(np.round(projectors, 9) + 0.0)  # without the sign of zero


def _fixed_by(symmetry: FloatArray) -> FloatArray:
    """Orthonormal basis of the points that one exchange with flips leaves where they are: means over its orbits."""
    columns: list[FloatArray] = []
    for start in np.eye(len(symmetry)):
        orbit = [start]
        while not np.array_equal(np.abs(image := symmetry @ orbit[-1]), start):
            orbit.append(image)
        column = np.sum(orbit, axis=0) / np.sqrt(len(orbit))
        if np.array_equal(image, start) and not any(np.any(column * other) for other in columns):
            columns.append(column)
    return np.array(columns).reshape(-1, len(symmetry)).T


def copies(q: FloatArray, flips: FloatArray) -> list[FloatArray]:
    """Point and its images under the flips, each once, shape (d1,), in order."""
    images = np.unique(flips * q + 0.0, axis=0)
    return list(images)


def distinct(points: list[FloatArray]) -> list[int]:
    """Indices of points without those that lie closer to an earlier one than zeros do."""
    places = np.array(points)
    kept: list[int] = []
    for i, x in enumerate(places):
        if not np.any(np.linalg.norm(places[kept] - x, axis=1) < SAME_ZERO):
            kept.append(i)
    return kept
