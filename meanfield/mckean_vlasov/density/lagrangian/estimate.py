"""Extrapolation of levels in their points, and an honest estimate of what is left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.mckean_vlasov.density.lagrangian.level import Level
from meanfield.numerics.extrapolation import SMOOTH_POWERS
from meanfield.typing import FloatArray

LEAST_LEVELS = 3
"""Number of levels from which an error can be estimated."""

MOST_LEVELS = 4
"""Number of levels that are extrapolated at most."""


def weights_of(points: Sequence[int]) -> FloatArray:
    """Weights of levels that eliminate the leading even powers of their spacing, one over the number of intervals."""
    spacing = 1.0 / (np.array(points, dtype=float) - 1.0)
    rows = np.array([(spacing / spacing[-1]) ** p for p in (0, *SMOOTH_POWERS[: len(points) - 1])])
    return np.linalg.solve(rows, np.eye(len(points))[0])


def extrapolated(levels: Sequence[Level]) -> FloatArray:
    """Moments by extrapolation over the last levels, shape (outputs, d1 + 3)."""
    used = levels[-MOST_LEVELS:]
    weights = weights_of([level.points for level in used])
    return np.asarray(sum(weight * level.moments for weight, level in zip(weights, used, strict=True)))


def estimated(levels: Sequence[Level], tolerance: float) -> FloatArray:
    """Estimated errors of q and r by the number of points, shape (outputs, d1 + 1).

    Twice the change by one power less and a share of the change by the last level, the largest of all output times
    because changes pass through zero where errors need not. Where differences of levels do not fall like the square of
    the spacing, points do not resolve the solution, and the largest last difference is added.
    """
    used = levels[-MOST_LEVELS:]
    best = extrapolated(used)
    change = np.abs(best - extrapolated(used[1:]))[:, :-2]
    # With the factor below, the last level counts in full: of three levels only the assumed powers tell what is left,
    # and coarse ones need not follow them yet.
    change = change + 0.5 * np.abs(best - extrapolated(used[:-1]))[:, :-2]
    # A safety factor: errors of points that hop across a corner look random from level to level, and single changes
    # miss them by chance.
    change = np.broadcast_to(2.0 * change.max(axis=0), change.shape).copy()
    first, second, third = used[-3:]
    last, before = third.moments - second.moments, second.moments - first.moments
    squares = [1.0 / (level.points - 1.0) ** 2 for level in (first, second, third)]
    expected = before * (squares[2] - squares[1]) / (squares[1] - squares[0])
    for k in range(change.shape[1]):
        size = np.abs(last[:, k]).max()
        # A last difference that is off second order by more than 30 % is not extrapolated.
        if np.abs(last - expected)[:, k].max() > 0.3 * size + 0.1 * tolerance:
            change[:, k] += size
    return np.asarray(change)
