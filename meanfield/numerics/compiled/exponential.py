"""Exponential function in arithmetic that vectorises, as that of libm does not."""

from __future__ import annotations

import math

from llvmlite import ir
from numba.extending import intrinsic

from meanfield.process import own_numba as numba

LAST_EXPONENT = 700.0
"""Largest absolute exponent; `exp_minus` is constant beyond it, at 1e-304."""

# exp(n log 2 + r) = 2^n exp(r). The high part of log 2 ends in zeros, so that its product with n is exact.
LOG2_E = 1.0 / math.log(2.0)
LN2_HIGH = math.ldexp(math.floor(math.ldexp(math.log(2.0), 32)), -32)
LN2_LOW = 1.9082149292705877e-10

INTEGER_SHIFT = 1.5 * 2.0**52
"""Number whose sum with a float64 has the nearest integer to that float64 in its last bits."""

# Taylor coefficients of exp; of degree 13 they are exact to rounding on |r| <= log(2)/2.
E2, E3, E4, E5, E6, E7, E8 = (1.0 / math.factorial(k) for k in range(2, 9))
E9, E10, E11, E12, E13 = (1.0 / math.factorial(k) for k in range(9, 14))


@intrinsic
def _power_of_two(context, shifted):  # type: ignore[no-untyped-def]
    """2^n from n + INTEGER_SHIFT, for a number or for lanes of them: n becomes the exponent of a float64."""

    def generate(_, builder, signature, arguments):  # type: ignore[no-untyped-def]
        (value,) = arguments
        integer = ir.IntType(64)
        bias, places = ir.Constant(integer, 1023), ir.Constant(integer, 52)
        if isinstance(value.type, ir.VectorType):
            integer = ir.VectorType(integer, value.type.count)
            bias, places = (ir.Constant(integer, [constant.constant] * value.type.count) for constant in (bias, places))
        bits = builder.bitcast(value, integer)
        return builder.bitcast(builder.shl(builder.add(bits, bias), places), value.type)

    return shifted(shifted), generate


@numba.njit(inline="always")
def _parts(y):  # type: ignore[no-untyped-def]
    """Numbers exp(r) - 1 and 2^n of exp(y) = 2^n exp(r), for |y| <= LAST_EXPONENT."""
    shifted = y * LOG2_E + INTEGER_SHIFT
    n = shifted - INTEGER_SHIFT
    r = (y - n * LN2_HIGH) - n * LN2_LOW
    x = (((E13 * r + E12) * r + E11) * r + E10) * r + E9
    x = ((((x * r + E8) * r + E7) * r + E6) * r + E5) * r + E4
    return (((x * r + E3) * r + E2) * r + 1.0) * r, _power_of_two(shifted)


@numba.njit(inline="always")
def exp_between(y):  # type: ignore[no-untyped-def]
    """exp(y) for |y| <= LAST_EXPONENT, to 3e-16; of a number or of lanes (`meanfield.numerics.compiled.vectors`).

    Callers must not allow reassociation (`fastmath`), which would cancel `INTEGER_SHIFT`.
    """
    excess, power = _parts(y)
    return (excess + 1.0) * power


@numba.njit(inline="always")
def expm1_between(y):  # type: ignore[no-untyped-def]
    """exp(y) - 1 in the same way, right where y is small, too."""
    excess, power = _parts(y)
    return excess * power + (power - 1.0)


@numba.njit(inline="always")
def exp_minus(s):  # type: ignore[no-untyped-def]
    """exp(-s) for s >= 0, in arithmetic that vectorises; constant beyond LAST_EXPONENT."""
    return exp_between(-min(s, LAST_EXPONENT))
