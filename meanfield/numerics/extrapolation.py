"""Richardson extrapolation from solutions whose cells and steps are all divided by the same factors.

The error of a solution with factor k is c_1 k^-p_1 + c_2 k^-p_2 + ... Without kinks of the prior the powers are 2, 4,
6, ... A kink meets a smooth density at t = 0, and what happens before the first cells notice leaves a k^-3 as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from meanfield.typing import FloatArray

SMOOTH_POWERS = (2, 4, 6)
KINKED_POWERS = (2, 3, 4, 6)
"""Powers of the cell width and the time step in the error, in order of elimination."""

CORRECTIONS = 3
"""Number of corrections of masses by a smooth factor; each leaves a tenth of the error or less."""

MOST_CORRECTED = 2.0
"""Largest factor by which extrapolation may change the probability of a cell; far tails are not asymptotic."""


def extrapolation_weights(factors: Sequence[int], powers: Sequence[int]) -> FloatArray:
    """Weights of the solutions that eliminate `powers` from the error; one factor more than powers."""
    rows = np.array([[float(k) ** -p for k in factors] for p in (0, *powers)])
    return np.linalg.solve(rows, np.eye(len(factors))[0])


def sharpen(masses: FloatArray, density: FloatArray, h: float) -> FloatArray:
    """Density with the given masses of wide cells and, within them, almost the shape of another.

    Parameters
    ----------
    masses : ndarray, shape (..., wide cells)
        Extrapolated probabilities of the wide cells.
    density : ndarray, shape (..., cells)
        A solution on cells of width `h`, a whole number of them in each wide one; rounding below zero is cut off.

    Returns
    -------
    ndarray, shape (..., cells)
        Density of unit mass: `density` times a factor that is a cubic between centres of wide cells, and continuous
        within 1e-9 or so.
    """
    wide = masses.shape[-1]
    several = density.shape[-1] // wide
    P = np.maximum(density, 0.0)
    if several > 1:
        for _ in range(CORRECTIONS):
            P *= _correction(masses, P, h) @ _cubic(wide, several)
    P *= np.repeat(_correction(masses, P, h), several, axis=-1)
    return np.asarray(P / (h * P.sum(axis=-1, keepdims=True)))


def _correction(masses: FloatArray, density: FloatArray, h: float) -> FloatArray:
    """Factors by which the masses of wide cells are too small."""
    cells = density.reshape(*masses.shape, -1)
    present = cells @ np.full(cells.shape[-1], h)
    ratio = np.divide(masses, present, where=present > 0, out=np.ones_like(masses))
    return np.asarray(np.clip(ratio, 1 / MOST_CORRECTED, MOST_CORRECTED))


@lru_cache(maxsize=8)
def _cubic(wide: int, several: int) -> FloatArray:
    """Interpolation from centres of wide cells to those of the cells in them, shape (wide, wide * several)."""
    at = (np.arange(wide * several) + 0.5) / several - 0.5
    first = np.clip(np.floor(at).astype(int) - 1, 0, wide - 4)
    x = at - first
    matrix = np.zeros((wide, len(at)))
    for i in range(4):
        matrix[first + i, np.arange(len(at))] = np.prod([(x - j) / (i - j) for j in range(4) if j != i], axis=0)
    return matrix
