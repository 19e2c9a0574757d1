"""Elementary functions in arithmetic that vectorises; the ones of libm do not."""

from __future__ import annotations

import math

import numba

LAST_EXPONENT = 44.0
"""`exp_minus` is cut here, at 8e-20."""

# Taylor coefficients of exp; of degree 15 they are exact to rounding on the reduced argument |y| <= 0.7.
E2, E3, E4, E5, E6, E7, E8 = (1.0 / math.factorial(k) for k in range(2, 9))
E9, E10, E11, E12, E13, E14, E15 = (1.0 / math.factorial(k) for k in range(9, 16))


@numba.njit(inline="always")
def exp_minus(s):  # type: ignore[no-untyped-def]
    """exp(-s) for s >= 0, in arithmetic that vectorises; constant beyond LAST_EXPONENT."""
    y = min(s, LAST_EXPONENT) * (-1.0 / 64.0)
    x = (((E15 * y + E14) * y + E13) * y + E12) * y + E11
    x = ((((x * y + E10) * y + E9) * y + E8) * y + E7) * y + E6
    x = (((((x * y + E5) * y + E4) * y + E3) * y + E2) * y + 1.0) * y + 1.0
    x *= x
    x *= x
    x *= x
    x *= x
    x *= x
    x *= x
    return x
