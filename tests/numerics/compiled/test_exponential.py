"""exp in arithmetic that vectorises, against libm."""

import numba
import numpy as np
import pytest

from meanfield.numerics.compiled.exponential import LAST_EXPONENT, exp_between, exp_minus


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
    assert between == pytest.approx(np.exp(y), rel=4e-16, abs=0)  # two units in the last place, and libm's own
    assert minus == pytest.approx(np.exp(-abs(y)), rel=4e-16, abs=0)  # the same


def test_exponential_is_cut_where_numbers_end():
    y = np.array([LAST_EXPONENT, 1e3, 1e300, np.inf])
    minus = np.empty_like(y)
    fill(y, np.empty_like(y), minus)
    assert np.all(minus == minus[0])
    assert 0 < minus[0] < 1e-303
