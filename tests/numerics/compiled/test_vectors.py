"""Lanes against NumPy: what is done to all numbers at once must be what is done to each."""

import numba
import numpy as np
import pytest

from meanfield.numerics.compiled.vectors import NARROW_LANES, WIDE_LANES, lanes_for, load, spread, store, where_less


def computation(lanes):
    @numba.njit
    def compute(x, y, number, out):
        a, b = load(x, np.uint64(1), lanes), load(y, np.uint64(0), lanes)  # one number on: loads need no alignment
        results = (a + b, a - b, a * b, a / b, number + a, number - a, number * a, number / a, a + number, a - number)
        for i in numba.literal_unroll(results):
            store(out, np.uint64(0), i)
            out = out[lanes:]
        store(out, np.uint64(0), where_less(a, number, b, spread(number, lanes)))
        store(out, np.uint64(lanes), where_less(a, number, b, number))

    return compute


@pytest.fixture(scope="module", params=[NARROW_LANES, WIDE_LANES])
def lanes(request):
    return request.param


@pytest.fixture(scope="module")
def compute(lanes):
    return computation(lanes)


def test_arithmetic_is_that_of_numpy(compute, lanes):
    rng = np.random.default_rng(0)
    x, y, number = rng.normal(size=lanes + 1), rng.normal(size=lanes), 0.3
    out = np.empty(12 * lanes)
    compute(x, y, number, out)
    a = x[1:]
    expected = [a + y, a - y, a * y, a / y, number + a, number - a, number * a, number / a, a + number, a - number]
    assert np.array_equal(out.reshape(12, lanes), [*expected, *2 * [np.where(a < number, y, number)]])


def test_products_of_undefined_numbers_stay_undefined(compute, lanes):
    """NaN is not less than anything: no branch hides it."""
    x, out = np.full(lanes + 1, np.nan), np.empty(12 * lanes)
    compute(x, np.ones(lanes), 0.5, out)
    assert np.all(np.isnan(out[: 10 * lanes]))
    assert np.all(out[10 * lanes :] == 0.5)


def test_few_nodes_take_few_lanes():
    assert [lanes_for(nodes) for nodes in (1, NARROW_LANES, NARROW_LANES + 1, WIDE_LANES, 3 * WIDE_LANES)] == [
        NARROW_LANES,
        NARROW_LANES,
        WIDE_LANES,
        WIDE_LANES,
        WIDE_LANES,
    ]
