"""Growth rates of small perturbations of a state: their order, and the verdict on its stability."""

from __future__ import annotations

from typing import Any

import numpy as np

ComplexArray = np.ndarray[tuple[int], np.dtype[np.complex128]]

STABLE, MARGINAL, UNSTABLE = 1, 0, -1

VERDICTS = {STABLE: "stable", MARGINAL: "marginal", UNSTABLE: "unstable"}
"""Words for the codes of stability of a state."""


def sorted_rates(rates: np.ndarray[Any, Any]) -> ComplexArray:
    """Eigenvalues in the order of their real parts, the largest first."""
    values = rates.astype(complex)
    return np.asarray(values[np.lexsort((values.imag, -values.real))])


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
