"""The functions of the module math whose calls of libm do not vectorise, in arithmetic that does.

Compiled loops use them in place of those of math (`meanfield.numerics.compiled.scalar_functions.compile_loop`). Nothing
branches: LLVM computes both sides of a choice, and that for many numbers at once. Errors are some units in the last
place.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from meanfield.numerics.compiled.exponential import INTEGER_SHIFT, exp_between, expm1_between, log_positive
from meanfield.numerics.compiled.vectors import CONTRACT
from meanfield.process import own_numba as numba

inlined = numba.njit(inline="always", error_model="numpy")
"""Compilation of functions that belong into loops: into each, and nowhere else."""

PAST_EXPONENTS = 1400.0
"""Size of an argument at which exp is 0 or infinite, and exp of its half is not."""

TANH_ONE = 20.0
"""Argument from which on tanh is 1 to rounding."""

# erf(x)/x as a polynomial in x^2 for |x| < 1, and (1 + 2 x) exp(x^2) erfc(x) as one in (x - 3)/(x + 3) for x >= 1, by
# interpolation at Chebyshev's points. Their errors are 1e-17; the largest coefficient of the second one is 1.25.
ERF = (
    1.1283791670955126, -0.3761263890318375, 0.11283791670954879, -0.026866170645076792, 0.0052239776248180145,
    -0.000854832698083379, 0.0001205533111164271, -1.4925595266831182e-05, 1.6461000484121368e-06,
    -1.6350312701054695e-07, 1.4659775274047436e-08, -1.1372848856791674e-09, 5.957176147748911e-11,
)  # fmt: skip
ERFC = (
    1.2530080582697296, -0.13562110612458092, -0.04756229435345284, 0.1296451587027206, -0.1192736634151192,
    0.0683080273458274, -0.02377051492581398, 0.0025293917794136475, 0.0018886905008599051, -0.0007798319219982444,
    -0.00010516139265026504, 0.00012509794974936117, 4.95986936085321e-06, -2.0102065164009475e-05,
    -7.690089846893481e-07, 3.506570397278174e-06, 4.181196714621574e-07, -7.289923436990407e-07,
    -1.39381850636494e-07, 2.1986616460766364e-07, -5.184686222487149e-08, 1.5504385277988663e-09,
)  # fmt: skip
ERFC_CENTRE = 3.0

FEW_BITS = 1.5 * 2.0**32
"""Number whose sum with another one rounds that to multiples of 2^-20."""

NO_TAIL = 28.0
"""Argument from which on erfc is 0."""

# Parts of pi, so short that their products with integers up to 2^26 are exact, and Taylor coefficients of sin(r)/r in
# r^2, which are exact to rounding for |r| <= pi/2.
PI_HIGH, PI_MIDDLE, PI_LOW = 3.141592651605606, 1.984187036896401e-09, 1.2246467991473532e-16

SINE = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(12))


def polynomial(coefficients: tuple[float, ...]) -> Any:
    """Function of one number for compiled code: a polynomial with these coefficients, by Horner's rule."""

    @intrinsic
    def value(typing_context, x):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            (x,) = arguments
            total = ir.Constant(x.type, coefficients[-1])
            for coefficient in coefficients[-2::-1]:
                product = builder.fmul(total, x, flags=CONTRACT)
                total = builder.fadd(product, ir.Constant(x.type, coefficient), flags=CONTRACT)
            return total

        return types.float64(types.float64), generate

    return value


_erf_series, _erfc_series, _sine_series = polynomial(ERF), polynomial(ERFC), polynomial(SINE)


@inlined
def exp(x):  # type: ignore[no-untyped-def]
    """exp(x), the square of that of half of x, which neither overflows nor vanishes."""
    cut = PAST_EXPONENTS if x > PAST_EXPONENTS else x
    root = exp_between(0.5 * (-PAST_EXPONENTS if cut < -PAST_EXPONENTS else cut))
    return root * root


@inlined
def log1p(x):  # type: ignore[no-untyped-def]
    """log(1 + x), with what rounding takes from the sum."""
    total = 1.0 + x
    whole = 1.0 < total < math.inf or 0.0 < total <= 1.0
    found = log_positive(total if whole else 1.0) + (x - (total - 1.0)) / total
    return found if whole else (x if x > 0.0 else (-math.inf if x == -1.0 else math.nan))


@inlined
def tanh(x):  # type: ignore[no-untyped-def]
    """tanh(x), by exp(-2 |x|) - 1."""
    size = abs(x)
    excess = expm1_between(-2.0 * (TANH_ONE if size > TANH_ONE else size))
    found = -excess / (excess + 2.0)
    return -found if x < 0.0 else found


@inlined
def _erfc_tail(size):  # type: ignore[no-untyped-def]
    """erfc(x) for x >= 1; the square of x in the exponent is split, for the sake of the digits of the result."""
    x = NO_TAIL if size > NO_TAIL else size
    rounded = (x + FEW_BITS) - FEW_BITS
    rest = (x - rounded) * (x + rounded)
    root = exp_between(-0.5 * rounded * rounded)
    scale = 1.0 + 2.0 * x
    inverse = 1.0 / (scale * (x + ERFC_CENTRE))  # divisions take longest
    series = _erfc_series((x - ERFC_CENTRE) * scale * inverse) * (x + ERFC_CENTRE) * inverse
    return root * (root * series * (1.0 - rest * (1.0 - rest * (0.5 - rest * (1.0 / 6.0)))))


@inlined
def erf(x):  # type: ignore[no-untyped-def]
    """Error function."""
    size = abs(x)
    far = 1.0 - _erfc_tail(size)
    near = x * _erf_series(x * x)
    return near if size < 1.0 else (-far if x < 0.0 else far)


@inlined
def erfc(x):  # type: ignore[no-untyped-def]
    """Complementary error function."""
    size = abs(x)
    near, far = 1.0 - x * _erf_series(x * x), _erfc_tail(size)
    return near if size < 1.0 else (far if x > 0.0 else 2.0 - far)


@inlined
def _sine(n, x, shift):  # type: ignore[no-untyped-def]
    """sin(x - (n + shift) pi) (-1)^n."""
    turns = n + shift
    r = ((x - turns * PI_HIGH) - turns * PI_MIDDLE) - turns * PI_LOW
    half = 0.5 * n
    odd = abs(half - ((half + INTEGER_SHIFT) - INTEGER_SHIFT))  # 0 or 1/2
    found = (1.0 - 4.0 * odd) * r * _sine_series(r * r)
    return found if abs(x) < 1e15 else math.nan  # beyond, doubles lie a tenth of a turn apart, or more


@inlined
def sin(x):  # type: ignore[no-untyped-def]
    """sin(x); beyond 1e8 that of a number next to x."""
    return _sine((x / math.pi + INTEGER_SHIFT) - INTEGER_SHIFT, x, 0.0)


@inlined
def cos(x):  # type: ignore[no-untyped-def]
    """cos(x), which is -sin(x - pi/2); beyond 1e8 that of a number next to x."""
    return -_sine((x / math.pi - 0.5 + INTEGER_SHIFT) - INTEGER_SHIFT, x, 0.5)


MATH = ModuleType("math")
"""The module math, with these functions in place of its own."""

MATH.__dict__.update(vars(math), exp=exp, log1p=log1p, tanh=tanh, erf=erf, erfc=erfc, sin=sin, cos=cos)
