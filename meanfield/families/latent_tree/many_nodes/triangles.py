"""Triangles on the sphere of directions of three weights, none of which goes across a gate.

Each gate cuts the sphere, and what is left are convex polygons. They are cut into triangles, which move with the nodes.
So a gate that pushes nodes away on both sides, as some do, tears no triangle apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from meanfield.typing import FloatArray, IntArray

OCTANTS = [np.diag(signs) for signs in product((1.0, -1.0), repeat=3)]
"""Triangles that cover the sphere, each a row per corner."""


@dataclass(frozen=True)
class Triangles:
    """Triangles that cover the sphere.

    Parameters
    ----------
    w : ndarray, shape (points, 3)
        Their corners, inside of the cone between gates to which they belong.
    corners : ndarray of int, shape (triangles, 3)
    mass : ndarray, shape (triangles,)
        Shares of the sphere, which add up to 1.
    moment : ndarray, shape (triangles, 3)
        Averages of w over triangles, times their shares.
    """

    w: FloatArray
    corners: IntArray
    mass: FloatArray
    moment: FloatArray

    @property
    def middle(self) -> FloatArray:
        """Directions of the averages of w over triangles, shape (triangles, 3)."""
        return _unit(self.moment)

    @property
    def length(self) -> FloatArray:
        """Weights of the middles that make sums exact for what is linear in each triangle, as slopes are at first."""
        return np.asarray(np.linalg.norm(self.moment, axis=1))


def triangles_between(normal: FloatArray, longest: float) -> Triangles:
    """Triangles between planes with some normals, with sides of about an angle at most.

    Parameters
    ----------
    normal : ndarray, shape (planes, 3)
    longest : float
    """
    w, corners, areas, moments, count = [], [], [], [], 0
    for polygon in _polygons(normal):
        middle = _unit(polygon.mean(axis=0))
        for first, second in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
            points, numbers = _divided(np.stack([middle, first, second]), longest)
            parts = tuple(points[numbers[:, k]] for k in range(3))
            w.append(_unit((1.0 - 1e-7) * points + 1e-7 * points.mean(axis=0)))  # corners are a little inside
            corners.append(numbers + count)
            areas.append(_areas(*parts))
            moments.append(_moments(*parts))
            count += len(points)
    area, moment = np.concatenate(areas), np.concatenate(moments)
    return Triangles(np.concatenate(w), np.concatenate(corners), area / area.sum(), moment / area.sum())


def _polygons(normal: FloatArray) -> list[FloatArray]:
    """Convex polygons into which planes cut the sphere, corners in order."""
    found = [np.asarray(octant) for octant in OCTANTS]
    for plane in normal:
        pieces = []
        for polygon in found:
            height = polygon @ plane
            height[np.abs(height) < 1e-12] = 0.0  # rounding
            if height.min() >= 0.0 or height.max() <= 0.0:
                pieces.append(polygon)
            else:
                pieces += [_part(polygon, height), _part(polygon, -height)]
        found = pieces
    return found


def _part(polygon: FloatArray, height: FloatArray) -> FloatArray:
    """The part of a polygon with height >= 0, where both signs occur."""
    corners = []
    for k in range(len(polygon)):
        j = (k + 1) % len(polygon)
        if height[k] >= 0.0:
            corners.append(polygon[k])
        if height[k] * height[j] < 0.0:
            corners.append(_unit(np.abs(height[j]) * polygon[k] + np.abs(height[k]) * polygon[j]))
    return np.array(corners)


def _divided(triangle: FloatArray, longest: float) -> tuple[FloatArray, IntArray]:
    """Corners of the parts of a triangle, each side of which is cut into as many, and their numbers."""
    sides = np.linalg.norm(triangle - np.roll(triangle, 1, axis=0), axis=1)
    n = max(1, int(np.ceil(sides.max() / longest)))
    i, j = (a.ravel() for a in np.indices((n + 1, n + 1)))
    inside = i + j <= n
    i, j = i[inside], j[inside]
    number = np.zeros((n + 1, n + 1), dtype=int)
    number[i, j] = np.arange(len(i))
    points = _unit(np.stack([n - i - j, i, j], axis=1) / n @ triangle)
    up, down = i + j < n, i + j < n - 1
    first = np.stack([number[i[up], j[up]], number[i[up] + 1, j[up]], number[i[up], j[up] + 1]], axis=1)
    i, j = i[down], j[down]
    second = np.stack([number[i + 1, j], number[i + 1, j + 1], number[i, j + 1]], axis=1)
    return points, np.concatenate([first, second])


def _areas(a: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    """Areas of triangles on the sphere, from half of their tangent."""
    volume = np.abs(np.sum(a * np.cross(b, c), axis=1))
    return np.asarray(
        2.0 * np.arctan2(volume, 1.0 + np.sum(a * b, axis=1) + np.sum(b * c, axis=1) + np.sum(c * a, axis=1))
    )


def _moments(a: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    """Integrals of w over triangles on the sphere: half of the angles of their sides times normals inwards."""
    total = np.zeros_like(a)
    for start, end, other in ((a, b, c), (b, c, a), (c, a, b)):
        across = np.cross(start, end)
        sine = np.linalg.norm(across, axis=1, keepdims=True)
        angle = np.arctan2(sine, np.sum(start * end, axis=1, keepdims=True))
        total += 0.5 * np.sign(np.sum(across * other, axis=1, keepdims=True)) * angle * across / sine
    return total


def _unit(w: FloatArray) -> FloatArray:
    return np.asarray(w / np.linalg.norm(w, axis=-1, keepdims=True))
