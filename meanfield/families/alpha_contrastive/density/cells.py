"""Cells of the circle and the sphere that move with filters, and their masses as seen on fixed cells.

On the circle the flow carries the edges of cells, so that each keeps its mass. Where the field jumps there are two
edges at first, one for each side; between them a gap without filters may open.

On the sphere it carries the corners of cells, each of which keeps its mass; a corner stands for a quarter of the cells
around it. Cells are seen on the fixed ones by points inside them. They are turned against the axes, so that no wall of
data that lie on the axes goes along their edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from meanfield.families.alpha_contrastive.density.carried import NO_WALL, CarriedFilters
from meanfield.families.alpha_contrastive.density.flows import Flow, on_sides
from meanfield.families.alpha_contrastive.density.grid import TURN, Grid, make_grid
from meanfield.families.alpha_contrastive.filters import FourierStart
from meanfield.families.alpha_contrastive.initial_state import SphereLaw
from meanfield.families.alpha_contrastive.limit.circle import on_circle, walls_of
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.moments import HARMONICS
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.numerics.sphere_cells import SphereCells
from meanfield.typing import BoolArray, FloatArray, IntArray

DISORDER = 0.05
"""Largest angle by which edges overtake each other, as errors of steps let them where they gather."""

BESIDE_WALL = 1e-9
"""Angle by which both sides of a wall are apart from it."""

POINTS_OF_CELL = 6
"""Points along each direction of a cell, by which its mass is seen."""


class CircleCells:
    """Cells of the circle that move with filters.

    Parameters
    ----------
    problem : Problem
    flow : CoupledFlow or MixtureFlow
    cells : int
        About their number.
    """

    def __init__(self, problem: Problem, flow: Flow, cells: int) -> None:
        walls = np.unique(np.mod(_angles_of_walls(flow) + np.pi, TURN)) - np.pi
        walls = walls[np.diff(walls, append=walls[:1] + TURN) > BESIDE_WALL]
        ends = np.append(walls, walls[0] + TURN) if len(walls) else np.array([-np.pi, np.pi])
        counts = np.maximum(1, np.round(np.diff(ends) * cells / TURN)).astype(int)
        arcs = [np.linspace(low, high, n + 1) for low, high, n in zip(ends[:-1], ends[1:], counts, strict=True)]
        middle = np.repeat(0.5 * (ends[1:] + ends[:-1]), counts + 1)
        angle = np.concatenate(arcs)
        gaps = np.cumsum(counts + 1)[:-1] - 1
        self.mass: FloatArray = masses(problem, angle)
        self.mass[gaps] = 0.0
        self.mass /= self.mass.sum()
        self.weight: FloatArray = 0.5 * (np.append(self.mass, 0.0) + np.append(0.0, self.mass))
        side = on_sides(flow, _embedded(middle)).side
        self.filters = CarriedFilters(_embedded(angle), side, np.full((len(angle), 2), NO_WALL))
        self.grid = make_grid(walls, self._attracting(flow, walls), cells)

    def _attracting(self, flow: Flow, walls: FloatArray) -> BoolArray:
        """Walls to which the field points from both sides."""
        L, pushes = flow.laplacian(self.filters, self.weight), []
        for step in (-BESIDE_WALL, BESIDE_WALL):
            w = _embedded(walls + step)
            force, _ = flow.forces(w, on_sides(flow, w).side, (L, L), np.zeros(len(w)))
            pushes.append(force[:, 1] * w[:, 0] - force[:, 0] * w[:, 1])
        return (pushes[0] > 0.0) & (pushes[1] < 0.0)

    def edges(self, filters: CarriedFilters) -> FloatArray:
        """Increasing angles of the edges."""
        angle = np.arctan2(filters.w[:, 1], filters.w[:, 0])
        width = np.mod(np.diff(angle) + DISORDER, TURN) - DISORDER
        gap = np.mod(angle[0] - angle[-1] + DISORDER, TURN) - DISORDER
        if width.sum() + gap < 0.5 * TURN:  # one cell covers the circle, and all others a point
            width[width.argmin()] += TURN
        return np.asarray(angle[0] + np.append(0.0, np.cumsum(np.maximum(width, 0.0))))

    def arrays(self, filters: CarriedFilters) -> dict[str, FloatArray]:
        """Density on the cells of the grid, and its moments."""
        edges = self.edges(filters)
        total = np.append(0.0, np.cumsum(self.mass))
        known = np.concatenate([edges - TURN, edges, edges + TURN])
        inside = np.interp(self.grid.edges, known, np.concatenate([total - 1.0, total, total + 1.0]))
        k = HARMONICS
        phase = np.outer(0.5 * (edges[1:] + edges[:-1]), k)
        half = np.outer(0.5 * np.diff(edges), k)
        damped = self.mass[:, None] * np.sinc(half / np.pi)
        return {
            "rho": np.diff(inside) / self.grid.width,
            "moment_cos": np.sum(damped * np.cos(phase), axis=0),
            "moment_sin": np.sum(damped * np.sin(phase), axis=0),
        }

    def coordinates(self) -> dict[str, FloatArray]:
        """Angles of the grid, and the orders of moments."""
        return {**angles_of(self.grid), "harmonic": HARMONICS}


def angles_of(grid: Grid) -> dict[str, FloatArray]:
    """Coordinate of a grid."""
    return {"angle": grid.nodes, "angle_bnds": np.stack([grid.edges[:-1], grid.edges[1:]], axis=1)}


def _embedded(angle: FloatArray) -> FloatArray:
    """Filters on the equator of a sphere."""
    return np.pad(on_circle(angle), ((0, 0), (0, 1)))


def _angles_of_walls(flow: Flow) -> FloatArray:
    if not isinstance(flow.field, DiscreteField):
        return np.empty(0)
    return walls_of(flow.field.atoms, flow.field.filter.kinks)


def masses(problem: Problem, edges: FloatArray) -> FloatArray:
    """Masses between angles, shape (edges - 1,)."""
    start = problem.filters.start
    if problem.initial is not None:
        return problem.initial.atoms.on_circle.masses(edges)
    if isinstance(start, FourierStart):
        return np.maximum(np.diff(start.distribution(edges)), 0.0)
    return np.diff(edges) / (2.0 * np.pi)


class MovedCells:
    """Cells of the sphere that move with filters.

    Parameters
    ----------
    problem : Problem
    flow : CoupledFlow or MixtureFlow
    cells : int
        Along a meridian; twice as many go around.
    """

    def __init__(self, problem: Problem, flow: Flow, cells: int) -> None:
        self._shape = cells, 2 * cells
        polar = np.linspace(0.0, np.pi, cells + 1)
        azimuth = np.linspace(-np.pi, np.pi, 2 * cells + 1)
        w = on_sphere(*np.meshgrid(polar, azimuth[:-1], indexing="ij")).reshape(-1, 3) @ turn().T
        mass = np.repeat(0.5 * -np.diff(np.cos(polar)) / (2 * cells), 2 * cells)
        self._corners = self._numbers()
        law = None if problem.initial is None else problem.initial.atoms.law
        if isinstance(law, SphereLaw):
            mass *= np.mean([law.density(points) for points in self._points(w)], axis=0)
        self.mass = mass / mass.sum()
        quarters = np.repeat(0.25 * self.mass, 4)
        self.weight: FloatArray = np.asarray(np.bincount(self._corners.ravel(), quarters, len(w)), dtype=float)
        self.filters = on_sides(flow, w)
        self._seen = SphereCells(max(1, cells // 4))  # 4 moved cells along each direction of a fixed one

    def _numbers(self) -> IntArray:
        """Numbers of the four corners of each cell, around it."""
        rows, columns = np.meshgrid(np.arange(self._shape[0]), np.arange(self._shape[1]), indexing="ij")
        following = (columns + 1) % self._shape[1]
        corners = [(rows, columns), (rows, following), (rows + 1, following), (rows + 1, columns)]
        return np.stack([(i * self._shape[1] + j).ravel() for i, j in corners], axis=1)

    def arrays(self, filters: CarriedFilters) -> dict[str, FloatArray]:
        """Density on the fixed cells, and moments."""
        area = self._seen.area
        total = np.zeros(area.size)
        for points in self._points(filters.w):
            total += np.bincount(self._seen.numbers(points), self.mass / POINTS_OF_CELL**2, area.size)
        w = filters.w
        return {
            "rho_on_sphere": total.reshape(area.shape) / area,
            "mean": self.weight @ w,
            "second_moment": w.T @ (self.weight[:, None] * w),
        }

    def _points(self, w: FloatArray) -> Iterator[FloatArray]:
        """Points inside all cells with corners at some places: one of each after the other, shape (cells, 3)."""
        share = (np.arange(POINTS_OF_CELL) + 0.5) / POINTS_OF_CELL
        a, b, c, d = (w[self._corners[:, k]] for k in range(4))
        for x, y in product(share, share):
            inside = (1 - y) * ((1 - x) * a + x * b) + y * ((1 - x) * d + x * c)
            yield inside / np.maximum(np.linalg.norm(inside, axis=1, keepdims=True), 1e-300)

    def coordinates(self) -> dict[str, FloatArray]:
        """Angles of the fixed cells."""
        return self._seen.coordinates()


def on_sphere(polar: FloatArray, azimuth: FloatArray) -> FloatArray:
    """Points with polar angles and azimuths, shape (..., 3)."""
    sine = np.sin(polar)
    return np.stack([sine * np.cos(azimuth), sine * np.sin(azimuth), np.cos(polar)], axis=-1)


def turn() -> FloatArray:
    """Rotation by 0.7 about each axis, one after the other."""
    c, s = np.cos(0.7), np.sin(0.7)
    total = np.eye(3)
    for axis in range(3):
        i, j = (axis + 1) % 3, (axis + 2) % 3
        one = np.eye(3)
        one[i, i] = one[j, j] = c
        one[i, j], one[j, i] = -s, s
        total = one @ total
    return total
