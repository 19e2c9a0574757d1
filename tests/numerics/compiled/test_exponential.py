"""exp in arithmetic that vectorises, against libm; asinh in lanes, against more digits than they have."""

import mpmath as mp
import numba
import numpy as np

from meanfield.numerics.compiled.exponential import LAST_EXPONENT, arcsinh_and_slope, exp_between, exp_minus
from meanfield.numerics.compiled.vectors import load, store

LANES = 8


@numba.njit(cache=True)
def fill(y, between, minus):
    for i in range(y.size):
        between[i] = exp_between(y[i])
        minus[i] = exp_minus(abs(y[i]))


def test_exponentials_are_exact_to_rounding():
    rng = np.random.default_rng(0)
    magnitudes = np.concatenate(
        [rng.uniform(0, LAST_EXPONENT, 20_000), np.geomspace(1e-300, LAST_EXPONENT, 999), [0.0]]
    )
    y = np.concatenate([-magnitudes, magnitudes])
    between, minus = np.empty_like(y), np.empty_like(y)
    fill(y, between, minus)
    # two units in the last place, and libm's own
    np.testing.assert_allclose(between, np.exp(y), rtol=4e-16, atol=0)
    np.testing.assert_allclose(minus, np.exp(-abs(y)), rtol=4e-16, atol=0)


def test_exponential_is_cut_where_numbers_end():
    y = np.array([LAST_EXPONENT, 1e3, 1e300, np.inf])
    minus = np.empty_like(y)
    fill(y, np.empty_like(y), minus)
    assert np.all(minus == minus[0])
    assert 0 < minus[0] < 1e-303


@numba.njit(error_model="numpy", fastmath={"contract"})
def fill_by_lanes(z, value, slope):
    for i in range(z.size // LANES):
        at = numba.uint64(i * LANES)
        one, other = arcsinh_and_slope(load(z, at, LANES))
        store(value, at, one)
        store(slope, at, other)


def test_asinh_and_its_slope():
    z = np.concatenate([[0.0], np.geomspace(1e-12, 1e12, 399)])
    value, slope = np.empty_like(z), np.empty_like(z)
    fill_by_lanes(z, value, slope)
    with mp.workdps(40):
        right = np.array([[float(mp.asinh(each)), float(1 / mp.sqrt(1 + mp.mpf(each) ** 2))] for each in z])
    assert np.all(np.abs(value - right[:, 0]) <= 4e-16 * np.maximum(1.0, right[:, 0]))  # of log_positive, and a sum
    np.testing.assert_allclose(slope, right[:, 1], rtol=6e-16)  # five roundings of 1.1e-16
