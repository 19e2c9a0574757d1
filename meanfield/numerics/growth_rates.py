"""Growth rates of small perturbations of a state, the verdict on its stability, and fixed points of vector fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.typing import FloatArray

ComplexArray = np.ndarray[tuple[int], np.dtype[np.complex128]]

STABLE, MARGINAL, UNSTABLE = 1, 0, -1

VERDICTS = {STABLE: "stable", MARGINAL: "marginal", UNSTABLE: "unstable"}
"""Words for the codes of stability of a state."""


def sorted_rates(rates: np.ndarray[Any, Any]) -> ComplexArray:
    """Eigenvalues in the order of their real parts, the largest first."""
    values = rates.astype(complex)
    return values[np.lexsort((values.imag, -values.real))]


def verdict_of(growth_rate: float, resolution: float) -> int:
    """Code of the stability of a state: 1 stable, -1 unstable, 0 marginal.

    Parameters
    ----------
    growth_rate : float
        The largest growth rate of perturbations.
    resolution : float
        Size below which rates are zero to the accuracy that they have.
    """
    return MARGINAL if abs(growth_rate) <= resolution else STABLE if growth_rate < 0 else UNSTABLE


RATE_RESOLUTION = 1e-7
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
        rotates = np.any(np.abs(self.eigenvalues.imag) > 1e-9 / RATE_RESOLUTION * self.resolution)
        return f"{'unstable' if self.unstable_directions else 'stable'} {'focus' if rotates else 'node'}"
