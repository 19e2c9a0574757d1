"""Cells in w times quadrature nodes in u."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanfield.typing import FloatArray


@dataclass(frozen=True)
class Grid:
    """Finite-volume cells times quadrature nodes.

    Parameters
    ----------
    edges : ndarray, shape (cells + 1,)
        Equally spaced, symmetric about 0, and 0 is one of them: kinks of priors lie on a face.
    u : ndarray, shape (nodes, d1)
        Quadrature nodes.
    u_weight : ndarray, shape (nodes,)
        Weights of the nodes, adding up to one.
    """

    edges: FloatArray
    u: FloatArray
    u_weight: FloatArray

    @cached_property
    def h(self) -> float:
        """Cell width."""
        return float(self.edges[1] - self.edges[0])

    @cached_property
    def centres(self) -> FloatArray:
        """Cell centres, shape (cells,)."""
        return 0.5 * (self.edges[1:] + self.edges[:-1])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of nodes and cells."""
        return len(self.u_weight), len(self.centres)

    def refined(self, factor: int) -> Grid:
        """Grid with `factor` cells in place of each."""
        cells = factor * self.shape[1]
        edges = np.linspace(self.edges[0], self.edges[-1], cells + 1)
        edges[cells // 2] = 0.0
        return Grid(edges, self.u, self.u_weight)
