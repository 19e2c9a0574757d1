"""What solving for the density gives, whatever chose its cells and steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.density.grid import Grid
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.typing import FloatArray


@dataclass(frozen=True)
class Errors:
    """Estimates of what a solution is off by, at all output times.

    Parameters
    ----------
    moments : ndarray, shape (outputs, d1 + 1)
        Of q and r.
    density : ndarray, shape (outputs,)
        Of P: L1 distance, averaged over u.
    """

    moments: FloatArray
    density: FloatArray

    def arrays(self) -> dict[str, FloatArray]:
        """The variables of the Dataset."""
        return {"q_error": self.moments[:, :-1], "r_error": self.moments[:, -1], "P_error": self.density}


@dataclass(frozen=True)
class Solution:
    """Moments and densities at the output times, NaN where these were not reached.

    Parameters
    ----------
    grid : Grid
        All nodes, and the cells of `density`.
    moments : ndarray, shape (outputs, d1 + 3)
        q, r, E[w^2] and the mass.
    density : ndarray, shape (outputs, nodes, cells)
    status : str
    effort : dict
        The cells, nodes and steps that were chosen.
    errors : Errors, optional
    """

    grid: Grid
    moments: FloatArray
    density: FloatArray
    status: str
    effort: dict[str, object]
    errors: Errors | None = None

    def arrays(self, problem: Problem, closure: Closure) -> dict[str, FloatArray]:
        """The variables of the Dataset."""
        q = self.moments[:, :-3]
        closed = [closure(row) if np.all(np.isfinite(row)) else (row, np.nan) for row in q]
        return {
            "time": problem.time.outputs_at,
            "q": q,
            "r": self.moments[:, -3],
            "norm": self.moments[:, -2],
            "mass": self.moments[:, -1],
            "g": np.array([g for g, _ in closed]),
            "Lambda": np.array([diffusion for _, diffusion in closed]),
            "P": self.density,
            "u": self.grid.u,
            "u_weight": self.grid.u_weight,
            "w": self.grid.centres,
            "w_edge": self.grid.edges,
        } | (self.errors.arrays() if self.errors else {})
