"""Laws of one hidden variable: components, samplers, and what is refused."""

import math
from typing import get_args

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from meanfield import InputError
from meanfield.extend import HiddenLaw
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.ingredients.laws.empirical import Empirical
from meanfield.ingredients.laws.hidden import (
    Discrete,
    Gaussian,
    GaussianMixture,
    Laplace,
    Rademacher,
    StudentT,
    ThreePoint,
    TwoPoint,
    Uniform,
)
from meanfield.problems.file import format_problem, parse_problem

FALSE_ALARM = 1e-4  # of each test of a sampler, had its seed been drawn at random
SAMPLES = 20_000

MIXTURE = GaussianMixture(means=(-0.7, 1.3, 0.2), variances=(0.5, 0.04, 1.2), probabilities=(0.5, 0.3, 0.2))

CONTINUOUS = [
    (Gaussian(second_moment=1.3), stats.norm(scale=math.sqrt(1.3))),
    (Gaussian(), stats.norm()),
    (Uniform(second_moment=1.1), stats.uniform(-math.sqrt(3.3), 2 * math.sqrt(3.3))),
    (Uniform(), stats.uniform(-math.sqrt(3), 2 * math.sqrt(3))),
    (Laplace(second_moment=1.2), stats.laplace(scale=math.sqrt(0.6))),
    (Laplace(), stats.laplace(scale=math.sqrt(0.5))),
    (StudentT(degrees_of_freedom=12.0, second_moment=1.2), stats.t(12, scale=1.0)),
    (StudentT(degrees_of_freedom=4.5), stats.t(4.5, scale=math.sqrt(2.5 / 4.5))),
    (StudentT(degrees_of_freedom=7.01, second_moment=0.8), stats.t(7.01, scale=math.sqrt(0.8 * 5.01 / 7.01))),
    (StudentT(degrees_of_freedom=150.0, second_moment=2.0), stats.t(150, scale=math.sqrt(2 * 148 / 150))),
]

ATOMIC = [
    (ThreePoint(second_moment=1.1, fourth_moment=6.05), [-math.sqrt(5.5), 0, math.sqrt(5.5)], [0.1, 0.8, 0.1]),
    (ThreePoint(second_moment=1.5, fourth_moment=2.25), [-math.sqrt(1.5), 0, math.sqrt(1.5)], [0.5, 0, 0.5]),
    (TwoPoint(values=(-0.5, 2.0), probability=0.8), [-0.5, 2], [0.8, 0.2]),
    (TwoPoint(values=(1.5, -1.0)), [1.5, -1], [0.5, 0.5]),
    (Rademacher(second_moment=1.7), [-math.sqrt(1.7), math.sqrt(1.7)], [0.5, 0.5]),
    (Rademacher(), [-1, 1], [0.5, 0.5]),
    (Discrete(values=(-1.0, 0.5, 2.0), probabilities=(0.3, 0.6, 0.1)), [-1, 0.5, 2], [0.3, 0.6, 0.1]),
    (Discrete(values=(3.0, 1.0, 2.0), probabilities=(0.0, 1.0, 0.0)), [3, 1, 2], [0, 1, 0]),
    (Discrete(values=(-1.0, 1.0, 7.0), probabilities=(0.5, 0.5, 0.0)), [-1, 1, 7], [0.5, 0.5, 0]),
]

LAWS = [law for law, *_ in CONTINUOUS + ATOMIC] + [MIXTURE]


def name(value):
    return repr(value) if isinstance(value, tuple(type(law) for law in LAWS)) else None


def moment(components, order):
    """E c^order of a mixture of Gaussians."""
    probability, mean, variance = (part.reshape(len(part)) for part in components)
    terms = [
        math.comb(order, 2 * j) * math.prod(range(1, 2 * j, 2)) * variance**j * mean ** (order - 2 * j)
        for j in range(order // 2 + 1)
    ]
    return probability @ sum(terms)


def exact_moment(law, order):
    """E c^order of the laws with a density, for even orders, by their formulas."""
    m2, k = mp.mpf(law.second_moment), order // 2
    if isinstance(law, StudentT):
        nu = mp.mpf(law.degrees_of_freedom)
        return float((m2 * (nu - 2)) ** k * mp.gammaprod([k + 0.5, nu / 2 - k], [0.5, nu / 2]))
    factors = {Gaussian: mp.fac2(order - 1), Uniform: mp.mpf(3) ** k / (order + 1), Laplace: mp.factorial(order) / 2**k}
    return float(m2**k * factors[type(law)])


def exists(law, order):
    return not isinstance(law, StudentT) or order < law.degrees_of_freedom - 1


def test_every_law_is_tested():
    assert {type(law) for law in LAWS} | {Empirical} == set(get_args(get_args(HiddenLaw)[0]))


@pytest.mark.parametrize("law", LAWS, ids=name)
def test_components_have_one_dimension(law):
    assert law.dimension == 1
    probability, mean, variance = law.components(2.0)
    assert mean.shape == variance.shape == (len(probability), 1)
    assert np.all(probability >= 0)
    assert np.all(variance >= 0)
    assert probability.sum() == pytest.approx(1, abs=1e-14)  # rounding


@pytest.mark.parametrize("law", LAWS, ids=name)
def test_which_laws_have_finitely_many_components(law):
    assert law.exact == (not isinstance(law, Uniform | Laplace | StudentT))
    assert law.box == (math.sqrt(3 * law.second_moment) if isinstance(law, Uniform) else 0)


@pytest.mark.parametrize(
    ("law", "power"), [(law, power) for law, _ in CONTINUOUS for power in (2.0, 6.0, 10.0) if exists(law, power)]
)
def test_moments_of_the_components(law, power):
    components = law.components(power)
    for order in range(1, int(power) + 1):
        exact = exact_moment(law, order) if order % 2 == 0 else 0.0
        scale = exact_moment(law, 2) ** (order / 2)
        assert moment(components, order) == pytest.approx(exact, rel=1e-12, abs=1e-13 * scale)  # what it promises


@pytest.mark.parametrize(("law", "values", "probabilities"), ATOMIC, ids=name)
def test_components_of_a_law_with_atoms(law, values, probabilities):
    probability, mean, variance = law.components(2.0)
    np.testing.assert_allclose(probability, probabilities, rtol=1e-15, atol=1e-16)  # rounding
    np.testing.assert_allclose(mean[:, 0], values, rtol=1e-15, atol=0)  # rounding
    np.testing.assert_array_equal(variance, np.zeros((len(values), 1)))


def test_components_of_gaussians():
    found = np.concatenate([part.reshape(3) for part in MIXTURE.components(2.0)])
    right = [*MIXTURE.probabilities, *MIXTURE.means, *MIXTURE.variances]
    np.testing.assert_allclose(found, right, rtol=1e-15)  # rounding of probabilities that are normalised
    assert [part.tolist() for part in Gaussian(second_moment=1.3).components(6.0)] == [[1.0], [[0.0]], [[1.3]]]


def test_student_t_tends_to_a_gaussian():
    law = StudentT(degrees_of_freedom=1e4, second_moment=1.2)
    for order in (2, 4, 6):
        right = exact_moment(law, order)
        # The density is exp of a sum of terms of size 4e4, whose rounding is 1e-11.
        assert moment(law.components(6.0), order) == pytest.approx(right, rel=1e-11)  # see the line above


@settings(max_examples=50, deadline=None, derandomize=True, database=None)
@given(second=st.floats(0.01, 10.0), ratio=st.floats(1.0, 100.0))
def test_the_three_point_law_has_the_moments_asked_for(second, ratio):
    components = ThreePoint(second_moment=second, fourth_moment=ratio * second**2).components(6.0)
    right = [0, second, 0, ratio * second**2, 0, ratio**2 * second**3]
    for order, exact in enumerate(right, start=1):
        scale = components[1].max() ** order
        assert moment(components, order) == pytest.approx(exact, rel=1e-13, abs=1e-15 * scale)  # rounding


def test_the_three_point_law_may_have_two_points():
    """Fourth_moment = second_moment^2 exactly, also where floating point puts the square above: 1.1**2 > 1.21."""
    assert 1.1**2 > 1.21
    values, probabilities = ThreePoint(second_moment=1.1, fourth_moment=1.21).atoms
    assert probabilities.tolist() == [0.5, 0.0, 0.5]
    assert values[2, 0] ** 2 == pytest.approx(1.1, rel=1e-15)  # rounding


@pytest.mark.parametrize(
    "law",
    [
        Discrete(values=(1.0, 2.0, 3.0), probabilities=(0.3333333333,) * 3),
        GaussianMixture(means=(1.0, 2.0, 3.0), variances=(0.0, 0.0, 1.0), probabilities=(0.3333333333,) * 3),
    ],
    ids=name,
)
def test_probabilities_are_normalised_exactly(law):
    """They may be off by 1e-9, but expectations over them are not."""
    np.testing.assert_allclose(law.components(2.0)[0], [1 / 3] * 3, rtol=1e-15)  # rounding


# Samplers


@pytest.mark.parametrize("law", LAWS, ids=name)
def test_samples_have_the_shape_asked_for_and_follow_the_generator(law):
    sample = law.sample(np.random.default_rng(1), (30, 4))
    assert sample.shape == (30, 4, 1)
    assert sample.dtype == float
    np.testing.assert_array_equal(sample, law.sample(np.random.default_rng(1), (30, 4)))
    constant = np.ptp(sample) == 0
    assert constant == (isinstance(law, Discrete) and 1.0 in law.probabilities)
    assert constant or not np.array_equal(sample, law.sample(np.random.default_rng(2), (30, 4)))
    assert law.sample(np.random.default_rng(1), ()).shape == (1,)


@pytest.mark.parametrize(("law", "right"), CONTINUOUS, ids=name)
def test_sampler_of_a_law_with_a_density(law, right):
    sample = law.sample(np.random.default_rng(22), (SAMPLES,))[:, 0]
    assert stats.kstest(sample, right.cdf).pvalue > FALSE_ALARM
    # The scale is what is easily wrong: a second moment that is off by a fifth must be noticed.
    assert stats.kstest(sample / math.sqrt(1.2), right.cdf).pvalue < FALSE_ALARM


def test_sampler_of_a_mixture():
    sample = MIXTURE.sample(np.random.default_rng(23), (SAMPLES,))[:, 0]
    parts = zip(MIXTURE.probabilities, MIXTURE.means, MIXTURE.variances, strict=True)
    parts = [(p, stats.norm(m, math.sqrt(v))) for p, m, v in parts]
    assert stats.kstest(sample, lambda c: sum(p * part.cdf(c) for p, part in parts)).pvalue > FALSE_ALARM


def test_sampler_of_a_mixture_with_an_atom():
    law = GaussianMixture(means=(2.0, -1.0), variances=(0.0, 0.5), probabilities=(0.3, 0.7))
    sample = law.sample(np.random.default_rng(24), (SAMPLES,))[:, 0]
    assert stats.binomtest(np.count_nonzero(sample == 2.0), SAMPLES, 0.3).pvalue > FALSE_ALARM
    assert stats.kstest(sample[sample != 2.0], stats.norm(-1, math.sqrt(0.5)).cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("law", "values", "probabilities"), ATOMIC, ids=name)
def test_sampler_of_a_law_with_atoms(law, values, probabilities):
    sample = law.sample(np.random.default_rng(20), (SAMPLES,))
    counts = np.array([np.count_nonzero(np.isclose(sample, v, rtol=1e-15, atol=0)) for v in values])  # rounding
    assert counts.sum() == SAMPLES
    positive = np.array(probabilities) > 0
    assert counts[~positive].sum() == 0
    expected = np.array(probabilities)[positive] * SAMPLES
    assert positive.sum() == 1 or stats.chisquare(counts[positive], expected).pvalue > FALSE_ALARM


def test_samplers_are_independent_draws():
    """Along both axes: a draw that was repeated along one would keep the law of each."""
    for law in (Gaussian(), ATOMIC[6][0], MIXTURE, Laplace(), Uniform(), StudentT(degrees_of_freedom=12.0)):
        sample = law.sample(np.random.default_rng(25), (200, 100))[..., 0]
        for a, b in ((sample[:-1], sample[1:]), (sample[:, :-1], sample[:, 1:])):
            assert stats.pearsonr(a.ravel(), b.ravel()).pvalue > FALSE_ALARM


# What is refused, and said of it


TEXT = """
model = {{ activation = "{activation}", learning_rate = 0.3, batch_size = 4 }}
time = {{ stop = 1.0 }}
[[features]]
hidden = {{ law = {hidden} }}
initial_overlap = 0.3
"""
MIXED = "'gaussian_mixture', means = [0.0, 2.0]"


def problem(hidden, activation="quadratic"):
    return parse_problem(TEXT.format(hidden=hidden, activation=activation))


@pytest.mark.parametrize("law", LAWS, ids=name)
def test_laws_are_frozen(law):
    with pytest.raises(ValueError, match=r"a \w+ does not change; meanfield\.with_value"):
        law.law = "another"


@pytest.mark.parametrize("law", LAWS, ids=name)
def test_written_and_read_again(law):
    data = problem("'gaussian'").model_dump(exclude_none=True)
    data["features"][0]["hidden"] = law.model_dump()
    assert parse_problem(format_problem(Problem.model_validate(data))).hidden_laws == (law,)


@pytest.mark.parametrize(
    ("hidden", "words"),
    [
        ("'gaussian', second_moment = 0.0", ["hidden.second_moment = 0.0", "greater than 0", "for instance"]),
        ("'gaussian', fourth_moment = 3.0", ["hidden: unknown key 'fourth_moment'", "'second_moment'?"]),
        ("'gauss'", ["hidden.law = 'gauss'", "'gaussian'", "'laplace'", "'empirical'"]),
        ("'three_point', second_moment = 1.0", ["hidden.fourth_moment: is missing; add it"]),
        ("'three_point', second_moment = 1.5, fourth_moment = 2.0", ["fourth_moment = 2.0", "= 2.25", "raise fourth"]),
        ("'two_point', values = [0.0, 0.0]", ["hidden: ", "concentrated at 0", "give a value other than 0"]),
        ("'two_point', values = [1.0]", ["hidden.values", "few elements", "for instance [-0.5, 2.0]"]),
        ("'two_point', values = [1.0, 2.0, 3.0]", ["hidden.values", "2 elements", "for instance [-0.5, 2.0]"]),
        ("'two_point', values = [1.0, 2.0], probability = 1.0", ["probability = 1.0", "less than 1"]),
        ("'discrete', values = [1.0, 2.0], probabilities = [1.0]", ["2 values but 1 probabilities", "give one"]),
        ("'discrete', values = [1.0, 2.0], probabilities = [1.2, -0.2]", ["probability 1.2", "[0, 1]", "correct"]),
        ("'discrete', values = [1.0, 2.0], probabilities = [0.5, 0.4]", ["up to 0.9", "not to 1", "normalise"]),
        ("'discrete', values = [], probabilities = []", ["hidden.values = []", "at least 1"]),
        ("'discrete', values = [0.0, 1.0], probabilities = [1.0, 0.0]", ["hidden: ", "concentrated at 0"]),
        (f"{MIXED}, variances = [1.0], probabilities = [0.5, 0.5]", ["2 means but 1 variances", "give one"]),
        (f"{MIXED}, variances = [1.0, 1.0], probabilities = [1.0]", ["2 means but 1 probabilities", "give one"]),
        (f"{MIXED}, variances = [1.0, -0.5], probabilities = [0.5, 0.5]", ["variance -0.5", "negative", ">= 0"]),
        (f"{MIXED}, variances = [0.0, 1.0], probabilities = [1.0, 0.0]", ["concentrated at 0", "give a value other"]),
        ("'student_t', degrees_of_freedom = 2.0", ["degrees_of_freedom = 2.0", "greater than 2"]),
    ],
)
def test_what_is_no_law(hidden, words):
    with pytest.raises(InputError) as error:
        problem(hidden)
    assert all(word in str(error.value) for word in ["features[0].hidden", *words]), error.value


def test_a_law_has_a_name():
    with pytest.raises(InputError, match=r"features\[0\]\.hidden\.law: is missing; add it"):
        parse_problem(TEXT.replace("law = ", "").format(hidden="second_moment = 1.0", activation="relu"))


@pytest.mark.parametrize(
    ("activation", "too_few", "enough"), [("linear", 3.0, 3.01), ("relu", 3.0, 3.01), ("quadratic", 7.0, 7.01)]
)
def test_student_t_needs_the_moments_that_are_averaged(activation, too_few, enough):
    """E c^6 for x^2, E c^2 for what grows like x; a law with them is enough."""
    assert np.isfinite(Closure(problem(f"'student_t', degrees_of_freedom = {enough}", activation))([0.3])[1])
    with pytest.raises(InputError) as error:
        Closure(problem(f"'student_t', degrees_of_freedom = {too_few}", activation))
    words = [
        "hidden.degrees_of_freedom",
        f"= {too_few}",
        f"more than {too_few:.0f} degrees",
        "raise them",
        "activation",
    ]
    assert all(word in str(error.value) for word in words), error.value
