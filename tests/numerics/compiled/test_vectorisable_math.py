"""Functions of math in arithmetic that vectorises, against those of mpmath and NumPy, and their place in loops."""

import math

import mpmath as mp
import numba
import numpy as np
import pytest

from meanfield.numerics.compiled import vectorisable_math as ours
from meanfield.numerics.compiled.scalar_functions import call_loop, compile_loop

NAMES = ("exp", "log1p", "tanh", "erf", "erfc", "sin", "cos")


@numba.njit(cache=True, error_model="numpy")
def fill(x, values):
    for i in range(x.size):
        values[0, i] = ours.exp(x[i])
        values[1, i] = ours.log1p(x[i])
        values[2, i] = ours.tanh(x[i])
        values[3, i] = ours.erf(x[i])
        values[4, i] = ours.erfc(x[i])
        values[5, i] = ours.sin(x[i])
        values[6, i] = ours.cos(x[i])


def values(x):
    found = np.empty((len(NAMES), len(x)))
    fill(x, found)
    return dict(zip(NAMES, found, strict=True))


def test_values_are_right_to_some_units_in_the_last_place():
    """From 1e-20 to 26, with what lies beside the ends of polynomials; erfc falls to 1e-296."""
    rng = np.random.default_rng(0)
    sizes = np.concatenate([rng.uniform(0, 3, 50), rng.uniform(0, 26, 35), 10.0 ** rng.uniform(-20, 0, 25)])
    ends = [1.0, np.nextafter(1.0, 0), 0.5 * np.pi, 20.0, 0.5 * math.log(2)]
    x = np.concatenate([sizes, ends, -sizes, -np.array(ends)])
    found = values(x)
    for name in NAMES:
        inside = x > -1 if name == "log1p" else np.full(len(x), True)
        with mp.workdps(40):
            right = np.array([float(getattr(mp, name)(mp.mpf(t))) for t in x[inside]])
        # Sines of angles up to 26 next to a multiple of pi lose what pi is cut to, 1e-32 of some turns.
        np.testing.assert_allclose(found[name][inside], right, rtol=9e-16, atol=0, err_msg=name)  # four units


def test_large_angles():
    x = np.random.default_rng(1).uniform(-1e8, 1e8, 300)
    assert values(x)["sin"] == pytest.approx(np.sin(x), abs=4e-16)  # some units in the last place of 1
    assert values(x)["cos"] == pytest.approx(np.cos(x), abs=4e-16)  # the same


def test_ends_of_the_number_line():
    x = np.array([math.nan, math.inf, -math.inf, 0.0, 709.5, 710.0, -750.0, 1e300, -1e300, 1e-310, -1.0, -2.0])
    found = values(x)
    with np.errstate(all="ignore"):
        right = {name: getattr(np, name)(x) for name in ("exp", "log1p", "tanh", "sin", "cos")}
    right["erf"], right["erfc"] = (np.array([f(t) for t in x]) for f in (math.erf, math.erfc))
    for name in ("sin", "cos"):
        right[name][7:9] = math.nan  # angles whose neighbours are turns away
    for name in NAMES:
        np.testing.assert_allclose(found[name], right[name], rtol=1e-14, atol=0, err_msg=name)  # exp near overflow


@numba.njit
def apply(address, x, out):
    call_loop(address, x, out)


def test_loops_use_them_in_place_of_math():
    """Also in functions that close over parameters; what is not written anew is math's own."""
    scale = 0.7

    def function(x):
        return math.sqrt(scale) * math.tanh(scale * x) + math.floor(x)

    x = np.linspace(-3, 3, 101)
    out = np.empty_like(x)
    apply(compile_loop(function), x, out)
    assert out == pytest.approx([function(t) for t in x], rel=1e-15, abs=1e-15)  # rounding of the sum
    assert function.__globals__["math"] is math
