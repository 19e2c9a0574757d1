"""Copies of functions as they are now."""

import math
import types

import numba
import numpy as np
import pytest

from meanfield import Activation, Prior
from meanfield.ingredients.fingerprints import fingerprint
from meanfield.ingredients.snapshots import snapshot
from meanfield.numerics.compiled.scalar_functions import evaluate

SOURCE = """
import math
import numba
import numpy as np
from meanfield import Activation

SCALE = 2.0
TABLE = np.array([1.0, 2.0])

def helper(x):
    return math.tanh(SCALE * x)

@numba.njit
def compiled(x):
    return SCALE * x + TABLE[1]

@numba.njit(numba.float64(numba.float64))
def typed(x):
    return 2.0 * x

def even(n):
    return 1.0 if n < 1 else odd(n - 1)

def odd(n):
    return 0.0 if n < 1 else even(n - 1)

def smooth(x, shift=0.5):
    return helper(x) + compiled(x) + shift + typed(x)

def around(width):
    def inner(x):
        return width * x + others.SCALE * others.compiled(x)
    return inner
"""


@pytest.fixture
def own():
    module, others = types.ModuleType("own_snapshots"), types.ModuleType("own_others")
    for each in (module, others):
        exec(SOURCE, vars(each))
        vars(each)["others"] = others
    return module


def change(module):
    """Change everything that functions name."""
    module.SCALE = 5.0
    module.TABLE[1] = 7.0
    module.helper = module.compiled = abs
    if module.others is not module:
        change(module.others)


@pytest.mark.parametrize("make", [lambda own: own.smooth, lambda own: own.around(3.0)], ids=["globals", "closure"])
def test_a_copy_stays_what_it_was(own, make):
    function = make(own)
    before, value = fingerprint(function), function(0.3)
    copy = snapshot(function)
    own.others.others = own.others
    change(own)
    assert fingerprint(copy) == before != fingerprint(function)
    assert copy(0.3) == value
    assert evaluate(copy, np.array([0.3]))[0] == pytest.approx(value, rel=1e-15)  # rounding of tanh


def test_functions_that_call_each_other(own):
    copy = snapshot(own.even)
    own.odd = None
    assert copy(4) == 1.0


def test_dataclasses_keep_their_numbers_and_forget_what_they_computed(own):
    activation = Activation(own.helper, kinks=[0.0])
    assert activation.growth == 0.0
    copy = snapshot(activation)
    assert copy.kinks == (0.0,)
    assert "growth" not in vars(copy)
    assert snapshot(Prior(own.helper, linear=True)).linear


def test_what_packages_hold_is_named_as_before(own):
    assert snapshot(math.tanh) is math.tanh
    assert snapshot(np.linalg.norm) is np.linalg.norm
    assert snapshot(own.typed) is own.typed
    assert snapshot(numba) is numba


def test_variables_without_a_value():
    def outer():
        def inner(x):
            return x + later if x > 0 else x

        copy = snapshot(inner)
        later = 1.0
        return copy, later

    with pytest.raises(NameError):
        outer()[0](1.0)
