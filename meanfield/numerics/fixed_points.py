"""Fixed points of vector fields, and their kinds by the growth rates of small perturbations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.numerics.growth_rates import verdict_of
from meanfield.typing import FloatArray

MARGINAL = 1e-7
"""Resolution of growth rates, relative to the size of the field: smaller ones count as zero."""


@dataclass(frozen=True)
class FixedPoint:
    """Fixed point: a zero of a vector field b(q) with the growth rates of small perturbations.

    Parameters
    ----------
    q : ndarray
        Where it is.
    eigenvalues : ndarray of complex, shape (n,)
        Eigenvalues of db/dq, the one of the largest real part first: rates per unit of time.
    resolution : float
        Size below which rates count as zero.
    orbit : int
        Number of the set of fixed points that are copies of each other by symmetries.
    """

    q: FloatArray
    eigenvalues: np.ndarray[tuple[int], np.dtype[np.complex128]]
    resolution: float
    orbit: int

    @property
    def unstable_directions(self) -> int:
        """Number of growing perturbations."""
        return int(np.count_nonzero(self.eigenvalues.real > self.resolution))

    @property
    def verdict(self) -> int:
        """Stability: 1 stable, 0 marginal to the accuracy of the rates, -1 unstable, as for stationary states."""
        return verdict_of(float(self.eigenvalues[0].real), self.resolution)

    @property
    def kind(self) -> str:
        """Kind: `stable node`, `stable focus`, `saddle`, `unstable node`, `unstable focus` or `marginal`."""
        if np.any(np.abs(self.eigenvalues.real) <= self.resolution):
            return "marginal"
        if 0 < self.unstable_directions < len(self.eigenvalues):
            return "saddle"
        # Rounding of imaginary parts, relative to the size of the field.
        rotates = np.any(np.abs(self.eigenvalues.imag) > 1e-9 / MARGINAL * self.resolution)
        return f"{'unstable' if self.unstable_directions else 'stable'} {'focus' if rotates else 'node'}"
