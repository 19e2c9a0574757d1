"""Functions called by address from compiled code."""

import ctypes
import gc
import math

import numba
import numpy as np
import pytest

from meanfield.scalar_functions import call_scalar, compile_scalar


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


def test_infinities_and_nan_pass_through():
    x = np.array([np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(apply(compile_scalar(kinked), x), [np.inf, -np.inf, np.nan])
