"""Derivatives by the complex step of powers and functions of math, against formulas."""

import math
from math import tanh

import mpmath
import numpy as np
import pytest

from meanfield.numerics.compiled.scalar_functions import complex_step, evaluate


def cube(x):
    return x**3


def terms(x):
    return sum([(k + 1.0) * x**k for k in range(5)])


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (cube, lambda x: 3.0 * x * x),
        (lambda x: x**-2, lambda x: -2.0 / x**3),
        (lambda x: x**2.0 - x**0, lambda x: 2.0 * x),
        (lambda x: (1.0 + x * x) ** 1.5, lambda x: 3.0 * x * np.sqrt(1.0 + x * x)),
        (lambda x: cube(x) + math.pow(x, 5), lambda x: 3.0 * x * x + 5.0 * x**4),
        (lambda x: tanh(x), lambda x: np.cosh(x) ** -2.0),
        (terms, lambda x: 2.0 + 6.0 * x + 12.0 * x * x + 20.0 * x**3),
    ],
)
def test_slopes_keep_their_digits_for_negative_numbers(function, slope):
    x = np.linspace(-6.0, 6.0, 24)
    assert np.allclose(evaluate(complex_step(function), x), slope(x), rtol=2e-15, atol=0)  # rounding of the terms


REAL = ["exp", "sin", "cos", "tan", "sinh", "cosh", "tanh", "atan", "asinh", "expm1"]
POSITIVE = ["log", "log10", "log2", "log1p", "sqrt"]


@pytest.mark.parametrize("name", REAL + POSITIVE)
def test_functions_of_math_have_the_slopes_of_mpmath(name):
    x = np.linspace(0.1, 3.0, 7) if name in POSITIVE else np.linspace(-3.0, 3.0, 8)
    function = getattr(math, name)
    precise = {"log2": lambda t: mpmath.log(t, 2)}.get(name) or getattr(mpmath, name)
    expected = [float(mpmath.diff(precise, point)) for point in x]
    assert np.allclose(evaluate(complex_step(lambda t: function(t)), x), expected, rtol=2e-15, atol=0)  # rounding


def leaky(x):
    return x if x > 0.0 else 0.1 * x


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (leaky, lambda x: 1.0 if x > 0.0 else 0.1),
        (lambda x: 2.0 * x if -1.0 <= x < 1.0 else x**3, lambda x: 2.0 if -1.0 <= x < 1.0 else 3.0 * x * x),
        (lambda x: max(abs(x) - 0.5, 0.0), lambda x: 0.0 if abs(x) < 0.5 else math.copysign(1.0, x)),
        (lambda x: min(max(x, -1.0), 1.0), lambda x: 1.0 if abs(x) < 1.0 else 0.0),
        (lambda x: math.fabs(x) ** 1.5, lambda x: 1.5 * math.copysign(math.sqrt(abs(x)), x)),
    ],
)
def test_slopes_beside_kinks_are_those_of_their_side(function, slope):
    x = np.linspace(-3.0, 3.0, 24)
    expected = [slope(point) for point in x]
    assert np.allclose(evaluate(complex_step(function), x), expected, rtol=1e-15, atol=0)  # rounding
