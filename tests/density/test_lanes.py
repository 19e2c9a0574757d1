"""Lanes against NumPy: what is done to all numbers at once must be what is done to each."""

import numba
import numpy as np

from meanfield.density.lanes import LANES, load, spread, store, where_less


@numba.njit
def compute(x, y, number, out):
    a, b = load(x, np.uint64(1)), load(y, np.uint64(0))  # one number on: loads need no alignment
    results = (a + b, a - b, a * b, a / b, number + a, number - a, number * a, number / a, a + number, a - number)
    for i in numba.literal_unroll(results):
        store(out, np.uint64(0), i)
        out = out[LANES:]
    store(out, np.uint64(0), where_less(a, number, b, spread(number)))


def test_arithmetic_is_that_of_numpy():
    rng = np.random.default_rng(0)
    x, y, number = rng.normal(size=LANES + 1), rng.normal(size=LANES), 0.3
    out = np.empty(11 * LANES)
    compute(x, y, number, out)
    a = x[1:]
    expected = [a + y, a - y, a * y, a / y, number + a, number - a, number * a, number / a, a + number, a - number]
    assert np.array_equal(out.reshape(11, LANES), [*expected, np.where(a < number, y, number)])


def test_products_of_undefined_numbers_stay_undefined():
    """NaN is not less than anything: no branch hides it."""
    x, out = np.full(LANES + 1, np.nan), np.empty(11 * LANES)
    compute(x, np.ones(LANES), 0.5, out)
    assert np.all(np.isnan(out[: 10 * LANES]))
    assert np.all(out[10 * LANES :] == 0.5)
