"""Nonlinearities of hidden manifolds: their moments."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from meanfield.ingredients.nonlinearities import Nonlinearity, make_nonlinearity


@pytest.mark.parametrize(
    ("name", "mean", "slope", "square"),
    [
        ("sign", 0.0, math.sqrt(2 / math.pi), 1.0),
        ("scaled_erf", 0.0, 1 / math.sqrt(math.pi), 1 / 3),
        ("tanh", 0.0, 0.6057055096, 0.3942944904),
        ("linear", 0.0, 1.0, 1.0),
        ("relu", 1 / math.sqrt(2 * math.pi), 0.5, 0.5),
        ("step", 0.5, 1 / math.sqrt(2 * math.pi), 0.5),
    ],
)
def test_moments_of_nonlinearities(name, mean, slope, square):
    found = make_nonlinearity(name).moments(1.0)
    assert [found.mean, found.slope, found.square] == pytest.approx([mean, slope, square], abs=1e-10)  # digits printed


def test_jumps_that_are_not_named_are_found():
    found = Nonlinearity(lambda x: 1.0 if x > 0.3 else -1.0 if x < -0.7712 else 0.0).moments(2.0)
    low, high = ndtr(-0.3856), ndtr(-0.15)
    assert [found.mean, found.square] == pytest.approx([high - low, high + low], abs=1e-11)  # accuracy of the moments


@pytest.mark.parametrize("f", [lambda x: np.exp(x * x / 4), lambda x: np.exp(x * x), lambda x: 1e7 * x])
def test_nonlinearities_that_overflow_are_refused(f):
    with pytest.raises(ValueError, match="overflows"):
        Nonlinearity(f).moments(1.0)
