"""Exponential function and logarithm in arithmetic that vectorises, as those of libm do not."""

from __future__ import annotations

import math

from llvmlite import ir
from numba.extending import intrinsic

from meanfield.numerics.compiled.vectors import square_root
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


HALF_ROOT = 0x3FE6A09E667F3BCD
"""Bits of sqrt(1/2): numbers are split into m 2^n with m between it and sqrt(2)."""

# log((1 + z)/(1 - z)) = 2 z (1 + z^2/3 + z^4/5 + ...); what follows is below 1e-17 for |z| <= 3 - 2 sqrt(2).
L1, L2, L3, L4, L5, L6, L7, L8, L9, L10 = (1.0 / (2 * j + 1) for j in range(1, 11))


def _integers(kind):  # type: ignore[no-untyped-def]
    """Type of integers as wide as numbers, or lanes of numbers, of a type."""
    return ir.VectorType(ir.IntType(64), kind.count) if isinstance(kind, ir.VectorType) else ir.IntType(64)


def _constant(kind, value):  # type: ignore[no-untyped-def]
    """A number, or the same one in all lanes of a type of vectors."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


@intrinsic
def _power_part(typing_context, x):  # type: ignore[no-untyped-def]
    """The integer n of x = m 2^n, as INTEGER_SHIFT + n."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        (value,) = arguments
        kind = _integers(value.type)
        bits = builder.sub(builder.bitcast(value, kind), _constant(kind, HALF_ROOT))
        n = builder.ashr(bits, _constant(kind, 52))
        shift = _constant(value.type, INTEGER_SHIFT)
        return builder.bitcast(builder.add(builder.bitcast(shift, kind), n), value.type)

    return x(x), generate


@intrinsic
def _fraction_part(typing_context, x):  # type: ignore[no-untyped-def]
    """The number m of x = m 2^n."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        (value,) = arguments
        kind = _integers(value.type)
        bits = builder.sub(builder.bitcast(value, kind), _constant(kind, HALF_ROOT))
        kept = builder.and_(bits, _constant(kind, (1 << 52) - 1))
        return builder.bitcast(builder.add(kept, _constant(kind, HALF_ROOT)), value.type)

    return x(x), generate


@numba.njit(inline="always")
def _log_of(n, z):  # type: ignore[no-untyped-def]
    """log(m 2^n) from n and z = (m - 1)/(m + 1)."""
    y = z * z
    series = (((L10 * y + L9) * y + L8) * y + L7) * y + L6
    series = ((((series * y + L5) * y + L4) * y + L3) * y + L2) * y + L1
    return n * LN2_HIGH + (2.0 * z + (2.0 * z * y * series + n * LN2_LOW))


@numba.njit(inline="always")
def log_positive(x):  # type: ignore[no-untyped-def]
    """log(x) of a positive, normal number, or of lanes of them, to 3e-16 of the larger one of 1 and the result."""
    m = _fraction_part(x)
    return _log_of(_power_part(x) - INTEGER_SHIFT, (m - 1.0) / (m + 1.0))


@numba.njit(inline="always")
def arcsinh_and_slope(z):  # type: ignore[no-untyped-def]
    """asinh(z) and 1/sqrt(1 + z^2) of lanes of numbers z >= 0, as accurate, by one division for both."""
    root = square_root(z * z + 1.0)
    x = z + root
    m = _fraction_part(x)
    inverse = 1.0 / (root * (m + 1.0))
    return _log_of(_power_part(x) - INTEGER_SHIFT, (m - 1.0) * root * inverse), (m + 1.0) * inverse
