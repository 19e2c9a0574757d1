"""Closures in compiled code: tables of those in Python, where they end, and what is not tabulated."""

import math
import sys
import types
from typing import NamedTuple

import numba
import numpy as np
import pytest

from meanfield import InputError
from meanfield.families.contrastive.closures import Closure
from meanfield.mckean_vlasov.closures import called_values, closure_values, compiled_closure, register_closure
from tests.example_problems import make_problem

FEATURE = "{ hidden = { law = 'rademacher' }, initial_overlap = 0.3 }"


@numba.njit(cache=True)
def evaluate(closure, q):
    return closure_values(closure, q)


def smooth(q):
    return np.sin(3.0 * q) + q * np.sqrt(1.0 - q * q), 0.1 + float(q[0]) ** 4


def test_a_table_is_the_closure_where_it_reaches():
    table, reach = compiled_closure(smooth, 1)
    assert reach == pytest.approx(math.sin(math.acos(0.01)), rel=1e-15)  # rounding
    for q in np.linspace(-reach, reach, 101)[:, None]:
        assert evaluate(table, q) == pytest.approx(called_values(smooth, q), rel=1e-11, abs=1e-12)  # 12 digits


def test_a_closure_that_jumps_near_the_sphere_has_a_shorter_table():
    def late(q):
        return q, 0.1 + (abs(float(q[0])) > 0.999)  # between the ends of the first and the second table

    table, reach = compiled_closure(late, 1)
    assert reach == pytest.approx(math.sin(math.acos(0.1)), rel=1e-15)  # rounding
    assert evaluate(table, np.array([0.9])) == pytest.approx([0.9, 0.1], rel=1e-11)  # 12 digits


def test_what_is_not_smooth_or_has_several_features_is_called():
    assert compiled_closure(lambda q: (q, abs(float(q[0]) - 0.1)), 1)[1] == -1.0
    assert compiled_closure(smooth, 2)[1] == -1.0


def test_noise_of_the_closure_does_not_end_in_the_table():
    rng = np.random.default_rng(0)
    assert compiled_closure(lambda q: (q + 1e-7 * rng.standard_normal(1), 0.1), 1)[1] == -1.0


def test_the_closure_of_a_family_is_its_own():
    """Of one feature a table, which ends somewhere; of two features compiled code."""
    closure = Closure(make_problem())
    compiled, reach = compiled_closure(closure, 1)
    assert 0.9999 < reach < 1.0
    for q in np.array([[0.0], [0.3], [-0.99]]):
        g, diffusion = closure(q)
        assert np.array_equal(evaluate(compiled, q), [*g, diffusion])
    closure = Closure(make_problem(f"features = [{FEATURE}, {FEATURE}]"))
    compiled, reach = compiled_closure(closure, 2)
    assert reach == math.inf
    g, diffusion = closure(np.array([0.3, 0.4]))
    assert np.array_equal(evaluate(compiled, np.array([0.3, 0.4])), [*g, diffusion])


def test_rounding_does_not_take_a_closure_out_of_the_ball():
    seen = []

    def remembering(q):
        seen.append(float(np.linalg.norm(q)))
        return q, 0.0

    called_values(remembering, np.array([0.8, 0.6 + 1e-9]))
    called_values(remembering, np.array([0.3, 0.4]))
    assert seen == pytest.approx([1.0, 0.5], abs=1e-15)  # rounding
    assert seen[0] <= 1.0 + 1e-15  # rounding


@pytest.fixture
def closure_of(monkeypatch):
    """Make the closure of a family as a module defines it, tuple and function, which is imported anew each time."""

    def make(text):
        class OwnClosure(NamedTuple):
            scale: float

        module = types.ModuleType("own_closures")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(f"import numpy as np\ndef values(closure, q):\n    return np.array([{text}, 1.0])", vars(module))
        module.values = numba.njit(module.values)
        return OwnClosure, module.values

    return make


def test_a_closure_of_a_name_has_one_function(closure_of):
    @numba.njit
    def called(closure, q):
        return closure_values(closure, q)

    for _ in range(2):  # the module is imported anew, but says the same
        kind, function = closure_of("closure.scale * q[0]")
        register_closure(kind)(function)
        assert called(kind(2.0), np.array([0.5]))[0] == 1.0
    kind, function = closure_of("closure.scale + q[0]")
    with pytest.raises(InputError, match="compiled closures of the name OwnClosure have another function"):
        register_closure(kind)(function)
