"""Gamma and chi-squared variables of compiled code: their laws, and numbers that are theirs alone.

The seeds are fixed. Had they been drawn at random, all statistical tests of this file together would raise a false
alarm with probability below `FALSE_ALARM`: every test has an equal share of it, and each of the p-values that it looks
at an equal share of that (Bonferroni).
"""

import math
from functools import partial

import numba
import numpy as np
import pytest
from scipy import stats

from meanfield.ensembles.gamma_variables import chi_squared, gamma
from meanfield.ensembles.streams import NORMALS, UNIFORMS, fill_normals, fill_uniforms, stream_key
from tests.oracles.p_values import all_above, independent

FALSE_ALARM = 1e-3  # of the whole file
TESTS = 15
"""Largest number of statistical tests in this file."""
check = partial(all_above, FALSE_ALARM / TESTS)
KEY = stream_key(31)


@numba.njit(cache=True, error_model="numpy")
def gammas(shape, key, normals, uniforms, out):
    for i in range(out.size):
        out[i] = gamma(shape, normals[i], uniforms[i], key, np.int64(0), i)


@numba.njit(cache=True, error_model="numpy")
def chi_squares(degrees, key, normals, uniforms, out):
    for i in range(out.size):
        out[i] = chi_squared(degrees, normals[i], uniforms[i], key, np.int64(0), i)


DEGREES = [1, 2, 3, 10, 1000, 10**9]


def numbers(size):
    normals, uniforms = np.empty(size), np.empty(size)
    fill_normals(KEY, 0, NORMALS, 0, normals)
    fill_uniforms(KEY, 0, UNIFORMS, 0, uniforms)
    return normals, uniforms


@pytest.mark.parametrize("degrees", DEGREES)
def test_chi_squared(degrees):
    size = 2**17
    x = np.empty(size)
    chi_squares(degrees, KEY, *numbers(size), x)
    right = stats.chi2(degrees)
    z = (x - degrees) / math.sqrt(2 * degrees)
    error = math.sqrt((2 + 12 / degrees) / size)  # of the mean of z^2, by the fourth moment 3 + 12/degrees
    check(
        law=stats.kstest(x, right.cdf).pvalue,
        mean=2 * stats.norm.sf(abs(z.mean()) * math.sqrt(size)),
        variance=2 * stats.norm.sf(abs((z * z).mean() - 1) / error),
        tails=stats.binomtest(int(np.count_nonzero((right.sf(x) < 1e-4) | (right.cdf(x) < 1e-4))), size, 2e-4).pvalue,
        neighbours=independent(x[1:], x[:-1]),
    )


@pytest.mark.parametrize("shape", [1.0, 1.05, 2.5, 75.0])
def test_gamma(shape):
    x = np.empty(2**17)
    normals, uniforms = numbers(x.size)
    gammas(shape, KEY, normals, uniforms, x)
    d = shape - 1 / 3
    proposed = d * (1 + normals / math.sqrt(9 * d)) ** 3
    rejected = np.mean(np.abs(x - proposed) > 1e-9 * x)  # rounding
    assert rejected < 0.05  # what the module says
    if shape < 2:  # then rejections matter here
        assert stats.kstest(proposed, stats.gamma(shape).cdf).pvalue < FALSE_ALARM / TESTS  # where `check` refuses
    check(law=stats.kstest(x, stats.gamma(shape).cdf).pvalue)


def test_rejected_variables_take_numbers_of_their_own():
    """Where the first attempt fails for sure, neighbours differ, and other replicas and seeds differ."""
    out, again, other = np.empty(1000), np.empty(1000), np.empty(1000)
    far = np.full(1000, -10.0), np.full(1000, 0.5)
    gammas(1.0, KEY, *far, out)
    gammas(1.0, KEY, *far, again)
    gammas(1.0, stream_key(32), *far, other)
    assert np.array_equal(out, again)
    assert len(np.unique([out, other])) == 2000
    check(law=stats.kstest(out, "expon").pvalue)
