"""Functions with helpers, defaults and closures, compiled and in Python."""

import math

import numba
import numpy as np
import pytest

from meanfield.numerics.compiled.differences import difference
from meanfield.numerics.compiled.scalar_functions import compilable, compile_loop, evaluate

X = np.linspace(-2.0, 2.0, 9)


def deepest(x):
    return math.exp(-x * x)


def helper(x, scale=0.5):
    return scale * x * deepest(x)


def calls(x):
    return helper(x) + helper(2.0 * x, 3.0)


def around(inner):
    def function(x):
        return inner(x) + 1.0

    return function


def within(x):
    def inner(y):
        return deepest(y)

    return inner(x)


def ping(x):
    return x if x < 1.0 else pong(x - 1.0)


def pong(x):
    return ping(x)


@pytest.mark.parametrize("function", [calls, helper, around(calls), around(around(deepest)), within])
def test_values_are_those_of_python(function):
    expected = [function(x) for x in X]
    assert np.allclose(evaluate(function, X), expected, rtol=1e-15, atol=0)  # the same operations


def test_a_compiled_function_is_taken_as_it_was_written():
    assert compilable(numba.njit(calls)).__code__ is calls.__code__


def test_what_calls_nothing_stays_the_same():
    assert compilable(deepest) is deepest
    assert compilable(3.0) == 3.0


def test_functions_in_a_circle_are_left_to_the_compiler():
    with pytest.raises(numba.TypingError):
        evaluate(ping, X)


def test_loops_and_differences_take_helpers():
    assert compile_loop(calls) != 0
    slope = difference(around(lambda x: np.sin(x)))
    assert np.allclose(evaluate(slope, X), np.cos(X), rtol=0, atol=1e-12)  # rounding over the reach of the nodes
