"""Cells in w times quadrature nodes in u, and the interface of a step on them by software other than our kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

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


LEAST_DIFFUSION = 1e-14
"""Least diffusion coefficient, in place of zero, where the flux is upwind transport."""


class Step(Protocol):
    """One midpoint step with frozen coefficients."""

    def __call__(self, P: FloatArray, faces: FloatArray, tilts: FloatArray, diffusion: float, dt: float) -> FloatArray:
        """Return the density after the step.

        Parameters
        ----------
        P : ndarray, shape (nodes, cells)
            Density before the step.
        faces : ndarray, shape (cells - 1,)
            Part of -(V_{i+1} - V_i)/D at each face that does not depend on u.
        tilts : ndarray, shape (nodes,)
            Part of -(V_{i+1} - V_i)/D that depends on u, the same at every face.
        diffusion : float
            D = Lambda/2, at least `LEAST_DIFFUSION`.
        dt : float
            Time step.
        """


MakeStep = Callable[[Grid], Step]
"""Function that prepares the steps on a grid."""
