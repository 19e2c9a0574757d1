"""Solution of the Fokker-Planck equation at the output times, however its cells and steps were chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from meanfield.mckean_vlasov.cells import cell_arrays
from meanfield.mckean_vlasov.closures import coefficients_along
from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.marginal import marginal_density
from meanfield.numerics.finite_volumes.grid import Grid
from meanfield.numerics.mixtures import GOOD_ENOUGH
from meanfield.typing import FloatArray, IntArray

MOST_VALUES = 4e6
"""Number of probabilities of cells beyond which the first way to interpolate between nodes has to do: others take
minutes."""


def sampled(outputs: int) -> IntArray:
    """Numbers of some outputs, from the first to the last."""
    return np.unique(np.linspace(0, outputs - 1, 5).astype(int))  # times that stand for all


@dataclass(frozen=True)
class Errors:
    """Estimated errors of a solution at all output times.

    Parameters
    ----------
    moments : ndarray, shape (outputs, judged)
        Errors of q, r and, where it is free, E[w^2].
    density : ndarray, shape (outputs,)
        Errors of P: L1 distances, averaged over u.
    """

    moments: FloatArray
    density: FloatArray

    def arrays(self, features: int) -> dict[str, FloatArray]:
        """The variables of the Dataset."""
        q, r, norm = np.split(self.moments, [features, features + 1], axis=1)
        found = {"q_error": q, "r_error": r[:, 0], "P_error": self.density}
        return found | ({"norm_error": norm[:, 0]} if norm.size else {})


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
    effort : dict
        The cells, nodes and steps that were chosen.
    """

    grid: Grid
    moments: FloatArray
    density: FloatArray
    status: str
    effort: dict[str, object]
    errors: Errors | None = None
    _marginals: dict[int, tuple[FloatArray, float]] = field(default_factory=dict, repr=False, compare=False)

    def error_between_nodes(self, limit: Limit) -> float:
        """Largest estimated error of the density of w alone by interpolation in u, of some output times."""
        _, error = self._marginal(limit, sampled(len(self.density)).tolist())
        return float(error.max())

    def _marginal(self, limit: Limit, outputs: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Density of w alone at some output times and its error by interpolation in u; each is computed once.

        Solutions that are not complete, or very large, have that of the first way to interpolate, which may have a
        larger error: who looks at them waits already.
        """
        left, grid = [index for index in outputs if index not in self._marginals], self.grid
        small = self.status == "complete" and self.density.size <= MOST_VALUES
        good_enough = GOOD_ENOUGH if small else math.inf
        found = marginal_density(limit.coordinates, grid.u, grid.u_weight, grid.edges, self.density[left], good_enough)
        self._marginals.update(zip(left, zip(*found, strict=True), strict=True))
        P_w, error = zip(*(self._marginals[index] for index in outputs), strict=True)
        return np.array(P_w), np.array(error)

    def arrays(self, limit: Limit) -> dict[str, FloatArray]:
        """The variables of the Dataset."""
        q, grid = self.moments[:, :-3], self.grid
        closed = coefficients_along(limit, np.array([limit.arguments_of(row) for row in self.moments]))
        P_w, between = self._marginal(limit, range(len(self.density)))
        errors = self.errors and replace(self.errors, density=self.errors.density + between)
        return (
            {
                "time": limit.times,
                "q": q,
                "r": self.moments[:, -3],
                "norm": self.moments[:, -2],
                "mass": self.moments[:, -1],
                "g": closed[:, :-1],
                "Lambda": closed[:, -1],
                "P": self.density,
                "P_w": P_w,
                "u": grid.u,
                "u_weight": grid.u_weight,
            }
            | cell_arrays(grid.edges)
            | (errors.arrays(q.shape[1]) if errors else {})
        )
