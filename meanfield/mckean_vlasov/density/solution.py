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

    def arrays(self, limit: Limit) -> dict[str, FloatArray]:
        """The variables of the Dataset."""
        q, r, norm = np.split(self.moments, [limit.overlaps, limit.overlaps + 1], axis=1)
        found = _overlaps(limit, q) | {"r": r[:, 0], "P": self.density} | ({"norm": norm[:, 0]} if norm.size else {})
        return {f"{name}_error": values for name, values in found.items()}


def _overlaps(limit: Limit, q: FloatArray) -> dict[str, FloatArray]:
    """Overlaps, or their errors, by their names."""
    d1 = len(limit.coordinates)
    found = {"q": q[:, :d1]}
    return found if limit.spectrum is None else found | {"q_noise": q[:, d1:-1], "norm_noise": q[:, -1]}


@dataclass(frozen=True)
class Solution:
    """Moments and densities at the output times, NaN where these were not reached.

    Parameters
    ----------
    grid : Grid
        All nodes, and the cells of `density`.
    moments : ndarray, shape (outputs, overlaps + 3)
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
        grid, d1 = self.grid, len(limit.coordinates)
        closed = coefficients_along(limit, np.array([limit.arguments_of(row) for row in self.moments]))
        P_w, between = self._marginal(limit, range(len(self.density)))
        errors = self.errors and replace(self.errors, density=self.errors.density + between)
        return (
            {"time": limit.times}
            | _overlaps(limit, self.moments[:, :-3])
            | {
                "r": self.moments[:, -3],
                "norm": self.moments[:, -2],
                "mass": self.moments[:, -1],
                "g": closed[:, :d1],
                "Lambda": closed[:, -1],
                "P": self.density,
                "P_w": P_w,
                "u": grid.u[:, :d1],
                "u_weight": grid.u_weight,
            }
            | ({} if limit.spectrum is None else self._at_variances(d1))
            | cell_arrays(grid.edges)
            | (errors.arrays(limit) if errors else {})
        )

    def _at_variances(self, d1: int) -> dict[str, FloatArray]:
        """Variances of nodes, those that there are with their shares, and overlaps of weights there.

        Within a cell the density is a straight line, by differences of neighbours.
        """
        u, rho_of_node = self.grid.u[:, :d1], self.grid.u[:, d1]
        rho, at = np.unique(rho_of_node, return_inverse=True)
        shares = np.zeros((len(rho), len(at)))
        shares[at, np.arange(len(at))] = self.grid.u_weight
        weight = shares.sum(axis=1)
        edges, w = self.grid.edges, 0.5 * (self.grid.edges[1:] + self.grid.edges[:-1])
        h, P, slopes = np.diff(edges), self.density, np.gradient(self.density, w, axis=2)
        first = P @ (h * w) + slopes @ (h**3 / 12.0)
        second = P @ (h * (w**2 + h**2 / 12.0)) + slopes @ (w * h**3 / 6.0)
        shares /= weight[:, None]
        q = np.einsum("bn,nk,tn->tbk", shares, u, first)
        found = {"rho_of_node": rho_of_node, "rho": rho, "rho_weight": weight}
        return found | {"q_rho": q, "norm_rho": second @ shares.T}
