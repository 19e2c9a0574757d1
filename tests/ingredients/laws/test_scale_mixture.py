"""Rules for random variances: against moments of the Gamma law, and Gauss rules by the book."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

from meanfield import InputError
from meanfield.ingredients.laws.scale_mixture import gamma_trapezoid, gauss_rule
from meanfield.ingredients.laws.tails import Laplace, StudentT

SHAPES = [0.3, 1.0, 1.5, 2.25, 6.0, 40.0]


def power_mean(shape, power):
    """E x^power for x ~ Gamma(shape)."""
    return float(mp.gammaprod([shape + power], [shape]))


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 3), (0.2, 1), (0, 5)])
@pytest.mark.parametrize("shape", SHAPES)
def test_gamma_trapezoid_is_a_rule(shape, low, high):
    x, weight = gamma_trapezoid(shape, low, high)
    assert x.shape == weight.shape
    assert np.all(np.diff(x) > 0)
    assert np.all(weight >= 0)
    assert weight.sum() == pytest.approx(1, abs=1e-14)  # rounding
    np.testing.assert_allclose(np.diff(np.log(x)), np.log(x[-1] / x[0]) / (x.size - 1), rtol=1e-9)  # rounding of x


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("high", [0.0, 1.0, 3.0, 5.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_powers_up_to_the_highest(shape, high, share):
    """And down to the lowest; below -shape there are none."""
    low = share * (shape - 0.1)
    x, weight = gamma_trapezoid(shape, low, high)
    for power in (-low, -0.5 * low, 0.5 * high, high):
        right = power_mean(shape, power)
        assert weight @ x**power == pytest.approx(right, rel=1e-12)  # 100 times the mass that may be missed


@pytest.mark.parametrize("shape", SHAPES)
def test_smooth_functions_that_are_no_powers(shape):
    x, weight = gamma_trapezoid(shape, 0.1 * shape, 1.0)
    assert weight @ np.log(x) == pytest.approx(special.digamma(shape), rel=1e-11, abs=1e-11)  # log x at the cuts: 100
    right = float(mp.e * mp.expint(shape, 1))
    assert weight @ (1 / (1 + x)) == pytest.approx(right, rel=1e-12)  # 100 times the mass that may be missed
    assert weight @ np.exp(-x) == pytest.approx(2.0**-shape, rel=1e-12)  # the same


@pytest.mark.parametrize("overlap", [1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("shape", [1.0, 2.5])
def test_the_averages_of_the_closures(shape, overlap):
    """Functions of the variance 1 + overlap x, whatever the overlap is."""
    x, weight = gamma_trapezoid(shape, 0.0, 1.0)
    for function, exact in (
        (lambda x: np.sqrt(1 + overlap * x), lambda x: mp.sqrt(1 + overlap * x)),
        (lambda x: np.arctan(1 / np.sqrt(1 + overlap * x)), lambda x: mp.atan(1 / mp.sqrt(1 + overlap * x))),
    ):
        cuts = [0, *sorted(cut for cut in (1e-3 / overlap, 1 / overlap, 1, 5, 20) if cut < 100), 100]
        right = mp.quad(lambda x, f=exact: f(x) * x ** (shape - 1) * mp.exp(-x), cuts) / mp.gamma(shape)
        assert weight @ function(x) == pytest.approx(float(right), rel=1e-12)  # 100 times the mass that may be missed


@pytest.mark.parametrize("nodes", [1, 2, 3, 7, 12])
def test_gauss_legendre(nodes):
    points, mass = np.polynomial.legendre.leggauss(60)
    x, weight = gauss_rule(points, mass, nodes)
    right, right_weight = np.polynomial.legendre.leggauss(nodes)
    np.testing.assert_allclose(x, right, rtol=0, atol=1e-14)  # rounding
    np.testing.assert_allclose(weight, right_weight, rtol=1e-12)  # rounding of squared eigenvectors


@pytest.mark.parametrize("nodes", [1, 2, 3, 7])
@pytest.mark.parametrize("shape", [1.0, 2.5])
def test_gauss_laguerre(shape, nodes):
    x, weight = gauss_rule(*gamma_trapezoid(shape, 0.0, 2.0 * nodes), nodes)
    right, right_weight = special.roots_genlaguerre(nodes, shape - 1)
    np.testing.assert_allclose(x, right, rtol=1e-11)  # the moments that define them are right to 1e-14
    np.testing.assert_allclose(weight, right_weight / right_weight.sum(), rtol=1e-10)  # the same


def test_gauss_rule_of_points_on_one_side():
    """Of mass 2.5 on squares: exact for polynomials of degree 2 nodes - 1, and for no higher one."""
    points = np.arange(1.0, 31.0) ** 2 / 900
    mass = 2.5 * np.linspace(1, 2, 30) / 45
    x, weight = gauss_rule(points, mass, 4)
    for power in range(8):
        assert weight @ x**power == pytest.approx(mass @ points**power, rel=1e-13)  # rounding
    assert abs(weight @ x**8 / (mass @ points**8) - 1) > 1e-8
    assert points.min() < x.min() < x.max() < points.max()
    assert np.all(weight > 0)


# Laws that are such mixtures


MIXTURES = [
    (Laplace(second_moment=1.2), stats.laplace(scale=math.sqrt(0.6))),
    (StudentT(degrees_of_freedom=12.0, second_moment=1.2), stats.t(12, scale=1.0)),
    (StudentT(degrees_of_freedom=3.5), stats.t(3.5, scale=math.sqrt(1.5 / 3.5))),
]


@pytest.mark.parametrize(("law", "right"), MIXTURES)
def test_a_mixture_has_the_density_of_its_law(law, right):
    """From where the narrow components do not matter; those with 1e-14 of the mass are cut."""
    probability, mean, variance = law.components(2.0)
    assert not mean.any()
    c = np.concatenate([-np.geomspace(0.2, 6, 20), np.geomspace(0.2, 6, 20)])
    density = np.exp(-0.5 * c * c / variance) / np.sqrt(2 * np.pi * variance)
    np.testing.assert_allclose(probability @ density, right.pdf(c), rtol=1e-11)  # the mass that is cut, at c = 6


@pytest.mark.parametrize("law", [law for law, _ in MIXTURES])
def test_no_more_components_than_double_precision_needs(law):
    assert 20 < len(law.components(2.0)[0]) < 200


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (Laplace(), ["features.hidden.law = 'laplace'", "grows faster than any power", "lighter tails"]),
        (StudentT(degrees_of_freedom=12.0), ["features.hidden", "grows faster than any power", "lighter tails"]),
    ],
)
def test_with_heavy_tails_the_activation_grows_like_a_power(law, words):
    """More degrees of freedom would be no remedy."""
    with pytest.raises(InputError) as error:
        law.components(math.inf)
    assert all(word in str(error.value) for word in words), error.value
