"""Checks of functions that users write, on what compiles and means something, and on what does not."""

import math
import random

import numba
import numpy as np
import pytest

from meanfield.ingredients.function_checks import check_function, check_slope

SCALE, LISTED = (2.0, 3.0), [2.0, 3.0]


def plain(x):
    return math.tanh(x)


@numba.njit
def compiled_already(x):
    return np.tanh(x)


def with_a_default(x, scale=2.0):
    return math.tanh(scale * x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: math.erf(x) if x > 0 else -1.0,
        lambda x: SCALE[1] * plain(plain(x)),
        lambda x: with_a_default(x) + compiled_already(x),
        compiled_already,
        with_a_default,
    ],
)
def test_what_people_write_is_taken(function):
    check_function(function, "it")


def imports(x):
    import math

    return math.tanh(x)


def sometimes(x):
    return x if x > 1.0 else None


def forgets(x):
    x * x


def handles(x):
    try:
        return math.log(x)
    except ValueError as error:
        raise RuntimeError(str(error)) from error


def opens(x):
    with open(str(x)) as file:
        return float(file.read())


def sets(x):
    global SET
    SET = x
    return x


async def waits(x):
    return x


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (imports, "cannot be compiled .*imports belong to the top"),
        (sets, "cannot be compiled .*sets a global"),
        (handles, "cannot be compiled"),
        (opens, "cannot be compiled"),
        (forgets, "cannot be compiled .*returns None"),
        (sometimes, r"(raises TypeError at -5\.988|cannot be compiled) .*None"),  # as Python's bytecode is
        (lambda x: np.where(x > 0.0, x, 0.0), "cannot be compiled .*returns an array: write `a if x > 0 else b`"),
        (lambda x: LISTED[0] * x, "cannot be compiled .*make it a tuple"),
        (lambda x: 1.0 / x, r"raises ZeroDivisionError at 0 \(float division by zero\); let it return a finite number"),
        (lambda x: np.log(x), r"is nan at -5\.988; let it return a finite number"),
        (lambda x: x + random.random(), r"is .* at -5\.988, but .* where it is compiled; .* nothing random"),
        (lambda x: len(f"{x}") * x, r"is .* at -5\.988, but .* where it is compiled"),
        (math.tanh, "is builtin_function_or_method, not a Python function of one number"),
    ],
)
def test_what_has_no_value_for_each_number_is_refused(function, words):
    with pytest.raises(ValueError, match=f"^it {words}"):
        check_function(function, "it")


@pytest.mark.filterwarnings("ignore:coroutine")
def test_a_function_to_wait_for_is_refused():
    with pytest.raises(ValueError, match="not 'coroutine'"):
        check_function(waits, "it")


def test_a_kink_needs_no_value():
    check_function(lambda x: 1.0 / x, "it", kinks=(0.0,))


FACTORS = [
    (lambda x: math.exp(x), lambda e: lambda x: (1 + e) * math.exp(x)),
    (lambda x: math.sin(5 * x), lambda e: lambda x: (1 + e) * 5 * math.cos(5 * x)),
    (lambda x: 1e8 * x, lambda e: lambda x: (1 + e) * 1e8),
]


@pytest.mark.parametrize(("function", "slope"), FACTORS)
def test_check_slope(function, slope):
    check_slope(function, slope(0.0), (), "it", "correct it")
    for error in (1e-4, -1e-4):
        with pytest.raises(ValueError, match=r"it is .* at -?\d.*, where the numerical derivative is .*; correct it"):
            check_slope(function, slope(error), (), "it", "correct it")


def test_check_slope_leaves_kinks_alone():
    def slope(x):
        return (1.0 if x > -1.0 else -1.0) + (1.0 if x > 0.5123 else -1.0)

    check_slope(lambda x: abs(x + 1.0) + abs(x - 0.5123), slope, (-1.0, 0.5123), "it", "correct it")


def test_check_slope_refuses_what_is_not_a_number():
    with pytest.raises(ValueError, match="nan"):
        check_slope(lambda x: math.sqrt(x), lambda x: 0.5, (), "it", "correct it")
