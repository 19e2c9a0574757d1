"""Richardson extrapolation from solutions whose cells and steps are all divided by the same factors.

The error of a solution with factor k is c_1 k^-p_1 + c_2 k^-p_2 + ... Without kinks of the prior the powers are 2, 4,
6, ... A kink meets a smooth density at t = 0, and what happens before the first cells notice leaves a k^-3 as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from meanfield.typing import FloatArray

SMOOTH_POWERS = (2, 4, 6)
KINKED_POWERS = (2, 3, 4, 6)
"""Powers of the cell width and the time step in the error, in order of elimination."""

MOST_CORRECTED = 2.0
"""Largest factor by which extrapolation may change the probability of a cell; far tails are not asymptotic."""


def extrapolation_weights(factors: Sequence[int], powers: Sequence[int]) -> FloatArray:
    """Weights of the solutions that eliminate `powers` from the error; one factor more than powers."""
    rows = np.array([[float(k) ** -p for k in factors] for p in (0, *powers)])
    return np.linalg.solve(rows, np.eye(len(factors))[0])


def first_order_rest(
    factors: Sequence[int], solutions: FloatArray, weights: FloatArray, norm: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Error of an extrapolation by a term of first order, which it does not eliminate; zero where none shows.

    Where drift outweighs noise within a cell, the flux is upwind and its error of first order. Differences of solutions
    then do not fall like k^-2, or do so less and less; what they show besides is taken for c/k.

    Parameters
    ----------
    factors : sequence of int
        Factors of the last solutions, four or more.
    solutions : ndarray, shape (factors, ...)
    weights : ndarray, shape (factors,)
        Those of the extrapolation.
    norm : callable
        Sizes, shape (differences, quantities), of differences of solutions, shape (differences, ...).

    Returns
    -------
    ndarray, shape (quantities,)
        Sizes of the error.
    """
    k = np.array(factors, dtype=float)
    steps, squares, inverses = np.diff(solutions, axis=0), np.diff(k**-2), np.diff(1 / k)
    ratios = squares[1:] / squares[:-1]
    expected = ratios.reshape(-1, *[1] * (steps.ndim - 1)) * steps[:-1]
    rest, size = norm(steps[1:] - expected), norm(steps[1:])
    before, share = np.divide(rest, size, where=size > 0, out=np.zeros_like(rest))[-2:]
    suspect = (share > 0.1) | ((share > before) & (share > 0.01))  # of the last difference, beyond second order
    of_unit = abs(inverses[-1] - ratios[-1] * inverses[-2])
    return np.where(suspect, rest[-1] * abs(float(weights @ (1 / k))) / of_unit, 0.0)


class ErrorSeries:
    """Series of estimated errors, one after each level, with a safety factor on the last one."""

    def __init__(self) -> None:
        self._before: tuple[float, float] | None = None

    def safety(self, size: float, leading: float) -> float:
        """Safety factor on an estimated error.

        A geometric series has 1/(1 - ratio) times its last term left; the square of that is on the safe side where
        ratios still grow, and changes little where they are small. Where estimates do not fall it is a large number.
        An estimate that falls faster than the leading power of the error does is small by chance.

        Parameters
        ----------
        size : float
            The estimated error.
        leading : float
            Value of the leading power that the extrapolation leaves, with coefficient one.
        """
        before, self._before = self._before, (size, leading)
        if before is None or size == 0.0:
            return 3.0  # a safety factor: the first estimate has no other to be compared with
        expected = before[0] * leading / before[1]
        ratio = min(size / before[0], 0.9)  # a series with a larger ratio does not count as converging
        return max(1.0, expected / size) / (1.0 - ratio) ** 2


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
        for _ in range(3):  # each leaves a tenth of the error or less
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
