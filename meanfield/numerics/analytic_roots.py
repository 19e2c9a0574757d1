"""All real roots of a piecewise analytic function on intervals, by adaptive Chebyshev interpolation.

Each interval is halved until the function is its Chebyshev interpolant to rounding; the roots of a polynomial are the
eigenvalues of its companion matrix. Roots are thus enumerated, not searched for: near tangencies are told apart as far
as rounding allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.polynomial.chebyshev import chebcompanion

from meanfield.typing import FloatArray

NODES = 16
"""Chebyshev nodes of an interval."""

_ANGLES = np.pi * (np.arange(NODES) + 0.5) / NODES
_POINTS = -np.cos(_ANGLES)
_TO_COEFFICIENTS = 2.0 / NODES * np.cos(np.outer(np.arange(NODES), np.pi - _ANGLES))
_TO_COEFFICIENTS[0] *= 0.5


def roots_between(
    function: Callable[[FloatArray], tuple[FloatArray, FloatArray]], ends: Sequence[float] | FloatArray
) -> list[float]:
    """Roots inside intervals between consecutive ends, in increasing order.

    Parameters
    ----------
    function : callable
        Function of points, shape (points,), analytic between consecutive ends. Returns its values, and the size of the
        terms that they are sums of, by which rounding is told.
    ends : sequence of float
        Increasing points between which it is analytic.

    Returns
    -------
    list of float
        Each root once; none where the function is 0 on an interval as a whole.

    Raises
    ------
    ArithmeticError
        If the function is not resolved by any reasonable number of intervals.
    """
    edges = np.asarray(ends, dtype=float)
    low, high = edges[:-1], edges[1:]
    found: list[float] = []
    for _ in range(36):  # an interval is then as short as rounding
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        points = (middle[:, None] + half[:, None] * _POINTS).ravel()
        values, sizes = (part.reshape(-1, NODES) for part in function(points))
        coefficients = values @ _TO_COEFFICIENTS.T
        # Values below 1e-14 of their terms are 0 to rounding.
        size, rounding = np.abs(values).max(axis=1), 1e-14 * np.abs(sizes).max(axis=1)
        tail = np.abs(coefficients[:, -3:]).max(axis=1)
        resolved = tail <= 1e-12 * size + rounding  # the last coefficients of a resolved function are rounding
        # what the first coefficient outweighs has no root, resolved or not
        empty = resolved & (np.abs(coefficients[:, 0]) > np.abs(coefficients[:, 1:]).sum(axis=1) + tail)
        for k in np.flatnonzero(resolved & ~empty & (size > rounding)):
            found += [float(middle[k] + half[k] * root) for root in _roots(coefficients[k])]
        low, middle, high = low[~resolved], middle[~resolved], high[~resolved]
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        if not low.size:
            break
        if low.size > 100_000:  # so many wait to be resolved for no function that can be
            raise ArithmeticError(f"the function is not resolved by {low.size} intervals")
    # Neighbouring intervals share a root at their common end.
    return _each_once(sorted(found), 1e-11 * float(edges[-1] - edges[0]))


def _roots(coefficients: FloatArray) -> FloatArray:
    """Real roots of a Chebyshev series in [-1, 1]."""
    small = np.abs(coefficients) <= 1e-15 * np.abs(coefficients).max()
    degree = int(np.flatnonzero(~small)[-1]) if not small.all() else 0
    if degree == 0:
        return np.empty(0)
    roots = np.linalg.eigvals(chebcompanion(coefficients[: degree + 1]))
    real = roots.real[(np.abs(roots.imag) <= 1e-6) & (np.abs(roots.real) <= 1.0 + 1e-9)]  # double roots, too
    return np.asarray(np.clip(real, -1.0, 1.0))


def _each_once(roots: list[float], same: float) -> list[float]:
    kept: list[float] = []
    for root in roots:
        if not kept or root - kept[-1] > same:
            kept.append(root)
    return kept
