"""Laws of the feature coordinates: moments of the quadratures, their convergence, and samplers."""

import math
from functools import cache
from typing import get_args

import numpy as np
import pytest
from scipy import integrate, stats

from meanfield import InputError
from meanfield.extend import CoordinateLaw
from meanfield.ingredients.laws.coordinate import (
    GaussianCoordinate,
    LaplaceCoordinate,
    RademacherCoordinate,
    ThreePointCoordinate,
    UniformCoordinate,
)
from meanfield.problems.file import format_problem, parse_problem

FALSE_ALARM = 1e-4  # of each test of a sampler, had its seed been drawn at random
SAMPLES = 20_000

CONTINUOUS = [
    (GaussianCoordinate(), stats.norm()),
    (UniformCoordinate(), stats.uniform(-math.sqrt(3), 2 * math.sqrt(3))),
    (LaplaceCoordinate(), stats.laplace(scale=math.sqrt(0.5))),
]
ATOMIC = [
    (RademacherCoordinate(), [-1, 1], [0.5, 0.5]),
    (ThreePointCoordinate(fourth_moment=5.0), [-math.sqrt(5), 0, math.sqrt(5)], [0.1, 0.8, 0.1]),
    (ThreePointCoordinate(fourth_moment=1.0), [-1, 0, 1], [0.5, 0, 0.5]),
]
LAWS = [law for law, *_ in CONTINUOUS + ATOMIC]
FOURTH_MOMENT = {"gaussian": 3.0, "uniform": 1.8, "laplace": 6.0, "rademacher": 1.0, "three_point": 5.0}
MEAN_COSINE = {
    "gaussian": math.exp(-0.5),
    "uniform": math.sin(math.sqrt(3)) / math.sqrt(3),
    "laplace": 2 / 3,
    "rademacher": math.cos(1),
    "three_point": 0.8 + 0.2 * math.cos(math.sqrt(5)),
}


def ids(value):
    return repr(value) if isinstance(value, tuple(type(law) for law in LAWS)) else None


@cache
def quadrature(law, nodes):
    return law.quadrature(nodes)


def test_every_law_is_tested():
    assert {type(law) for law in LAWS} == set(get_args(get_args(CoordinateLaw)[0]))


@pytest.mark.parametrize("nodes", [2, 3, 8, 13, 24, 31, 64])
@pytest.mark.parametrize("law", LAWS, ids=ids)
def test_quadrature(law, nodes):
    """Mean 0 and variance 1 exactly: q and the norm of w are computed with these nodes."""
    u, weight = quadrature(law, nodes)
    assert u.shape == weight.shape
    assert u.size <= max(nodes, 3)
    assert np.all(np.diff(u) > 0)
    assert np.all(weight >= 0)
    np.testing.assert_allclose(u, -u[::-1], rtol=1e-13, atol=1e-15)  # rounding: the laws are symmetric
    np.testing.assert_allclose(weight, weight[::-1], rtol=1e-13)  # rounding
    assert weight.sum() == pytest.approx(1, abs=1e-14)  # rounding
    assert weight @ u == pytest.approx(0, abs=1e-14)  # rounding
    assert weight @ u**2 == pytest.approx(1, abs=1e-14)  # rounding


@pytest.mark.parametrize("law", LAWS[:-1], ids=ids)
def test_fourth_moment(law):
    u, weight = quadrature(law, 40)
    tolerance = 1e-5 if law.law == "laplace" else 1e-7  # cut: 3e-6 beyond |u| = 16; 4e-8 beyond 6.3 deviations
    assert weight @ u**4 == pytest.approx(FOURTH_MOMENT[law.law], rel=tolerance)  # see the line above


def test_uniform_rule_is_exact_for_polynomials():
    """Of degree 2 nodes - 1 = 9."""
    u, weight = UniformCoordinate().quadrature(5)
    for order in range(10):
        right = 3 ** (order / 2) / (order + 1) if order % 2 == 0 else 0
        assert weight @ u**order == pytest.approx(right, rel=1e-13, abs=1e-13)  # rounding


def test_laplace_rule_is_exact_for_powers_of_the_distance():
    """Of degree 2 nodes/2 - 1 = 7 in |u|, but for what is cut and the variance that is set right."""
    u, weight = LaplaceCoordinate().quadrature(8)
    for order in range(8):
        right = math.factorial(order) / math.sqrt(2) ** order
        assert weight @ np.abs(u) ** order == pytest.approx(right, rel=1e-3)  # of the seventh power beyond |u| = 16


@pytest.mark.parametrize(("law", "values", "probabilities"), ATOMIC, ids=ids)
@pytest.mark.parametrize("nodes", [2, 3, 31])
def test_quadrature_over_a_law_with_atoms_is_the_law(law, values, probabilities, nodes):
    u, weight = quadrature(law, nodes)
    np.testing.assert_allclose(u, values, rtol=1e-15)  # rounding
    np.testing.assert_allclose(weight, probabilities, rtol=1e-15)  # rounding


def test_range_of_the_gaussian_rule_grows_with_the_nodes_up_to_seven_deviations():
    rule = GaussianCoordinate().quadrature
    for nodes, reach in ((20, 24.0**0.5), (40, 40.0**0.5), (60, 7.0), (120, 7.0)):
        u, weight = rule(nodes)
        assert u.size == nodes
        assert u[-1] == pytest.approx(reach, rel=2e-5)  # the rule is stretched a little to have unit variance
    for order, right in ((4, 3), (6, 15), (8, 105)):
        assert weight @ u**order == pytest.approx(right, rel=1e-6)  # the tail beyond 7 in the eighth moment: 2e-7


@pytest.mark.parametrize(
    ("law", "errors"),
    [
        (GaussianCoordinate(), {5: 5e-2, 9: 5e-4, 13: 5e-5, 24: 1e-6, 60: 2e-11}),
        (UniformCoordinate(), {3: 2e-3, 5: 2e-7, 8: 1e-13, 10: 2e-15}),
        (LaplaceCoordinate(), {4: 1e-2, 8: 1e-3, 13: 5e-6, 24: 1e-8, 40: 1e-8}),
        (RademacherCoordinate(), {2: 1e-15}),
        (ThreePointCoordinate(fourth_moment=5.0), {3: 1e-15}),
    ],
    ids=ids,
)
def test_convergence(law, errors):
    """The average of cos(u) with more and more nodes; the last number is rounding, or what the rule cuts."""
    for nodes, error in errors.items():
        u, weight = quadrature(law, nodes)
        assert weight @ np.cos(u) == pytest.approx(MEAN_COSINE[law.law], abs=error)  # up to 10 times what it is


@pytest.mark.parametrize("law", LAWS, ids=ids)
def test_default_nodes(law):
    """Fewer for each feature where there are more, at least as many as the law has values, and not too few."""
    one, two, three = law.default_nodes
    assert one >= two >= three >= 2
    assert one * three**2 < 10_000
    exact = MEAN_COSINE[law.law] if law != LAWS[-1] else math.cos(1)
    for nodes, error in zip(law.default_nodes, (1e-8, 1e-6, 3e-5), strict=True):
        u, weight = quadrature(law, nodes)
        assert weight @ np.cos(u) == pytest.approx(exact, abs=error)  # far below what SGD shows


# Samplers


@pytest.mark.parametrize("law", LAWS, ids=ids)
def test_samples_have_the_shape_asked_for_and_follow_the_generator(law):
    sample = law.sample(np.random.default_rng(1), (30, 4))
    assert sample.shape == (30, 4)
    assert sample.dtype == float
    np.testing.assert_array_equal(sample, law.sample(np.random.default_rng(1), (30, 4)))
    assert not np.array_equal(sample, law.sample(np.random.default_rng(2), (30, 4)))


@pytest.mark.parametrize(("law", "right"), CONTINUOUS, ids=ids)
def test_sampler_of_a_law_with_a_density(law, right):
    sample = law.sample(np.random.default_rng(21), (SAMPLES,))
    assert stats.kstest(sample, right.cdf).pvalue > FALSE_ALARM
    # The scale is what is easily wrong: a variance that is off by a fifth must be noticed.
    assert stats.kstest(sample / math.sqrt(1.2), right.cdf).pvalue < FALSE_ALARM
    assert stats.pearsonr(sample[:-1], sample[1:]).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("law", "values", "probabilities"), ATOMIC, ids=ids)
def test_sampler_of_a_law_with_atoms(law, values, probabilities):
    sample = law.sample(np.random.default_rng(22), (SAMPLES,))
    counts = np.array([np.count_nonzero(np.isclose(sample, v, rtol=1e-15, atol=0)) for v in values])  # rounding
    assert counts.sum() == SAMPLES
    positive = np.array(probabilities) > 0
    assert counts[~positive].sum() == 0
    assert stats.chisquare(counts[positive], np.array(probabilities)[positive] * SAMPLES).pvalue > FALSE_ALARM


# In a problem file


TEXT = """
model = {{ activation = "quadratic", learning_rate = 0.3, batch_size = 4 }}
time = {{ stop = 1.0 }}
[[features]]
hidden = {{ law = "rademacher" }}
coordinate = {{ {coordinate} }}
initial_overlap = 0.3
"""


def test_coordinates_are_gaussian_unless_another_law_is_named():
    lines = [line for line in TEXT.format(coordinate="").splitlines() if "coordinate" not in line]
    assert parse_problem("\n".join(lines)).features[0].coordinate == GaussianCoordinate()


@pytest.mark.parametrize("law", LAWS, ids=ids)
def test_written_and_read_again(law):
    keys = ", ".join(f"{key} = {value!r}" for key, value in law.model_dump().items())
    problem = parse_problem(TEXT.format(coordinate=keys))
    assert problem.features[0].coordinate == law
    assert parse_problem(format_problem(problem)) == problem


@pytest.mark.parametrize(
    ("coordinate", "words"),
    [
        ("law = 'cauchy'", ["coordinate.law = 'cauchy'", "'gaussian'", "'laplace'", "'three_point'"]),
        ("variance = 2.0", ["coordinate.law: is missing; add it"]),
        ("law = 'uniform', variance = 2.0", ["coordinate: unknown key 'variance'", "known: law"]),
        ("law = 'three_point'", ["coordinate.fourth_moment: is missing; add it"]),
        ("law = 'three_point', fourth_moment = 0.9", ["coordinate.fourth_moment = 0.9", "E[u^4] >= 1"]),
        ("law = 'three_point', fourth_moment = nan", ["coordinate.fourth_moment = nan", "finite"]),
    ],
)
def test_what_is_no_law(coordinate, words):
    with pytest.raises(InputError) as error:
        parse_problem(TEXT.format(coordinate=coordinate))
    assert all(word in str(error.value) for word in ["features[0].", *words]), error.value


@pytest.mark.parametrize(("law", "density"), CONTINUOUS, ids=ids)
def test_no_error_is_left_by_many_nodes(law, density):
    """Where a law is cut, more nodes show nothing: E[u tanh u] must be better than the tightest tolerance, 1e-10."""
    u, weight = quadrature(law, 140)
    reach = min(density.support()[1], 40.0)
    exact = 2.0 * integrate.quad(lambda x: x * math.tanh(x) * density.pdf(x), 0.0, reach, epsabs=1e-13, limit=200)[0]
    assert weight @ (u * np.tanh(u)) == pytest.approx(exact, abs=1e-10)
