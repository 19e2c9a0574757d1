"""Cells of the unit sphere between circles of latitude and meridians, on which densities are averaged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.typing import FloatArray, IntArray


@dataclass(frozen=True)
class SphereCells:
    """Cells with the same width in both angles.

    Parameters
    ----------
    count : int
        Along a meridian; twice as many go around.
    """

    count: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of cells by polar angle and by azimuth."""
        return self.count, 2 * self.count

    @property
    def area(self) -> FloatArray:
        """Areas of cells, shape (polar, azimuth)."""
        polar = np.linspace(0.0, np.pi, self.count + 1)
        return np.outer(-np.diff(np.cos(polar)), np.full(2 * self.count, np.pi / self.count))

    def numbers(self, w: FloatArray) -> IntArray:
        """Number of the cell of each point, row by row, shape (points,)."""
        row = np.minimum((np.arccos(np.clip(w[:, 2], -1.0, 1.0)) * self.count / np.pi).astype(int), self.count - 1)
        column = ((np.arctan2(w[:, 1], w[:, 0]) + np.pi) * self.count / np.pi).astype(int) % (2 * self.count)
        return np.asarray(row * 2 * self.count + column)

    def coordinates(self) -> dict[str, FloatArray]:
        """Angles of middles and edges of cells, by the names `polar` and `azimuth`."""
        found = {}
        for name, low, high, count in (("polar", 0.0, np.pi, self.count), ("azimuth", -np.pi, np.pi, 2 * self.count)):
            edges = np.linspace(low, high, count + 1)
            found[name] = 0.5 * (edges[1:] + edges[:-1])
            found[f"{name}_bnds"] = np.stack([edges[:-1], edges[1:]], axis=1)
        return found
