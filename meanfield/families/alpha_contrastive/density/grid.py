"""Cells of the circle that know its walls.

Filters gather at a wall that attracts, so that a cell has its node there: their mass has its place exactly. A wall that
filters cross, or leave, is a face between cells, as their velocity jumps there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.typing import BoolArray, FloatArray

TURN = 2.0 * np.pi


@dataclass(frozen=True)
class Grid:
    """Cells of the circle.

    Parameters
    ----------
    nodes : ndarray, shape (cells,)
        Increasing angles, one in each cell.
    edges : ndarray, shape (cells + 1,)
        Faces of the cells; the last is the first, a turn further.
    breaks : ndarray of bool, shape (cells,)
        Whether the left face of a cell is a wall.
    """

    nodes: FloatArray
    edges: FloatArray
    breaks: BoolArray

    @property
    def width(self) -> FloatArray:
        """Widths of the cells."""
        return np.diff(self.edges)


def make_grid(walls: FloatArray, attracting: BoolArray, cells: int) -> Grid:
    """Grid of about so many cells, evenly spaced between walls.

    Parameters
    ----------
    walls : ndarray
        Angles.
    attracting : ndarray of bool
        Which of them are nodes; the others are faces.
    cells : int
    """
    width = TURN / cells
    kept = _apart(walls, attracting, 0.6 * width)  # of two closer walls the later one is left out
    if not kept:
        kept = [(-np.pi, False)]
    following = [*kept[1:], (kept[0][0] + TURN, kept[0][1])]
    arcs = [_faces(*here, *there, width) for here, there in zip(kept, following, strict=True)]
    faces = np.concatenate(arcs)
    breaks = np.concatenate(
        [(np.arange(len(arc)) == 0) & (not is_node) for arc, (_, is_node) in zip(arcs, kept, strict=True)]
    )
    breaks &= len(walls) > 0
    edges = np.append(faces, faces[0] + TURN)
    nodes = 0.5 * (edges[1:] + edges[:-1])
    for angle, is_node in kept:
        if is_node:
            cell = int(np.searchsorted(edges, edges[0] + np.mod(angle - edges[0], TURN), side="right")) - 1
            nodes[cell] = edges[0] + np.mod(angle - edges[0], TURN)
    first = int(np.count_nonzero(nodes > np.pi))  # cells beyond pi come first, a turn less
    order = np.roll(np.arange(len(nodes)), first)
    shift = np.where(order >= len(nodes) - first, TURN, 0.0)
    low = edges[:-1][order] - shift
    return Grid(nodes[order] - shift, np.append(low, low[0] + TURN), breaks[order])


def _faces(start: float, from_node: bool, end: float, to_node: bool, width: float) -> FloatArray:
    """Faces of evenly spaced cells from one wall on, up to the next."""
    half = 0.5 * (from_node != to_node)
    count = max(1, round((end - start) / width - half))
    h = (end - start) / (count + half)
    if from_node:
        return np.asarray(start + h * (0.5 + np.arange(count)), dtype=float)
    return np.asarray(start + h * np.arange(count + (1 if to_node else 0)), dtype=float)


def _apart(walls: FloatArray, attracting: BoolArray, least: float) -> list[tuple[float, bool]]:
    """Walls in [-pi, pi) of which no two are closer than `least`, those that attract chosen first."""
    angles = np.mod(walls + np.pi, TURN) - np.pi
    kept: list[tuple[float, bool]] = []
    for k in np.argsort(~attracting, kind="stable"):
        distance = [abs((angles[k] - other + np.pi) % TURN - np.pi) for other, _ in kept]
        if min(distance, default=np.inf) > least:
            kept.append((float(angles[k]), bool(attracting[k])))
    return sorted(kept)
