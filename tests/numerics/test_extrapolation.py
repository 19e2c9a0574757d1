"""Weights that eliminate powers, and densities with masses from elsewhere."""

import numpy as np
import pytest
from scipy.stats import norm

from meanfield.numerics.extrapolation import ErrorSeries, extrapolation_weights, first_order_rest, sharpen


@pytest.mark.parametrize(("factors", "powers"), [((1, 2), (2,)), ((2, 3, 4), (2, 4)), ((3, 4, 6, 8), (2, 3, 4))])
def test_weights_eliminate_their_powers_and_keep_the_limit(factors, powers):
    weights = extrapolation_weights(factors, powers)
    values = 0.7 + sum((p + 1) * np.array(factors, dtype=float) ** -p for p in powers)
    assert weights @ values == pytest.approx(0.7, rel=1e-13)  # exact: rounding


def test_two_levels_give_the_classical_weights():
    assert extrapolation_weights((1, 2), (2,)) == pytest.approx([-1 / 3, 4 / 3], rel=1e-14)  # rounding


FACTORS = (3, 4, 6, 8)


def largest(differences):
    """Largest differences of all outputs."""
    return np.abs(differences).max(axis=1)


def series(**coefficients):
    """Solutions of those factors, one output and moment; c1 = 2 stands for 2/k."""
    k = np.array(FACTORS, dtype=float)
    return sum(c * k ** -int(name[1:]) for name, c in coefficients.items())[:, None, None]


@pytest.mark.parametrize("first", [3e-3, 3e-2, -0.3])
def test_a_term_of_first_order_is_measured_by_what_it_does_to_differences(first):
    weights = np.concatenate([[0.0], extrapolation_weights(FACTORS[1:], (2, 4))])
    solutions = series(c1=first, c2=0.1)
    error = abs(weights @ solutions[:, 0, 0])
    (rest,) = first_order_rest(FACTORS, solutions, weights, largest)
    assert rest == pytest.approx(error, rel=1e-9)  # nothing else is in the series: rounding
    (rest,) = first_order_rest(FACTORS, series(c1=first, c2=0.1, c4=1e-2), weights, largest)
    assert rest >= 0.8 * error  # a fourth order that is seen as part of the first one hides a fifth of it at most


@pytest.mark.parametrize("others", [{}, {"c4": 0.5}, {"c4": -0.5}, {"c3": 0.03, "c4": 0.1}])
def test_series_that_become_of_second_order_have_no_rest(others):
    weights = np.concatenate([[0.0], extrapolation_weights(FACTORS[1:], (2, 4))])
    assert first_order_rest(FACTORS, series(c2=0.5, **others), weights, largest) == 0.0
    assert first_order_rest(FACTORS, np.zeros((4, 1, 1)), weights, largest) == 0.0


def test_estimates_that_fall_faster_than_the_order_are_not_believed():
    series = ErrorSeries()
    assert series.safety(1e-3, 1.0) == 3.0
    assert series.safety(1e-4, 0.1) == pytest.approx(1 / 0.9**2, rel=1e-12)  # as fast as the order
    assert series.safety(1e-7, 0.01) == pytest.approx(100.0, rel=0.01)  # 1e-5 was to be expected
    assert series.safety(1e-7, 0.001) > 50  # estimates that do not fall


def averages(edges, deviation):
    return np.diff(norm.cdf(edges, 0.3, deviation)) / np.diff(edges)


@pytest.mark.parametrize("several", [1, 2, 4])
def test_sharpened_density_has_the_masses_and_almost_the_shape(several):
    edges = np.linspace(-8.0, 8.0, 50 * several + 1)
    right, wrong = averages(edges, 1.0), averages(edges, 1.01)
    h = edges[1] - edges[0]
    masses = h * right.reshape(-1, several).sum(axis=1)
    P = sharpen(masses, wrong, h)
    assert h * P.reshape(-1, several).sum(axis=1) == pytest.approx(masses, abs=1e-12)  # rounding, and the far tails
    error, before = h * np.abs(P - right).sum(), h * np.abs(wrong - right).sum()
    assert error < 1e-3 * before  # a cubic resolves the factor exp(0.01 w^2) on cells of a third of the deviation
    assert P.min() >= 0


def test_negative_rounding_is_cut_off():
    masses, density = np.full(6, 1 / 6), np.array([1.0, 1.0, -1e-16, 1.0, 1.0, 1.0])
    assert sharpen(masses, density, 1.0).min() >= 0
