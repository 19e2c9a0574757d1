"""Functions called by address from compiled code, with helpers, defaults and closures, and in Python."""

import ctypes
import gc
import math

import numba
import numpy as np
import pytest

from meanfield.ingredients.priors import PRIORS
from meanfield.numerics.compiled.differences import difference
from meanfield.numerics.compiled.scalar_functions import (
    call_loop,
    call_scalar,
    compilable,
    compile_loop,
    compile_scalar,
    evaluate,
    is_kept,
)


def cube(x):
    return x * x * x


def shifted_exponential(x):
    return math.exp(x - 1.0)


def kinked(x):
    return x if x > 0.0 else 0.01 * x


FUNCTIONS = [cube, shifted_exponential, kinked]


@numba.njit(numba.float64[:](numba.intp, numba.float64[:]))
def apply(address, x):
    result = np.empty_like(x)
    for i in range(x.size):
        result[i] = call_scalar(address, x[i])
    return result


@numba.njit
def apply_loop(address, x, out):
    call_loop(address, x, out)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_compiled_code_calls_the_function_at_the_address(function):
    x = np.linspace(-3, 3, 13)
    right = [function(float(value)) for value in x]
    np.testing.assert_allclose(apply(compile_scalar(function), x), right, rtol=1e-15)  # rounding of exp


def test_one_kernel_serves_many_functions():
    """Without compiling again: there is one signature, whatever the function."""
    for function in FUNCTIONS:
        found = apply(compile_scalar(function), np.array([2.0]))[0]
        assert found == pytest.approx(function(2.0), rel=1e-15)  # rounding of exp
    assert len(apply.signatures) == 1


def test_code_lives_on_without_a_reference():
    address = compile_scalar(cube)
    gc.collect()
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(3.0) == 27.0


def test_addresses_are_integers_and_differ():
    addresses = [compile_scalar(function) for function in FUNCTIONS]
    assert all(isinstance(address, int) and address > 0 for address in addresses)
    assert len(set(addresses)) == len(addresses)
    assert [compile_scalar(function) for function in FUNCTIONS] == addresses


def test_functions_with_the_same_code_and_other_parameters_differ():
    """They close over what they were made with; a cache by name or place would confuse them."""

    def line(slope):
        return lambda x: slope * x

    lines = [line(slope) for slope in (2.0, 3.0)]
    assert [evaluate(function, np.array([1.5]))[0] for function in lines] == [3.0, 4.5]


def test_infinities_and_nan_pass_through():
    x = np.array([np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(apply(compile_scalar(kinked), x), [np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(evaluate(kinked, x), [np.inf, -np.inf, np.nan])


GRID = np.arange(24.0).reshape(2, 3, 4) - 11.5


@pytest.mark.parametrize(
    "x",
    [
        np.array(-1.5),
        np.array([2.0]),
        np.empty(0),
        np.empty((3, 0)),
        GRID,
        np.asfortranarray(GRID),
        GRID.transpose(2, 0, 1),
        GRID[:, ::-2, 1::2],
        np.broadcast_to(np.array([1.0, -2.0]), (3, 2)),
    ],
    ids=["0-d", "one", "none", "none in 2-d", "3-d", "Fortran", "transposed", "strided", "broadcast"],
)
def test_evaluate_on_arrays_of_any_shape(x):
    before = x.copy()
    found = evaluate(cube, x)
    assert isinstance(found, np.ndarray)
    assert found.dtype == float
    assert found.shape == x.shape
    np.testing.assert_array_equal(found, x**3)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("x", [3, 3.0, [1, 2], [[1.0], [2.0]], np.array([1, 2]), np.array([0.5], dtype=np.float32)])
def test_evaluate_takes_what_becomes_an_array(x):
    found = evaluate(cube, x)
    assert found.dtype == float
    np.testing.assert_array_equal(found, np.asarray(x, dtype=float) ** 3)


def test_evaluate_leaves_a_read_only_array_alone():
    x = np.array([1.0, 2.0])
    x.flags.writeable = False
    found = evaluate(cube, x)
    found[0] = 7.0
    np.testing.assert_array_equal(x, [1.0, 2.0])


def test_what_is_kept_on_disk_is_the_function_with_its_defaults():
    """A loop is kept under its name alone, which says nothing of parameters."""
    forces = {width: PRIORS["smooth_l1"](width).unit_force for width in (0.5, 0.25)}
    assert [is_kept(force) for force in forces.values()] == [True, False]
    assert is_kept(PRIORS["l1"].unit_force)
    assert not is_kept(lambda w: w)
    x, out = np.array([-1.0, 0.1, 0.3]), np.empty(3)
    for width, force in forces.items():
        apply_loop(compile_loop(force), x, out)
        assert out == pytest.approx(np.clip(x / width, -1.0, 1.0), rel=1e-15)  # one division


def test_functions_without_a_module_are_compiled():
    """Those that `exec` makes have none."""
    names = {"__name__": None}
    exec("def double(x):\n    return 2.0 * x", names)
    assert names["double"].__module__ is None
    assert evaluate(names["double"], np.array([1.5])).tolist() == [3.0]


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
