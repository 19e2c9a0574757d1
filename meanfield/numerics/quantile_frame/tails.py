"""Tails that retreat: their ends are left where they are.

Points that keep their w would stay behind a tail that retreats, at quantiles of 20 and more. No average notices them,
but only short steps would keep them in order.
"""

from __future__ import annotations

from meanfield.numerics.compiled.vectors import where_less
from meanfield.process import own_numba as numba

FREE, FROZEN = 7.0, 9.0
"""Quantiles between which the drift of retreating tails falls to zero: 3e-12 of the probability lie beyond the first,
which no cell of a density that is shown reaches."""


@numba.njit(inline="always")
def retained(drift, xi, graded):  # type: ignore[no-untyped-def]
    """Share of the drift that is left at a quantile, and its derivative by the quantile times the drift.

    All of it is where points are not graded, so that none stays behind.
    """
    xi = xi if graded else 0.0 * xi
    size = where_less(xi, 0.0, -1.0 * xi, xi)
    inwards = where_less(xi, 0.0, drift, -1.0 * drift)
    rate = 1.0 / (FROZEN - FREE)
    left = rate * (FROZEN - size)
    nothing, all_of_it = 0.0 * left, 0.0 * left + 1.0
    bounded = where_less(left, 0.0, nothing, where_less(left, 1.0, left, all_of_it))
    share = where_less(inwards, 0.0, all_of_it, bounded)
    steep = where_less(share, 1.0, where_less(left, 0.0, nothing, rate * inwards), nothing)
    return share, steep
