"""Averages of polynomials by moments against the quadrature that they replace, and against sums over all values."""

from itertools import product

import numpy as np
import pytest

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.closures.expectation import averages_at
from meanfield.families.contrastive.closures.row_moments import no_moments
from tests.example_problems import make_problem

LAPLACE = '{ hidden = { law = "laplace", second_moment = 1.3 }, initial_overlap = 0.1 }'
UNIFORM = '{ hidden = { law = "uniform", second_moment = 1.1 }, initial_overlap = 0.1 }'
SKEW = '{ hidden = { law = "two_point", values = [-0.5, 2.0], probability = 0.8 }, initial_overlap = 0.1 }'
STUDENT = '{ hidden = { law = "student_t", degrees_of_freedom = 20.0, second_moment = 1.2 }, initial_overlap = 0.1 }'
PLAIN = "{ initial_overlap = 0.1 }"
JOINT = (
    'hidden = { law = "discrete", values = [[1.0, 1.5], [-1.0, 0.5], [0.2, -2.0]], probabilities = [0.3, 0.5, 0.2] }'
)
NOISES = ["", "augmentation = { variance = [0.3, 0.7], correlation = -0.4 }"]
OVERLAPS = [(0.0, 0.0, 0.0), (0.3, -0.2, 0.1), (0.7, 0.0, -0.7), (1e-9, 0.6, 0.8)]


def assert_equal(by_moments, by_quadrature):
    """To 1e-11 of the largest average: quadratures have some 1e-13 of sums of moments up to the tenth."""
    largest = np.abs(by_quadrature).max()
    np.testing.assert_allclose(by_moments, by_quadrature, rtol=1e-11, atol=1e-11 * largest)  # see the docstring


def both_ways(problem, q):
    expectation = Closure(problem).expectation
    assert expectation.moments.drift > 0
    return averages_at(expectation, q), averages_at(expectation._replace(moments=no_moments()), q)


@pytest.mark.parametrize(
    ("tables", "activation", "centering", "noise"),
    [
        # by default all pairs of two of the four occur
        pytest.param(tables, activation, centering, noise, marks=() if (i + j + k + n) % 2 == 0 else pytest.mark.slow)
        for i, tables in enumerate([(LAPLACE, UNIFORM, SKEW), (STUDENT, SKEW, LAPLACE)])
        for j, activation in enumerate(["linear", "quadratic", "cubic"])
        for k, centering in enumerate(["none", "batch"])
        for n, noise in enumerate(NOISES)
    ],
)
def test_moments_and_quadrature_agree(tables, activation, centering, noise):
    model = f'model.activation = "{activation}"\nmodel.centering = "{centering}"'
    problem = make_problem(f"features = [{', '.join(tables)}]", model, noise)
    for overlaps in OVERLAPS:
        assert_equal(*both_ways(problem, np.array(overlaps)))


@pytest.mark.parametrize("centering", ["none", "population"])
def test_variables_that_depend_on_each_other_keep_their_joint_law(centering):
    model = f'model.activation = "cubic"\nmodel.centering = "{centering}"'
    problem = make_problem(f"features = [{PLAIN}, {PLAIN}]", JOINT, model, NOISES[1])
    assert_equal(*both_ways(problem, np.array([0.5, -0.6])))


def test_drift_and_noise_are_sums_over_all_values():
    """theory.md, section 2, for sigma = x^2 without noise: s1 = s2, s = Theta^2, p = 2 Theta and D(s s) = 2 s p."""
    problem = make_problem(f"features = [{SKEW}, {SKEW}, {SKEW}, {SKEW}]", "model.learning_rate = 0.05")
    q = np.array([0.4, -0.3, 0.5, 0.2])
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)  # exact up to the fifteenth power
    expected = np.zeros(5)
    for values in product([(-0.5, 0.8), (2.0, 0.2)], repeat=4):
        c, chance = np.array([value for value, _ in values]), np.prod([share for _, share in values])
        theta = c @ q + np.sqrt(1 - q @ q) * nodes
        weight = chance * weights / weights.sum()
        expected[:4] += 0.05 * (q * (weight @ (12 * theta**2)) - c * (weight @ (4 * theta**3)))
        expected[4] += 0.05**2 / problem.model.batch_size * 4 * (weight @ (4 * theta**6))
    g, diffusion = Closure(problem)(q)
    np.testing.assert_allclose([*g, diffusion], expected, rtol=1e-12, atol=1e-14)  # rounding of some hundred terms


def test_kinks_and_single_features_have_no_moments():
    for lines in ([f"features = [{LAPLACE}, {SKEW}]", 'model.activation = "relu"'], [f"features = [{SKEW}]"]):
        assert Closure(make_problem(*lines)).expectation.moments.drift == 0
