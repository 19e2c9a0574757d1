"""Density of nodes with three weights: triangles on a sphere that move along exact paths.

Averages are over the middles of triangles. Each triangle keeps its mass, and is seen on fixed cells by points between
its corners. Triangles become smaller until two runs agree.
"""

from __future__ import annotations

import numpy as np

from meanfield.families.latent_tree.many_nodes.carried import Carried
from meanfield.families.latent_tree.many_nodes.carried_density import follow
from meanfield.families.latent_tree.many_nodes.latents import SIGNS, Density, parts_of
from meanfield.families.latent_tree.many_nodes.triangles import Triangles, triangles_between
from meanfield.families.latent_tree.problem import Problem
from meanfield.numerics.sphere_cells import SphereCells
from meanfield.typing import FloatArray

FEWEST, MOST = 16, 256
"""Numbers of sides of triangles along a meridian, in the first run and the last."""

TRIANGLES_PER_CELL = 2
"""Number of triangles along each side of a fixed cell."""

POINTS_OF_TRIANGLE = 4
"""Points along each side of a triangle, by which its mass is seen."""


def carried_triangles(problem: Problem, count: int) -> tuple[Triangles, Carried]:
    """Triangles between gates, and nodes in their middles."""
    parts = parts_of(problem)
    inputs = parts[0]
    length = np.linalg.norm(inputs, axis=1)
    triangles = triangles_between(inputs[length > 0.0] / length[length > 0.0, None], np.pi / count)
    return triangles, Carried(*parts, triangles.middle, triangles.mass, triangles.length)


def on_sphere(problem: Problem) -> Density:
    """Density of a problem whose nodes have three weights.

    Errors are the differences of the two finest runs, of which that of the finer one is half or less: jumps of the
    paths, where nodes pass a corner of gates on one side or the other, leave an order between 1 and 2.
    """
    tolerance, count = problem.density.tolerance, FEWEST
    coarse, status = _run(problem, count)
    while True:
        count *= 2
        fine, status = _run(problem, count)
        error = np.abs(fine["Delta"] - coarse["Delta"])
        reached = np.isfinite(fine["Delta"])
        worst = float(np.max((error / np.maximum(np.abs(fine["Delta"]), 1.0))[reached & np.isfinite(error)]))
        if worst <= tolerance or 2 * count > MOST or status == "interrupted":
            break
        coarse = fine
    warning = ""
    if worst > tolerance:
        warning = (
            f"Delta differs by {worst:.2g} between {count // 2} and {count} triangles along a meridian, more than "
            f"density.tolerance = {tolerance:g}; raise the tolerance, or lower time.stop"
        )
    cells = _cells(count).coordinates()
    return Density("sphere_density", fine | cells | {"Delta_error": error}, status, warning)


def _cells(count: int) -> SphereCells:
    return SphereCells(max(1, count // TRIANGLES_PER_CELL))


def _run(problem: Problem, count: int) -> tuple[dict[str, FloatArray], str]:
    """Variables at the output times from so many triangles along a meridian, and the status."""
    triangles, nodes = carried_triangles(problem, count)
    cells = _cells(count)

    corners = nodes.starting(triangles.w)
    seen = 0.0

    def see(T: float) -> dict[str, FloatArray]:
        nonlocal corners, seen
        corners, seen = nodes.moved(corners, abs(T) - seen), abs(T)
        found = np.zeros((len(nodes.polarity) * len(SIGNS), *cells.shape))
        for number, w in zip(nodes.rows, np.split(corners.w, len(nodes.rows)), strict=True):
            found[number] = nodes.shares[number % len(SIGNS)] * _density(triangles, w, cells)
        return {"rho_on_sphere": found.reshape(-1, len(SIGNS), *cells.shape)}

    label = f"density, {count} triangles along a meridian"
    return follow(nodes, problem.time.outputs_at, label, see)


def _density(triangles: Triangles, w: FloatArray, cells: SphereCells) -> FloatArray:
    """Density on fixed cells of triangles with corners at w, shape (polar, azimuth)."""
    a, b, c = (w[triangles.corners[:, k]] for k in range(3))
    total, middle = np.zeros(cells.area.size), np.array([1.0, 2.0]) / 3.0
    for i, j in np.ndindex(POINTS_OF_TRIANGLE, POINTS_OF_TRIANGLE):
        if i + j >= POINTS_OF_TRIANGLE:
            continue
        for offset in middle if i + j < POINTS_OF_TRIANGLE - 1 else middle[:1]:
            x, y = (i + offset) / POINTS_OF_TRIANGLE, (j + offset) / POINTS_OF_TRIANGLE
            at = (1.0 - x - y) * a + x * b + y * c
            at /= np.maximum(np.linalg.norm(at, axis=1, keepdims=True), 1e-300)
            total += np.bincount(cells.numbers(at), triangles.mass / POINTS_OF_TRIANGLE**2, total.size)
    return np.asarray(total.reshape(cells.shape) / cells.area)
