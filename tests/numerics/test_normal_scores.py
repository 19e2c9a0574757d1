"""Normal scores against those of laws that are known: straight lines, jumps, and what one cell holds."""

import numpy as np
import pytest
from scipy.stats import norm

from meanfield.numerics.normal_scores import LARGEST_SCORE, normal_scores

EDGES = np.linspace(-9.0, 9.0, 361)


def masses_of(distribution_function):
    return np.diff(distribution_function(EDGES))


@pytest.mark.parametrize("width", [1.0, 0.1, 0.014])
def test_scores_of_a_gaussian_law_are_a_straight_line(width):
    """Far beyond the digits of its probabilities, and with three edges within it: cells are 0.05 wide."""
    means = np.array([[-1.013], [0.0], [0.507]])
    z = normal_scores(EDGES, np.array([masses_of(lambda w, m=m: norm.cdf(w, m, width)) for m in means[:, 0]]))
    exact = (EDGES - means) / width
    near = np.abs(exact) < 1.4 * LARGEST_SCORE
    np.testing.assert_allclose(z[near], exact[near], rtol=0, atol=1e-7)  # 1e-15 / n(5), continued over 40 cells
    np.testing.assert_allclose(z, exact, rtol=1e-7, atol=1e-7)  # the same


def test_scores_of_any_law_give_its_probabilities_back():
    law = lambda w: 0.3 * norm.cdf(w, -1.0, 0.03) + 0.7 * norm.cdf(w, 1.0, 0.2)  # noqa: E731
    z = normal_scores(EDGES, masses_of(law))
    assert (np.diff(z) >= 0).all()
    np.testing.assert_allclose(norm.cdf(z), law(EDGES), rtol=0, atol=norm.sf(LARGEST_SCORE))  # the tails


def test_a_law_within_one_cell_has_steep_finite_scores():
    masses = np.zeros((1, 360))
    masses[0, 100] = 1.0
    z = normal_scores(EDGES, masses)[0]
    assert np.isfinite(z).all()
    assert z[100] < -LARGEST_SCORE
    assert z[101] > LARGEST_SCORE
    assert (np.diff(z) > 0).all()


def test_least_numbers_and_rounding_below_zero_do_no_harm():
    masses = masses_of(norm.cdf)
    z = normal_scores(EDGES, masses)
    for small in (1e-320, -1e-320, -1e-17):
        np.testing.assert_allclose(normal_scores(EDGES, masses + small * (masses < 1e-12)), z, atol=1e-6)
