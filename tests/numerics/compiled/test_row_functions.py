"""Functions of rows are what they are in plain Python: numbers, arrays, functions that they call, and SciPy's."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import special
from scipy.special import erf

from meanfield.numerics.compiled import row_functions
from meanfield.numerics.compiled.row_functions import Argument, Bound, compile_rows
from meanfield.numerics.compiled.straight_line import straight_line
from meanfield.process.own_numba import functions
from meanfield.typing import FloatArray

COUNT = 64


def perceptron(y: FloatArray, s: FloatArray, rate: float) -> FloatArray:
    return rate * np.sign(y) * (s * y < 0)


def activation(x: FloatArray) -> FloatArray:
    return erf(x / np.sqrt(2))


def committee(y: FloatArray, s: FloatArray, rate: float) -> FloatArray:
    return rate * np.exp(-s * s / 2) * (activation(y).sum(axis=0) - special.erf(s / np.sqrt(2)).sum(axis=0))


def matrix(s: FloatArray, Q: FloatArray) -> FloatArray:
    return (Q * s).sum(axis=1) - special.expit(s) + special.ndtr(s) - special.erfc(s)


def constant(rate: float) -> float:
    return rate


def table(s: FloatArray, rate: float) -> FloatArray:
    return rate * s.reshape(2, 1) * s


def pair(s: FloatArray) -> tuple[float, float]:
    return s[1], 2.0 * s[0]


def listed(s: FloatArray) -> list[float]:
    return [s[1], 2.0 * s[0]]


@pytest.mark.parametrize(
    ("function", "arguments", "shape"),
    [
        (perceptron, (Argument(0), Argument(3), Argument(1, constant=True)), ()),
        (committee, (Argument(0, (2,)), Argument(2, (2,)), Argument(1, constant=True)), (2,)),
        (matrix, (Argument(1, (2,)), Argument(2, (2, 2), constant=True)), (2,)),
        (table, (Argument(1, (2,)), Argument(0, constant=True)), (2, 2)),
        (constant, (Argument(5, constant=True),), (3,)),
        (pair, (Argument(1, (2,)),), (2,)),
        (listed, (Argument(1, (2,)),), (2,)),
    ],
)
def test_a_function_of_rows_is_the_function(function, arguments, shape):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    rows, constants = rng.normal(size=(COUNT, 4)), rng.normal(size=6)
    found = compile_rows([Bound(function, arguments, shape)], 4, 6)(rows, constants)
    for row, values in zip(rows, found, strict=True):
        given = [
            (constants if a.constant else row)[list(a.columns)].reshape(a.shape) if a.shape else
            (constants if a.constant else row)[a.first]
            for a in arguments
        ]  # fmt: skip
        # a rounding of each function
        np.testing.assert_allclose(values.reshape(shape), function(*given) * np.ones(shape), rtol=1e-13, atol=1e-14)


def test_functions_stand_side_by_side_in_one_loop():
    rows, constants = np.random.default_rng(1).normal(size=(COUNT, 4)), np.array([0.5])
    rate = Argument(0, constant=True)
    one = Bound(perceptron, (Argument(0), Argument(1), rate))
    two = Bound(committee, (Argument(0, (2,)), Argument(2, (2,)), rate), (2,))
    both = compile_rows([one, two], 4, 1)(rows, constants)
    assert both.shape == (COUNT, 3)
    for columns, alone in ((slice(0, 1), one), (slice(1, 3), two)):
        np.testing.assert_array_equal(both[:, columns], compile_rows([alone], 4, 1)(rows, constants))


def twice(y: float) -> float:
    return 2.0 * y


def twice_if_positive(y: float) -> float:
    return 2.0 * y if y > 0 else 0.0


def test_what_is_written_down_wholly_is_taken_from_the_disk(monkeypatch):
    """Code of other functions is compiled in every process: what they call may change at any time."""
    rows, order, other = np.arange(1.0, 4.0).reshape(1, 3), (1, 0), (0, 1)
    bound = [Bound(twice, (Argument(0),)), Bound(perceptron, (Argument(1), Argument(2), Argument(0)))]
    compile_rows(bound, 3, 0, order)
    compile_rows([Bound(twice_if_positive, (Argument(0),))], 3, 0)

    def compiles(self, args, return_type):
        raise AssertionError("this is compiled again")

    row_functions._compiled.cache_clear()  # as in another process
    monkeypatch.setattr(functions._CallbackCompiler, "compile", compiles)
    np.testing.assert_array_equal(compile_rows(bound, 3, 0, order)(rows, np.empty(0)), [[0.0, 2.0]])
    for anew in (lambda: compile_rows(bound, 3, 0, other), lambda: compile_rows(bound[:1], 3, 0)):
        with pytest.raises(AssertionError, match="again"):
            anew()
    with pytest.raises(AssertionError, match="again"):
        compile_rows([Bound(twice_if_positive, (Argument(0),))], 3, 0)


MANY_STEPS = """
import sys
import numpy as np
from meanfield.numerics.compiled.row_functions import Argument, Bound, compile_rows

def steps_of(factor):
    def steps(y):  # too many to be inlined
        total = y
        for i in range(78):
            total = np.cos(total * factor) + np.sin(total + i) * y
        return total
    return steps

for factor in map(float, sys.argv[1:]):
    function = steps_of(factor)
    found = compile_rows([Bound(function, (Argument(0),))], 1, 0)(np.array([[0.3]]), np.empty(0))
    print(found[0, 0] - function(0.3))
"""


def test_what_is_taken_from_the_disk_stands_for_no_other_function(tmp_path):
    for factors in (["1.0"], ["1.0", "2.0"]):
        done = subprocess.run(
            [sys.executable, "-c", MANY_STEPS, *factors],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
    # roundings, as they grow
    assert [float(line) for line in done.stdout.split()] == pytest.approx([0.0, 0.0], abs=1e-9)


def test_values_of_another_number_are_nan():
    found = compile_rows([Bound(pair, (Argument(1, (2,)),), (3,))], 4, 6)
    assert np.isnan(found(np.zeros((1, 4)), np.zeros(6))).all()


TABLE = np.array([[0.5, -1.0], [2.0, 0.25]])


def means(s: FloatArray, y: float) -> FloatArray:
    return TABLE @ np.maximum(s, y) * s.mean() + np.array([y, s[0]]) ** 3 - (1 - 2 * (s > y)) / np.dot(s, s)


def truths(s: FloatArray, y: float) -> FloatArray:
    return 1.5 * ((s > y) & (s < 2.0) | ~(s >= y)) * -np.sign(s)


def listed_by_hand(s: FloatArray, y: float) -> list[float]:
    return [element * y for element in s]


@pytest.mark.parametrize("function", [means, truths, listed_by_hand])
def test_functions_of_small_arrays_become_arithmetic_of_numbers(function):  # type: ignore[no-untyped-def]
    found = straight_line(function, [(["s0", "s1"], (2,)), (["y"], ())], {})
    assert found is not None
    rng = np.random.default_rng(2)
    names = dict(found.functions)
    code = ["def straight(s0, s1, y):", *found.lines, f"return {', '.join(found.values)}"]
    exec("\n    ".join(code), names)
    for s, y in zip(rng.normal(size=(COUNT, 2)), rng.normal(size=COUNT), strict=True):
        # rounding
        np.testing.assert_allclose(names["straight"](*s, y), function(s, y), rtol=1e-13)
    test_a_function_of_rows_is_the_function(function, (Argument(1, (2,)), Argument(0)), (2,))


def branching(s: FloatArray) -> FloatArray:
    return 2.0 * s if s[0] > 0 else s


def filled(s: FloatArray) -> FloatArray:
    out = np.zeros(2)
    for i in range(2):
        out[i] = np.exp(s[i])
    return out


def counted(s: FloatArray) -> FloatArray:
    return s * (s > 0).sum()


def asking(s: FloatArray) -> FloatArray:
    return 2.0 * s if np.isscalar(s[0]) else s


@pytest.mark.parametrize("function", [branching, filled, counted, asking])
def test_functions_that_do_not_become_arithmetic_are_compiled_as_they_are(function):  # type: ignore[no-untyped-def]
    assert straight_line(function, [(["s0", "s1"], (2,))], {}) is None
    test_a_function_of_rows_is_the_function(function, (Argument(1, (2,)),), (2,))
