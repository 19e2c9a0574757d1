import numpy as np
import pytest
from scipy import stats

from meanfield.comparison import distributions
from meanfield.families.contrastive.density import solve_density
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.numerics.distances import kolmogorov_smirnov
from meanfield.problems.file import parse_problem
from meanfield.results.result import Result

PROBLEM = """
[model]
activation = "quadratic"
learning_rate = 0.02
batch_size = 10
[[features]]
hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }
coordinate = { law = "COORDINATE" }
initial_overlap = 0.6
[time]
stop = 0.1
outputs = 2
"""


@pytest.fixture(scope="module")
def gaussian():
    return Result.of(solve_density(parse_problem(PROBLEM.replace("COORDINATE", "gaussian"))))


@pytest.fixture(scope="module")
def rademacher():
    return Result.of(solve_density(parse_problem(PROBLEM.replace("COORDINATE", "rademacher"))))


def test_marginal_of_the_gaussian_start_is_standard_normal(gaussian):
    F, variance = distributions.marginal_distribution(gaussian, 0.0)
    exact = stats.norm.cdf(edges_of(gaussian.dataset))
    assert np.allclose(F, exact, atol=1e-10)  # cells are cut off at nine standard deviations, nodes at seven
    assert np.allclose(variance, F * (1 - F), atol=1e-14)  # rounding


def test_group_of_the_gaussian_start_is_a_gaussian_mixture(gaussian):
    """A Gaussian membership times Gaussian u is Gaussian, so the law of w in a group is known in closed form."""
    group = distributions.Group(0.75)
    F, _ = distributions.group_distribution(distributions.laws_given_u(gaussian, 0.0, 0), 0, group)
    shrink = 1 / (1 + group.width**2)
    mean, variance = 0.75 * shrink, group.width**2 * shrink
    exact = stats.norm.cdf(edges_of(gaussian.dataset), 0.6 * mean, np.sqrt(0.36 * variance + 0.64))
    assert np.allclose(F, exact, atol=1e-9)  # cut-off of nodes and cells


def test_variance_predicts_the_spread_of_weighted_distribution_functions(gaussian):
    rng = np.random.default_rng(0)
    n, runs = 500, 2000
    group = distributions.Group(-0.75)
    u = rng.normal(size=(runs, n))
    w = 0.6 * u + 0.8 * rng.normal(size=(runs, n))
    psi = group.membership(u)
    measured = n * np.var((psi * (w < -0.2)).sum(axis=1) / psi.sum(axis=1))
    _, variance = distributions.group_distribution(distributions.laws_given_u(gaussian, 0.0, 0), 0, group)
    predicted = np.interp(-0.2, edges_of(gaussian.dataset), variance)
    assert measured == pytest.approx(predicted, rel=0.13)  # 4 standard errors sqrt(2/2000) of a variance: 6e-5


def test_law_with_two_values_has_one_exact_group_each(rademacher):
    groups = distributions.groups_of(rademacher.dataset, 0)
    assert [group.centre for group in groups] == [-1.0, 1.0]
    u = np.array([-1.02, 0.97, 1.0])
    assert np.array_equal(groups[1].membership(u), [0.0, 1.0, 1.0])
    F, variance = distributions.group_distribution(distributions.laws_given_u(rademacher, 0.0, 0), 0, groups[1])
    exact = stats.norm.cdf(edges_of(rademacher.dataset), 0.6, 0.8)
    assert np.allclose(F, exact, atol=1e-10)  # cut-off of the cells
    assert np.allclose(variance, 2 * F * (1 - F), atol=1e-12)  # half of all coordinates belong: rounding


def test_own_sample_lies_within_sampling_distance(gaussian):
    rng = np.random.default_rng(1)
    u = rng.normal(size=20_000)
    w = 0.6 * u + 0.8 * rng.normal(size=20_000)
    for group in distributions.groups_of(gaussian.dataset, 0):
        F, _ = distributions.group_distribution(distributions.laws_given_u(gaussian, 0.0, 0), 0, group)
        psi = group.membership(u)
        effective = psi.sum() ** 2 / (psi**2).sum()
        distance = kolmogorov_smirnov(w, psi, edges_of(gaussian.dataset), F)
        # P(sqrt(n) KS > 2) = 7e-4 by Kolmogorov's law; five groups, false alarm 0.3 %
        assert distance < 2 / np.sqrt(effective)


def test_few_nodes_widen_the_groups_until_averages_over_nodes_are_right():
    text = PROBLEM.replace("COORDINATE", "gaussian") + "[density]\nfeature_nodes = 13\n"
    run = Result.of(solve_density(parse_problem(text)))
    for group in distributions.groups_of(run.dataset, 0):
        F, _ = distributions.group_distribution(distributions.laws_given_u(run, 0.0, 0), 0, group)
        shrink = 1 / (1 + group.width**2)
        mean, variance = group.centre * shrink, group.width**2 * shrink
        exact = stats.norm.cdf(edges_of(run.dataset), 0.6 * mean, np.sqrt(0.36 * variance + 0.64))
        assert np.allclose(F, exact, atol=2e-3)  # aliasing of membership times density of u: 2 exp(-2 pi^2 0.61^2)
