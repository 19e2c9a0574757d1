"""asinh and its slope in lanes against more digits than they have."""

import mpmath as mp
import numba
import numpy as np

from meanfield.numerics.compiled.logarithm import arcsinh_and_slope
from meanfield.numerics.compiled.vectors import load, store

LANES = 8


@numba.njit(error_model="numpy", fastmath={"contract"})
def fill(z, value, slope):
    for i in range(z.size // LANES):
        at = numba.uint64(i * LANES)
        one, other = arcsinh_and_slope(load(z, at, LANES))
        store(value, at, one)
        store(slope, at, other)


def test_asinh_and_its_slope():
    z = np.concatenate([[0.0], np.geomspace(1e-12, 1e12, 399)])
    value, slope = np.empty_like(z), np.empty_like(z)
    fill(z, value, slope)
    with mp.workdps(40):
        right = np.array([[float(mp.asinh(each)), float(1 / mp.sqrt(1 + mp.mpf(each) ** 2))] for each in z])
    assert np.all(np.abs(value - right[:, 0]) <= 4e-16 * np.maximum(1.0, right[:, 0]))  # of log_positive, and a sum
    np.testing.assert_allclose(slope, right[:, 1], rtol=6e-16)  # five roundings of 1.1e-16
