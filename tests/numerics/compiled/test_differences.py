"""Derivatives by differences: against 40 digits, beside kinks, and what their estimates of errors are worth."""

import math

import mpmath
import numpy as np
import pytest

from meanfield.numerics.compiled.differences import LARGEST_ERROR, REACHES, difference, estimates
from meanfield.numerics.compiled.scalar_functions import evaluate

X = np.linspace(-5.9, 5.9, 60)

SMOOTH = {
    "tanh": (lambda x: math.tanh(x), mpmath.tanh),
    "steep": (lambda x: math.tanh(8.0 * x), lambda x: mpmath.tanh(8 * x)),
    "erf": (lambda x: math.erf(x), mpmath.erf),
    "softplus": (lambda x: math.log(1.0 + math.exp(x)), lambda x: mpmath.log(1 + mpmath.exp(x))),
    "wave": (lambda x: x * np.sin(5.0 * x), lambda x: x * mpmath.sin(5 * x)),
    "power": (lambda x: x**5 - 1000.0 * x, lambda x: x**5 - 1000 * x),
    "pole": (lambda x: 1.0 / (1.0 + 9.0 * x * x), lambda x: 1 / (1 + 9 * x * x)),
}


def exact(function, points):
    with mpmath.workdps(40):
        return np.array([float(mpmath.diff(function, mpmath.mpf(float(x)))) for x in points])


SLOW = ("tanh", "erf", "softplus", "power")
"""Functions that are smoother than others here; compiling takes the time, which estimates of all of them do without."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in SMOOTH])
def test_derivatives_are_those_of_40_digits(name):
    function, precise = SMOOTH[name]
    right = exact(precise, X)
    slope = difference(function)
    off = np.abs(evaluate(slope, X) - right) / (1.0 + np.abs(right) + np.abs(evaluate(function, X)))
    assert off.max() < 0.1 * LARGEST_ERROR  # estimates are ten times what is found, or more
    in_python = [slope(x) for x in X[:3].tolist()]
    claimed = {"rel": LARGEST_ERROR, "abs": LARGEST_ERROR}  # what `difference` promises of derivatives of any size
    assert in_python == pytest.approx(right[:3].tolist(), **claimed)


@pytest.mark.parametrize("reach", [2.0, 1.0, *REACHES])
@pytest.mark.parametrize("name", SMOOTH)
def test_estimates_bound_the_errors(monkeypatch, name, reach):
    """Also those of a reach that is far too large or too small for the function."""
    function, precise = SMOOTH[name]
    monkeypatch.setattr("meanfield.numerics.compiled.differences._best_reach", lambda *_: reach)
    right = exact(precise, X)
    ends = np.array([-np.inf])
    around = np.abs(evaluate(function, X[:, None] + reach * np.linspace(-1.0, 1.0, 9))).max(axis=1)
    found = [difference(function)(x) for x in X.tolist()]  # in Python, because each reach would be compiled
    off = np.abs(found - right) / (1.0 + np.abs(right) + around)
    assert np.all(off <= estimates(function, X, ends, reach))


@pytest.mark.parametrize(
    ("function", "kinks", "slope"),
    [
        (lambda x: x if x > 0.0 else 0.1 * x, (0.0,), lambda x: 1.0 if x >= 0.0 else 0.1),
        (lambda x: max(abs(x) - 0.5, 0.0), (-0.5, 0.5), lambda x: 0.0 if -0.5 <= x < 0.5 else math.copysign(1.0, x)),
        (lambda x: x * x if x > 0.01 else x**3 if x > 0 else x, (0.0, 0.01), None),
    ],
)
def test_derivatives_beside_kinks_are_those_of_their_side(function, kinks, slope):
    slope = slope or (lambda x: 2.0 * x if x >= 0.01 else 3.0 * x * x if x >= 0 else 1.0)
    beside = [kink + side for kink in kinks for side in (-1e-3, -1e-9, 0.0, 1e-9, 1e-3)]
    points = np.sort([*X, *beside])
    expected = [slope(x) for x in points]
    assert np.allclose(evaluate(difference(function, kinks), points), expected, rtol=0, atol=LARGEST_ERROR)  # promised


@pytest.mark.parametrize("function", [abs, lambda x: math.floor(x), lambda x: math.sqrt(abs(x)), lambda x: x % 0.3])
def test_what_is_not_smooth_is_refused(function):
    with pytest.raises(ValueError, match=r"differences give it to .* only at .* has a kink or is steep"):
        difference(lambda x: function(x))


def test_nothing_is_asked_below_the_least_number():
    points = np.linspace(0.0, 5.0, 20)
    slope = difference(lambda x: math.sqrt(x + 0.1) if x >= 0.0 else math.nan, least=0.0)
    assert np.allclose(evaluate(slope, points), 0.5 / np.sqrt(points + 0.1), rtol=LARGEST_ERROR, atol=0)  # promised
