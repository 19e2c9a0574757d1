"""Logarithm in arithmetic that vectorises, as that of libm does not."""

from __future__ import annotations

from llvmlite import ir
from numba.extending import intrinsic

from meanfield.numerics.compiled.exponential import INTEGER_SHIFT, LN2_HIGH, LN2_LOW
from meanfield.numerics.compiled.vectors import square_root
from meanfield.process import own_numba as numba

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
