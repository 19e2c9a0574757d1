"""Random numbers by address: number i of a stream is a function of (seed, replica, purpose, i), and nothing else.

A stream has no state, so a run may be cut, resumed, repeated and spread over workers in any way without a change in its
numbers. They are the counter-based generator Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011) with the counter
(i, purpose, replica) and a key from the seed; distinct streams of a seed never meet. Normals are Box-Muller pairs,
2.4 ns each, as fast as a ziggurat on the same bits, where NumPy's own normals take 3.5 ns or more in compiled code.
Everything is IEEE arithmetic without contraction that the compiler vectorises: the same bits on every machine.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.random import SeedSequence

from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

START, UNIFORMS, NORMALS, VECTOR, RETRY = range(5)
"""Purposes of random numbers: the start; two for the scalars of all samples; the vector orthogonal to features and
weights; rejections."""

MULTIPLIER_0, MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL_0, WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
ROUNDS = 10
LOW_WORD, WORD = np.uint64(0xFFFFFFFF), np.uint64(32)

EXPONENT_BITS, MANTISSA = np.uint64(52), np.uint64(0x000FFFFFFFFFFFFF)
ONE = np.uint64(0x3FF0000000000000)
"""Bits of 1.0: with a random mantissa a uniform number in [1, 2)."""
TWO_TO_52 = np.uint64(0x4330000000000000)
"""Bits of 2^52: with a small whole number as mantissa that number plus 2^52."""
ROOT_HALF = np.uint64(0x3FE6A09E667F3BCD)
"""Bits of sqrt(1/2)."""
SIGN = np.uint64(0x8000000000000000)

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# log((1 + s)/(1 - s))/s - 2 as a polynomial in s^2 for |s| <= 0.1716: the minimax coefficients of fdlibm, to 2^-58
L1, L2, L3, L4 = 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01
L5, L6, L7 = 1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01
# sine and cosine for |x| <= pi/4: Taylor coefficients, exact to rounding with these degrees
S3, S5, S7, S9, S11, S13, S15 = ((-1.0) ** k / math.factorial(2 * k + 1) for k in range(1, 8))
C2, C4, C6, C8, C10, C12, C14, C16 = ((-1.0) ** k / math.factorial(2 * k) for k in range(1, 9))


def stream_key(seed: int, phase: int = 0) -> FloatArray:
    """Key of all streams of a seed in a phase of a run, shape (2,), unsigned.

    A step has as many numbers as its batch asks for, so that steps of two phases may have the same addresses.
    """
    sequence = SeedSequence(seed, spawn_key=(phase,) if phase else ())
    return sequence.generate_state(2, np.uint32).astype(np.uint64)


@intrinsic
def _as_float(typing_context, bits):  # type: ignore[no-untyped-def]
    """Double with the given bits."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.uint64), generate


@intrinsic
def _as_bits(typing_context, x):  # type: ignore[no-untyped-def]
    """Bits of a double."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.uint64(types.float64), generate


@numba.njit(inline="always")
def _block(key, replica, purpose, index):  # type: ignore[no-untyped-def]
    """Two random words of 64 bits each: Philox of the counter (index, purpose, replica)."""
    k0, k1 = key[0], key[1]
    c0, c1, c2, c3 = index & LOW_WORD, index >> WORD, np.uint64(purpose), np.uint64(replica)
    for _ in range(ROUNDS):
        p0, p1 = (c0 & LOW_WORD) * MULTIPLIER_0, (c2 & LOW_WORD) * MULTIPLIER_1
        c0, c1, c2, c3 = (p1 >> WORD) ^ c1 ^ k0, p1, (p0 >> WORD) ^ c3 ^ k1, p0
        k0, k1 = (k0 + WEYL_0) & LOW_WORD, (k1 + WEYL_1) & LOW_WORD
    return (c0 & LOW_WORD) | (c1 << WORD), (c2 & LOW_WORD) | (c3 << WORD)


@numba.njit(inline="always")
def _uniform(bits):  # type: ignore[no-untyped-def]
    """Uniform number on (0, 1], a multiple of 2^-52."""
    return 2.0 - _as_float((bits >> np.uint64(12)) | ONE)


@numba.njit(inline="always")
def _log(u):  # type: ignore[no-untyped-def]
    """Logarithm of a normal u > 0, to one unit in the last place (the reduction of fdlibm)."""
    shifted = _as_bits(u) + (ONE - ROOT_HALF)
    exponent = _as_float((shifted >> EXPONENT_BITS) | TWO_TO_52) - (4503599627370496.0 + 1023.0)
    f = _as_float((shifted & MANTISSA) + ROOT_HALF) - 1.0
    s = f / (2.0 + f)
    z = s * s
    rest = z * (L1 + z * (L2 + z * (L3 + z * (L4 + z * (L5 + z * (L6 + z * L7))))))
    half = 0.5 * f * f
    return exponent * LN2_HIGH - ((half - (s * (half + rest) + exponent * LN2_LOW)) - f)


@numba.njit(inline="always")
def _direction(bits):  # type: ignore[no-untyped-def]
    """Cosine and sine of a uniform angle: one in [-pi/4, pi/4] from 52 bits, then a reflection from two others."""
    x = (_as_float(((bits << np.uint64(2)) >> np.uint64(12)) | ONE) - 1.5) * (0.5 * math.pi)
    z = x * x
    sine = x + x * z * (S3 + z * (S5 + z * (S7 + z * (S9 + z * (S11 + z * (S13 + z * S15))))))
    cosine = 1.0 + z * (C2 + z * (C4 + z * (C6 + z * (C8 + z * (C10 + z * (C12 + z * (C14 + z * C16)))))))
    swap = (bits >> np.uint64(63)) != 0
    flip = (bits << np.uint64(1)) & SIGN
    first = _as_float(_as_bits(sine if swap else cosine) ^ flip)
    second = _as_float(_as_bits(cosine if swap else sine) ^ flip)
    return first, second


@numba.njit(inline="always")
def _normal_pair(key, replica, purpose, index):  # type: ignore[no-untyped-def]
    first, second = _block(key, replica, purpose, index)
    radius = math.sqrt(-2.0 * _log(_uniform(first)))
    x, y = _direction(second)
    return radius * x, radius * y


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fill_normals(key, replica, purpose, first, out):  # type: ignore[no-untyped-def]
    """Write independent N(0, 1) numbers `first`, `first` + 1, ... of a stream to `out`.

    Parameters
    ----------
    key : ndarray, shape (2,)
        From `stream_key`.
    replica, purpose : int
        Which stream.
    first : int
        Even.
    out : ndarray, shape (n,)
        n even.
    """
    start = np.uint64(first // 2)
    for i in range(out.size // 2):
        out[2 * i], out[2 * i + 1] = _normal_pair(key, replica, purpose, start + np.uint64(i))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fill_uniforms(key, replica, purpose, first, out):  # type: ignore[no-untyped-def]
    """Write independent numbers `first`, `first` + 1, ... of a stream to `out`, uniform on (0, 1]."""
    start = np.uint64(first // 2)
    for i in range(out.size // 2):
        a, b = _block(key, replica, purpose, start + np.uint64(i))
        out[2 * i], out[2 * i + 1] = _uniform(a), _uniform(b)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def retry(key, replica, index):  # type: ignore[no-untyped-def]
    """A fresh normal and a fresh uniform number for attempt `index` of a rejection method."""
    a, _ = _normal_pair(key, replica, RETRY, np.uint64(2 * index))  # an index below 0 wraps around
    u, _ = _block(key, replica, RETRY, np.uint64(2 * index + 1))
    return a, _uniform(u)
