"""Critical values against Prop. 3 solved by hand."""

import numpy as np
import pytest

from meanfield import InputError
from meanfield.families.contrastive.learnability.learnability import learnability
from meanfield.families.contrastive.stationary.critical import critical_values
from tests.example_problems import feature, features, gaussian, make_problem

MOMENT = "features[0].hidden.second_moment"
BOTH = ("augmentation.variance[0]", "augmentation.variance[1]")


def problem_with(*lines, m2=1.1, tau=0.02, m=1):
    """x^2 without centring: the threshold is 1 + 10 tau/m."""
    return make_problem(
        features(feature(0.1, gaussian(m2))), f"model = {{ learning_rate = {tau}, batch_size = {m} }}", *lines
    )


@pytest.mark.parametrize(
    ("key", "ends", "value"),
    [
        (MOMENT, (0.5, 2.0), 1.2),
        ("model.learning_rate", (1e-4, 1.0), 0.01),
        ("model.batch_size", (1, 1000), 2.0),
    ],
)
def test_prop_3_solved_for_each_number(key, ends, value):
    found = critical_values(problem_with(), key, *ends)
    np.testing.assert_allclose(found.values, [value], rtol=1e-9)  # digits of closures


def test_whole_batch_sizes_that_learn():
    assert critical_values(problem_with(), "model.batch_size", 1, 1000).whole_numbers == ((3, 1000),)  # 2 is marginal
    assert critical_values(problem_with(tau=0.025), "model.batch_size", 1, 1000).whole_numbers == ((3, 1000),)
    assert critical_values(problem_with(tau=0.5), "model.batch_size", 1, 20).whole_numbers == ()


def test_real_batch_sizes_with_the_mean_of_the_batch():
    """A batch size that is no whole number, by the formulas of theory.md, section 2, with moments of x^2."""
    found = critical_values(
        problem_with('model.centering = "batch"', m2=1.25, tau=0.1, m=4), "model.batch_size", 2, 100
    )
    m = float(found.values[0])
    keep, spread = 1 - 1 / m, (m - 1) / m**2
    # s = x^2 - 1: <s^2 s'^2> = 40, Var = 2, <s'^2> = 4, A = 8
    diffusion = 4 * 0.1**2 / m * (keep**2 * 40 + spread * 2 * 4)
    assert pytest.approx(diffusion / (2 * 0.1 * 8 * keep), rel=1e-9) == 0.25  # digits of closures


def test_all_crossings_of_opposite_noise():
    """x^2, opposite views: Lambda/A first falls with the noise, then grows, and A changes its sign at eta = 3."""
    noise = "augmentation = { variance = [0.1, 0.1], correlation = -1.0 }"
    problem = problem_with(noise, m2=1.0499, tau=0.005)
    found = critical_values(problem, BOTH, 0.0, 4.0)
    excess = np.polynomial.Polynomial([30, -12, 12, -12, 30]) * (4 * 0.005)
    roots = (excess - 0.0499 * np.polynomial.Polynomial([12, -4])).roots()
    right = np.sort(roots[np.abs(roots.imag) < 1e-9].real)
    assert len(right) == 2
    np.testing.assert_allclose(found.values, right, rtol=1e-6)  # digits of closures over the small slope at a crossing
    np.testing.assert_allclose(found.learnable, [right], rtol=1e-6)  # likewise


def test_a_prior_moves_no_critical_value():
    problem = problem_with('prior = { name = "quartic", strength = 2.0 }')
    np.testing.assert_allclose(critical_values(problem, MOMENT, 1.0, 2.0).values, [1.2], rtol=1e-9)  # likewise


def test_several_features_need_one_that_grows():
    problem = make_problem(features(feature(0.1, gaussian(0.9)), feature(0.1, gaussian(1.3))), "model.batch_size = 1")
    assert learnability(problem).learnable.tolist() == [False, True]
    assert critical_values(problem, "model.learning_rate", 1e-3, 1.0).values == pytest.approx([0.03], rel=1e-9)


@pytest.mark.parametrize(
    ("key", "ends", "message"),
    [
        ("time.stop", (1.0, 2.0), "learnability does not depend on it"),
        ("features[0].initial_overlap", (0.1, 0.2), "learnability does not depend on it"),
        ("model.learning_rate", (0.2, 0.1), "give a range that increases"),
        ("model.batch_size", (0.5, 10), "batch_size"),
        (MOMENT, (-1.0, 2.0), "second_moment"),
        ("model.learning_rat", (0.1, 0.2), "did you mean 'model.learning_rate'"),
    ],
)
def test_bad_input_is_refused(key, ends, message):
    with pytest.raises(InputError, match=message):
        critical_values(problem_with(), key, *ends)


def test_a_range_in_which_the_state_does_not_exist_is_refused():
    problem = problem_with('prior = { name = "l1", strength = 1.0 }')
    with pytest.raises(InputError, match=r"prior\.strength = .*outweighs the noise"):
        critical_values(problem, "prior.strength", 0.0, 10.0)
