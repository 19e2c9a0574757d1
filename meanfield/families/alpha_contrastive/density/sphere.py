"""Density on the sphere whose cells move with the filters, seen on cells that do not.

The flow carries the corners of cells, each of which keeps its mass; a corner stands for a quarter of the cells around
it. Cells are seen on the fixed ones by points inside them. They are turned against the axes, so that no wall of data
that lie on the axes goes along their edges.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from meanfield.families.alpha_contrastive.density.carried import NO_WALL, Filters
from meanfield.families.alpha_contrastive.density.flows import Flow
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.numerics.sphere_cells import SphereCells
from meanfield.typing import FloatArray, IntArray

POINTS_OF_CELL = 6
"""Points along each direction of a cell, by which its mass is seen."""


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
        polar, azimuth = np.linspace(0.0, np.pi, cells + 1), np.linspace(-np.pi, np.pi, 2 * cells + 1)
        w = _on_sphere(*np.meshgrid(polar, azimuth[:-1], indexing="ij")).reshape(-1, 3) @ _turn().T
        mass = np.repeat(0.5 * -np.diff(np.cos(polar)) / (2 * cells), 2 * cells)
        self._corners = self._numbers()
        self.mass = mass / mass.sum()
        quarters = np.repeat(0.25 * self.mass, 4)
        self.weight: FloatArray = np.asarray(np.bincount(self._corners.ravel(), quarters, len(w)), dtype=float)
        side = np.where(w @ flow.normal.T >= flow.offset, 1.0, -1.0)
        self.filters = Filters(w, side, np.full((len(w), 2), NO_WALL))
        self._seen = SphereCells(max(1, cells // 4))  # 4 moved cells along each direction of a fixed one

    def _numbers(self) -> IntArray:
        """Numbers of the four corners of each cell, around it."""
        rows, columns = np.meshgrid(np.arange(self._shape[0]), np.arange(self._shape[1]), indexing="ij")
        following = (columns + 1) % self._shape[1]
        corners = [(rows, columns), (rows, following), (rows + 1, following), (rows + 1, columns)]
        return np.stack([(i * self._shape[1] + j).ravel() for i, j in corners], axis=1)

    def arrays(self, filters: Filters) -> dict[str, FloatArray]:
        """Density on the fixed cells, and moments."""
        area = self._seen.area
        total = np.zeros(area.size)
        share = (np.arange(POINTS_OF_CELL) + 0.5) / POINTS_OF_CELL
        a, b, c, d = (filters.w[self._corners[:, k]] for k in range(4))
        for x, y in product(share, share):
            w = (1 - y) * ((1 - x) * a + x * b) + y * ((1 - x) * d + x * c)
            w = w / np.maximum(np.linalg.norm(w, axis=1, keepdims=True), 1e-300)
            total += np.bincount(self._seen.numbers(w), self.mass / POINTS_OF_CELL**2, area.size)
        w = filters.w
        return {
            "rho_on_sphere": total.reshape(area.shape) / area,
            "mean": self.weight @ w,
            "second_moment": w.T @ (self.weight[:, None] * w),
        }

    def coordinates(self) -> dict[str, FloatArray]:
        """Angles of the fixed cells."""
        return self._seen.coordinates()


def _on_sphere(polar: FloatArray, azimuth: FloatArray) -> FloatArray:
    sine = np.sin(polar)
    return np.stack([sine * np.cos(azimuth), sine * np.sin(azimuth), np.cos(polar)], axis=-1)


def _turn() -> FloatArray:
    """Rotation by 0.7 about each axis, one after the other."""
    c, s = np.cos(0.7), np.sin(0.7)
    total = np.eye(3)
    for axis in range(3):
        i, j = (axis + 1) % 3, (axis + 2) % 3
        turn = np.eye(3)
        turn[i, i] = turn[j, j] = c
        turn[i, j], turn[j, i] = -s, s
        total = turn @ total
    return total
