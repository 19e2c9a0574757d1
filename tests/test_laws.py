"""Laws of c and u: moments, samplers, quadrature rules, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats

from meanfield.laws import Discrete, GaussianCoordinate, GaussianHidden, RademacherCoordinate, ThreePoint

THREE_POINT = ThreePoint(second_moment=1.1, fourth_moment=6.05)
SKEWED = Discrete(values=(-1.0, 0.5, 2.0), probabilities=(0.3, 0.6, 0.1))
HIDDEN = [GaussianHidden(second_moment=1.3), THREE_POINT, SKEWED]
COORDINATES = [GaussianCoordinate(), RademacherCoordinate()]

FALSE_ALARM = 1e-4  # of each test of a sampler, had its seed been drawn at random
SAMPLES = 20_000


def name(law):
    return type(law).__name__


@pytest.mark.parametrize("order", range(9))
def test_moments_of_a_gaussian(order):
    law = GaussianHidden(second_moment=1.3)
    right = stats.norm(scale=np.sqrt(1.3)).moment(order) if order else 1.0
    assert law.moment(order) == pytest.approx(right, rel=1e-13)  # rounding


def test_a_gaussian_has_unit_variance_by_default():
    assert GaussianHidden().second_moment == 1.0


def test_moments_of_the_three_point_law():
    """c = +-sqrt(alpha) with probability b/2 each: m2 = alpha b, m4 = alpha^2 b, m6 = alpha^3 b."""
    alpha, b = 5.5, 0.2
    right = [1, 0, alpha * b, 0, alpha**2 * b, 0, alpha**3 * b]
    moments = [THREE_POINT.moment(order) for order in range(7)]
    np.testing.assert_allclose(moments, right, rtol=1e-14, atol=1e-15)  # rounding; odd moments cancel


@settings(max_examples=50, deadline=None, derandomize=True, database=None)
@given(second=st.floats(0.01, 10.0), ratio=st.floats(1.0, 100.0))
def test_the_three_point_law_has_the_moments_asked_for(second, ratio):
    law = ThreePoint(second_moment=second, fourth_moment=ratio * second**2)
    values, probabilities = law.atoms
    assert law.moment(2) == pytest.approx(second, rel=1e-13)  # rounding
    assert law.moment(4) == pytest.approx(ratio * second**2, rel=1e-13)  # rounding
    for odd in (1, 3):
        assert law.moment(odd) == pytest.approx(0, abs=1e-15 * values[2] ** odd)  # rounding: +a and -a cancel
    assert np.all(probabilities >= 0)
    assert probabilities.sum() == pytest.approx(1, abs=1e-15)  # rounding
    assert values[1] == 0


def test_the_three_point_law_may_have_two_points():
    """Fourth_moment = second_moment^2 exactly, also where floating point puts the square above: 1.1**2 > 1.21."""
    assert 1.1**2 > 1.21
    values, probabilities = ThreePoint(second_moment=1.1, fourth_moment=1.21).atoms
    assert probabilities.tolist() == [0.5, 0.0, 0.5]
    assert values[2] ** 2 == pytest.approx(1.1, rel=1e-15)  # rounding


def test_moments_of_a_discrete_law():
    right = stats.rv_discrete(values=([0, 1, 2], SKEWED.probabilities))
    for order in range(7):
        expected = right.expect(lambda index, n=order: np.array(SKEWED.values)[index.astype(int)] ** n)
        assert SKEWED.moment(order) == pytest.approx(expected, rel=1e-13)  # rounding


def test_probabilities_are_normalised_exactly():
    """They may be off by 1e-9, but expectations over them are not."""
    law = Discrete(values=(1.0, 2.0, 3.0), probabilities=(0.3333333333, 0.3333333333, 0.3333333333))
    assert law.atoms[1].sum() == pytest.approx(1, abs=1e-15)  # rounding


@pytest.mark.parametrize("law", HIDDEN, ids=name)
def test_second_moment_is_that_of_gaussian_part_and_atoms(law):
    """The closures add up the two parts."""
    values, probabilities = law.atoms
    assert law.gaussian_variance + probabilities @ values**2 == pytest.approx(law.moment(2), rel=1e-14)  # rounding


@pytest.mark.parametrize("law", HIDDEN + COORDINATES, ids=name)
def test_samples_have_the_shape_asked_for_and_follow_the_generator(law):
    sample = law.sample(np.random.default_rng(1), (3, 4))
    assert sample.shape == (3, 4)
    assert sample.dtype == float
    np.testing.assert_array_equal(sample, law.sample(np.random.default_rng(1), (3, 4)))
    assert not np.array_equal(sample, law.sample(np.random.default_rng(2), (3, 4)))


def assert_has_atoms(sample, values, probabilities):
    counts = np.array([np.count_nonzero(sample == v) for v in values])
    assert counts.sum() == sample.size
    positive = np.array(probabilities) > 0
    assert counts[~positive].sum() == 0
    expected = np.array(probabilities)[positive] * sample.size
    assert positive.sum() == 1 or stats.chisquare(counts[positive], expected).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    "law",
    [
        THREE_POINT,
        SKEWED,
        Discrete(values=(3.0, 1.0, 2.0), probabilities=(0.0, 1.0, 0.0)),
        Discrete(values=(-1.0, 1.0, 7.0), probabilities=(0.5, 0.5, 0.0)),
    ],
)
def test_sampler_of_a_law_with_atoms(law):
    values, probabilities = law.atoms
    assert_has_atoms(law.sample(np.random.default_rng(20), (SAMPLES,)), values, probabilities)


def test_sampler_of_rademacher_coordinates():
    assert_has_atoms(RademacherCoordinate().sample(np.random.default_rng(21), (SAMPLES,)), [-1, 1], [0.5, 0.5])


def test_samplers_of_gaussians():
    rng = np.random.default_rng(22)
    hidden = GaussianHidden(second_moment=1.3).sample(rng, (SAMPLES,))
    assert stats.kstest(hidden, stats.norm(scale=np.sqrt(1.3)).cdf).pvalue > FALSE_ALARM
    # The scale is what is easily wrong: taking 1.3 for the standard deviation must be noticed.
    assert stats.kstest(hidden, stats.norm(scale=1.3).cdf).pvalue < FALSE_ALARM
    coordinate = GaussianCoordinate().sample(rng, (SAMPLES,))
    assert stats.kstest(coordinate, stats.norm.cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("nodes", [2, 3, 8, 31, 64])
@pytest.mark.parametrize("law", COORDINATES, ids=name)
def test_quadrature_over_coordinates(law, nodes):
    """Mean 0 and variance 1 exactly: q and the norm of w are computed with these nodes."""
    u, weight = law.quadrature(nodes)
    assert np.all(weight > 0)
    assert weight.sum() == pytest.approx(1, abs=1e-14)  # rounding
    assert weight @ u == pytest.approx(0, abs=1e-14)  # rounding
    assert weight @ u**2 == pytest.approx(1, abs=1e-14)  # rounding


def test_quadrature_over_rademacher_coordinates_is_the_law():
    u, weight = RademacherCoordinate().quadrature(31)
    assert u.tolist() == [-1, 1]
    assert weight.tolist() == [0.5, 0.5]


def test_quadrature_over_gaussian_coordinates_reaches_seven_deviations():
    u, weight = GaussianCoordinate().quadrature(31)
    assert u.size == 31
    assert u[-1] == pytest.approx(7, rel=1e-6)  # the rule is stretched a little to have unit variance
    for order, right in ((4, 3), (6, 15), (8, 105)):
        assert weight @ u**order == pytest.approx(right, rel=1e-6)  # the tail beyond 7 in the eighth moment: 2e-7


@pytest.mark.parametrize(
    ("law", "arguments", "words"),
    [
        (GaussianHidden, {"second_moment": 0.0}, ["second_moment", "greater than 0", "0.0"]),
        (GaussianHidden, {"second_moment": -1.0}, ["second_moment", "greater than 0", "-1.0"]),
        (GaussianHidden, {"second_moment": float("nan")}, ["second_moment", "finite", "nan"]),
        (GaussianHidden, {"second_moment": "1"}, ["second_moment", "valid number", "'1'"]),
        (GaussianHidden, {"fourth_moment": 3.0}, ["unknown key 'fourth_moment'", "second_moment"]),
        (ThreePoint, {"second_moment": 1.0}, ["fourth_moment", "required"]),
        (
            ThreePoint,
            {"second_moment": 1.5, "fourth_moment": 2.0},
            ["fourth_moment = 2.0", "below second_moment^2 = 2.25", "raise fourth_moment or lower second_moment"],
        ),
        (
            Discrete,
            {"values": (1.0, 2.0), "probabilities": (1.0,)},
            ["2 values but 1 probabilities", "give one probability per value"],
        ),
        (
            Discrete,
            {"values": (1.0, 2.0), "probabilities": (1.2, -0.2)},
            ["probability 1.2", "outside [0, 1]", "correct it"],
        ),
        (
            Discrete,
            {"values": (1.0, 2.0), "probabilities": (0.5, 0.4)},
            ["add up to 0.9", "not to 1", "correct or normalise them"],
        ),
        (Discrete, {"values": (), "probabilities": ()}, ["values", "at least 1"]),
        (Discrete, {"values": (1.0, float("inf")), "probabilities": (0.5, 0.5)}, ["values", "finite", "inf"]),
        (
            Discrete,
            {"values": (0.0, 1.0), "probabilities": (1.0, 0.0)},
            ["concentrated at 0", "give a value other than 0"],
        ),
        (GaussianCoordinate, {"variance": 2.0}, ["unknown key 'variance'"]),
        (RademacherCoordinate, {"law": "gaussian"}, ["law", "'rademacher'", "'gaussian'"]),
    ],
)
def test_what_is_no_law_is_refused(law, arguments, words):
    with pytest.raises(ValidationError) as error:
        law(**arguments)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("law", HIDDEN + COORDINATES, ids=name)
def test_laws_are_frozen(law):
    with pytest.raises(ValidationError, match="frozen"):
        law.law = "another"
