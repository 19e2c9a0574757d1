"""Density of nodes with three weights: triangles on a sphere that move along exact paths.

Averages are over the middles of triangles. Each triangle keeps its mass, and is seen on fixed cells by points between
its corners. Triangles become smaller until two runs agree.

Each gate cuts the sphere, and what is left are convex polygons. They are cut into triangles, which move with the nodes.
So a gate that pushes nodes away on both sides, as some do, tears no triangle apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from meanfield.families.latent_tree.many_nodes.carried import Carried, Nodes
from meanfield.families.latent_tree.many_nodes.carried_density import on_cells
from meanfield.families.latent_tree.many_nodes.driven import advance
from meanfield.families.latent_tree.many_nodes.latents import (
    AXES,
    PROJECTIONS,
    SIGNS,
    Density,
    distribution_of,
    parts_of,
    projection_coordinates,
)
from meanfield.families.latent_tree.problem import Problem
from meanfield.numerics.sphere_cells import SphereCells
from meanfield.typing import FloatArray, IntArray

FEWEST, MOST = 16, 256
"""Numbers of sides of triangles along a meridian, in the first run and the last."""

TRIANGLES_PER_CELL = 2
"""Number of triangles along each side of a fixed cell."""

POINTS_OF_TRIANGLE = 4
"""Points along each side of a triangle, by which its mass is seen."""

OCTANTS = [np.diag(signs) for signs in product((1.0, -1.0), repeat=3)]
"""Triangles that cover the sphere, each a row per corner."""


def carried_triangles(problem: Problem, count: int) -> tuple[Triangles, Carried]:
    """Triangles between gates, and nodes in their middles."""
    parts = parts_of(problem)
    inputs = parts[0]
    length = np.linalg.norm(inputs, axis=1)
    triangles = triangles_between(inputs[length > 0.0] / length[length > 0.0, None], np.pi / count)
    return triangles, Carried(*parts, triangles.middle, triangles.mass, triangles.length)


def on_sphere(problem: Problem) -> Density:
    """Density of a problem whose nodes have three weights."""
    return on_cells(problem, "sphere_density", (FEWEST, MOST), partial(_run, problem), "triangles along a meridian")


def _run(problem: Problem, count: int) -> tuple[dict[str, FloatArray], str]:
    """Variables at the output times from so many triangles along a meridian, and the status."""
    triangles, nodes = carried_triangles(problem, count)
    cells = SphereCells(max(1, count // TRIANGLES_PER_CELL))

    def see(places: Nodes, corners: Nodes) -> dict[str, FloatArray]:
        rows = len(nodes.polarity) * len(SIGNS)
        rho, projected = np.zeros((rows, *cells.shape)), np.zeros((rows, AXES, len(PROJECTIONS)))
        for number, w in zip(nodes.rows, np.split(corners.w, len(nodes.rows)), strict=True):
            points, mass = _points(triangles, w)
            share = np.bincount(cells.numbers(points), mass, cells.area.size).reshape(cells.shape)
            rho[number] = nodes.shares[number % len(SIGNS)] * share / cells.area
            projected[number] = distribution_of(points, mass)
        found = {"rho_on_sphere": rho, "projected": projected}
        return {name: values.reshape(-1, len(SIGNS), *values.shape[1:]) for name, values in found.items()}

    label = f"density, {count} triangles along a meridian"
    found, status = advance(problem, nodes, nodes.starting(triangles.w), FEWEST / count, label, see)
    return found | cells.coordinates() | projection_coordinates(3), status


def _points(triangles: Triangles, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points inside of triangles with corners at w, by which their mass is seen, and what each has of it."""
    a, b, c = (w[triangles.corners[:, k]] for k in range(3))
    points = []
    middle = np.array([1.0, 2.0]) / 3.0
    for i, j in np.ndindex(POINTS_OF_TRIANGLE, POINTS_OF_TRIANGLE):
        if i + j >= POINTS_OF_TRIANGLE:
            continue
        for offset in middle if i + j < POINTS_OF_TRIANGLE - 1 else middle[:1]:
            x, y = (i + offset) / POINTS_OF_TRIANGLE, (j + offset) / POINTS_OF_TRIANGLE
            at = (1.0 - x - y) * a + x * b + y * c
            points.append(at / np.maximum(np.linalg.norm(at, axis=1, keepdims=True), 1e-300))
    mass = triangles.mass / POINTS_OF_TRIANGLE**2
    return np.concatenate(points), np.tile(mass, len(points))


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
    """
    w = []
    corners = []
    areas = []
    moments = []
    count = 0
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
