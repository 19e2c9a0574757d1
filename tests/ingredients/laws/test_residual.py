"""Laws of the residual of the initial weights: averages over cells, smoothing, and samplers."""

import math
from typing import get_args

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import ndtr

from meanfield import InputError
from meanfield.ingredients.laws import GaussianResidual, ResidualLaw
from meanfield.ingredients.laws.residual import RademacherResidual, ThreePointResidual, UniformResidual
from meanfield.problems.file import format_problem, parse_problem

FALSE_ALARM = 1e-4  # of each test of a sampler, had its seed been drawn at random
SAMPLES = 20_000


def atoms(values, probabilities, eps):
    """The distribution function of sqrt(1 - eps^2) a + eps n for a with atoms."""
    sharp = math.sqrt(1 - eps**2)
    return lambda x: sum(p * ndtr((x - sharp * a) / eps) for a, p in zip(values, probabilities, strict=True))


def box(eps):
    """The same for uniform a, by quadrature over a where the noise does not decide."""
    half = math.sqrt(3) * math.sqrt(1 - eps**2)

    def cdf(x):
        low, high = np.clip([x - 9 * eps, x + 9 * eps], -half, half)
        exact = {"epsabs": 1e-15, "epsrel": 1e-13}  # a reference: rounding
        inner = quad(lambda a: ndtr((x - a) / eps), low, high, **exact)[0]
        return (low + half + inner) / (2 * half)

    return np.vectorize(cdf, otypes=[float])


ROOT5 = math.sqrt(5)
CASES = [
    (GaussianResidual(), ndtr, 3.0),
    (UniformResidual(), box(0.2), 1.8),
    (UniformResidual(smoothing=0.05), box(0.05), 1.8),
    (UniformResidual(smoothing=0.9), box(0.9), 1.8),
    (RademacherResidual(), atoms([-1, 1], [0.5, 0.5], 0.2), 1.0),
    (RademacherResidual(smoothing=0.6), atoms([-1, 1], [0.5, 0.5], 0.6), 1.0),
    (ThreePointResidual(fourth_moment=5.0), atoms([-ROOT5, 0, ROOT5], [0.1, 0.8, 0.1], 0.2), 5.0),
    (ThreePointResidual(fourth_moment=1.0, smoothing=0.1), atoms([-1, 1], [0.5, 0.5], 0.1), 1.0),
]
LAWS = [law for law, *_ in CASES]
RESIDUAL = pytest.mark.parametrize(("law", "cdf", "fourth_moment"), CASES, ids=map(repr, LAWS))
MEANS = np.array([-1.3, 0.0, 0.37])
DEVIATION = 0.8


def smoothing(law):
    return 1.0 if law.law == "gaussian" else law.smoothing


def test_every_law_is_tested():
    assert set(map(type, LAWS)) == set(get_args(get_args(ResidualLaw)[0]))


@RESIDUAL
def test_cell_averages(law, cdf, fourth_moment):
    """Differences of the distribution function, in cells of all widths and far out."""
    edges = np.array([-9.0, -5.0, -2.5, -1.2, -0.7, -0.69, 0.0, 0.1, 0.37, 0.4, 1.3, 1.5, 2.2, 7.0])
    right = np.array([np.diff(cdf((edges - mean) / DEVIATION)) / np.diff(edges) for mean in MEANS])
    found = law.cell_average(edges, MEANS, DEVIATION)
    assert found.shape == (3, 13)
    np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-13)  # rounding: cells of width 0.01 divide 1e-15


@RESIDUAL
@pytest.mark.parametrize("cells", [30, 301, 4000])
def test_cell_averages_are_densities(law, cdf, fourth_moment, cells):
    edges = np.linspace(-12, 12, cells + 1)
    averages = law.cell_average(edges, MEANS, DEVIATION)
    assert np.all(averages >= 0)
    np.testing.assert_allclose(averages @ np.diff(edges), 1, rtol=0, atol=1e-14)  # rounding


@RESIDUAL
def test_cell_averages_have_mean_and_variance_of_the_law(law, cdf, fourth_moment):
    """And the fourth moment, all up to what a law that is constant in cells adds: h^2/12 to the variance."""
    edges = np.linspace(-12, 12, 4001)
    middle, h = 0.5 * (edges[1:] + edges[:-1]), edges[1] - edges[0]
    mass = law.cell_average(edges, MEANS, DEVIATION) * h
    x = middle[None, :] - MEANS[:, None]
    eps = smoothing(law)
    fourth = (1 - eps**2) ** 2 * fourth_moment + 6 * (1 - eps**2) * eps**2 + 3 * eps**4
    variance = DEVIATION**2 + h**2 / 12  # Sheppard's correction
    np.testing.assert_allclose((mass * x).sum(axis=1), 0, rtol=0, atol=1e-13)  # rounding
    np.testing.assert_allclose((mass * x**2).sum(axis=1), variance, rtol=1e-12)  # rounding; the rest decays like exp
    right = DEVIATION**4 * fourth + 0.5 * h**2 * DEVIATION**2 + h**4 / 80
    np.testing.assert_allclose((mass * x**4).sum(axis=1), right, rtol=1e-12)  # the same


@RESIDUAL
def test_cell_averages_are_symmetric(law, cdf, fourth_moment):
    edges = np.linspace(-6, 6, 121)
    left = law.cell_average(edges, MEANS, DEVIATION)
    right = law.cell_average(edges, -MEANS, DEVIATION)[:, ::-1]
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-15)  # rounding, relative to the largest in the tails


@RESIDUAL
def test_far_out_nothing_is_negative_or_undefined(law, cdf, fourth_moment):
    """Cells hundreds of deviations away, also where the deviation is tiny."""
    edges = np.linspace(-60, 60, 241)
    for deviation in (1.0, 1e-3):
        averages = law.cell_average(edges, np.array([0.1]), deviation)
        assert np.all(averages >= 0)
        assert averages @ np.diff(edges) == pytest.approx(1, abs=1e-13)  # rounding
        assert averages[0, 0] == averages[0, -1] == 0


def test_tails_of_a_gaussian_keep_their_digits():
    edges = np.array([-31.0, -30.0, 30.0, 31.0])
    found = GaussianResidual().cell_average(edges, np.array([0.0]), 1.0)[0]
    tail = stats.norm.sf(30.0) - stats.norm.sf(31.0)
    assert found[0] == pytest.approx(tail, rel=1e-12)  # rounding of exp(-450)
    assert found[2] == pytest.approx(tail, rel=1e-12)  # the same


def test_little_smoothing_leaves_the_law_and_much_leaves_noise():
    edges = np.array([-2.0, -1.8, -1.6, 0.0, 1.6, 1.8, 2.0])
    sharp = UniformResidual(smoothing=0.02).cell_average(edges, np.zeros(1), 1.0)[0]
    np.testing.assert_allclose(sharp[2:4], 0.5 / math.sqrt(3), rtol=1e-3)  # smoothing is 0.02^2/2 = 2e-4
    assert sharp[0] == sharp[5] < 1e-3
    noise = UniformResidual(smoothing=0.999).cell_average(edges, np.zeros(1), 1.0)[0]
    np.testing.assert_allclose(noise, GaussianResidual().cell_average(edges, np.zeros(1), 1.0)[0], rtol=1e-4)  # 1-eps^2


# Samplers


@RESIDUAL
def test_sampler(law, cdf, fourth_moment):
    """Of the same law as the cell averages."""
    sample = law.sample(np.random.default_rng(31), SAMPLES)
    assert sample.shape == (SAMPLES,)
    np.testing.assert_array_equal(sample, law.sample(np.random.default_rng(31), SAMPLES))
    edges = np.linspace(-8, 8, 1601)
    distribution = np.concatenate([[0], np.cumsum(law.cell_average(edges, np.zeros(1), 1.0)[0] * np.diff(edges))])

    def interpolated(x):
        return np.interp(x, edges, distribution)

    assert stats.kstest(sample, interpolated).pvalue > FALSE_ALARM
    # The scale is what is easily wrong: a variance that is off by a fifth must be noticed.
    assert stats.kstest(sample / math.sqrt(1.2), interpolated).pvalue < FALSE_ALARM
    assert stats.pearsonr(sample[:-1], sample[1:]).pvalue > FALSE_ALARM


@RESIDUAL
def test_sampled_histogram(law, cdf, fourth_moment):
    edges = np.array([-9.0, -1.5, -1.1, -0.9, -0.5, -0.1, 0.1, 0.5, 0.9, 1.1, 1.5, 9.0])
    mean, deviation = 0.3, 1.1
    sample = mean + deviation * law.sample(np.random.default_rng(32), SAMPLES)
    counts, _ = np.histogram(sample, edges)
    expected = law.cell_average(edges, np.array([mean]), deviation)[0] * np.diff(edges) * SAMPLES
    assert counts.sum() == SAMPLES
    enough = expected > 5
    assert counts[~enough].sum() < 30
    expected = expected[enough] * counts[enough].sum() / expected[enough].sum()
    assert stats.chisquare(counts[enough], expected).pvalue > FALSE_ALARM


# In a problem file


TEXT = """
model = {{ activation = "quadratic", learning_rate = 0.3, batch_size = 4 }}
time = {{ stop = 1.0 }}
{residual}
[[features]]
hidden = {{ law = "rademacher" }}
initial_overlap = {overlap}
"""


def problem(residual="", overlap="0.3"):
    return parse_problem(
        TEXT.format(residual=f"initial_residual = {{ {residual} }}" if residual else "", overlap=overlap)
    )


def test_the_residual_is_gaussian_unless_another_law_is_named():
    assert problem().initial_residual == GaussianResidual()


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_written_and_read_again(law):
    read = problem(", ".join(f"{key} = {value!r}" for key, value in law.model_dump().items()))
    assert read.initial_residual == law
    assert parse_problem(format_problem(read)) == read


@pytest.mark.parametrize(
    ("residual", "words"),
    [
        ("law = 'cauchy'", ["initial_residual.law = 'cauchy'", "'gaussian'", "'three_point'"]),
        ("law = 'gaussian', smoothing = 0.1", ["initial_residual: unknown key 'smoothing'"]),
        ("law = 'uniform', smoothing = 0.01", ["initial_residual.smoothing = 0.01", "0.02", "share of Gaussian noise"]),
        ("law = 'three_point', fourth_moment = 0.5", ["fourth_moment = 0.5", "E[a^4] >= 1"]),
    ],
)
def test_what_is_no_law(residual, words):
    with pytest.raises(InputError) as error:
        problem(residual)
    assert all(word in str(error.value) for word in words), error.value


def test_a_random_start_has_no_residual():
    with pytest.raises(InputError) as error:
        problem("law = 'uniform'", overlap="'random'")
    for word in ("initial_residual.law = 'uniform'", "initial_overlap = 'random'", "remove initial_residual"):
        assert word in str(error.value)
    assert problem("law = 'gaussian'", overlap="'random'").random_start
