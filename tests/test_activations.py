"""Activations against symbolic differentiation, in Python and compiled."""

import ctypes
import math

import numpy as np
import pytest
import sympy as sp

from meanfield.activations import ACTIVATIONS

X = sp.Symbol("x", real=True)
SYMBOLIC = {"linear": X, "quadratic": X**2, "erf": sp.erf(X), "tanh": sp.tanh(X)}
POINTS = [0.0, -0.0, 1e-8, -0.3, 0.5, -1.0, 1.7, -3.0, 6.0]


def exact(expression, x):
    return float(expression.subs(X, sp.Rational(x)).evalf(30))


def test_every_activation_is_tested():
    assert set(SYMBOLIC) == set(ACTIVATIONS)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values_and_derivatives(name, order):
    activation = ACTIVATIONS[name]
    function = (activation.value, activation.derivative, activation.second_derivative)[order]
    right = sp.diff(SYMBOLIC[name], X, order)
    compiled = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(activation.addresses[order])
    for x in POINTS:
        # Rounding; 1 - tanh(6) = 1e-5 has lost five of sixteen digits.
        assert function(x) == pytest.approx(exact(right, x), rel=1e-10, abs=1e-300)  # see the line above
        assert compiled(x) == pytest.approx(function(x), rel=1e-10, abs=1e-300)  # the same, another math library


@pytest.mark.parametrize("name", ["erf", "tanh"])
def test_saturation_is_harmless(name):
    """No overflow, no NaN: the quadratures reach far into the tails."""
    activation = ACTIVATIONS[name]
    for x in (-1e300, -800.0, 800.0, 1e300):
        assert activation.value(x) == math.copysign(1.0, x)
        assert activation.derivative(x) == 0
        assert activation.second_derivative(x) == 0


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_degree_is_given_for_polynomials_only(name):
    expression = SYMBOLIC[name]
    right = int(sp.degree(expression, X)) if expression.is_polynomial(X) else None
    assert ACTIVATIONS[name].degree == right


def test_addresses_are_compiled_once():
    activation = ACTIVATIONS["tanh"]
    assert activation.addresses is activation.addresses
    assert len(set(activation.addresses)) == 3


def test_parts_are_frozen():
    with pytest.raises(AttributeError):
        ACTIVATIONS["tanh"].degree = 3


def test_functions_of_one_float_return_floats():
    for activation in ACTIVATIONS.values():
        for function in (activation.value, activation.derivative, activation.second_derivative):
            assert isinstance(function(0.5), float)
            assert np.ndim(function(0.5)) == 0
