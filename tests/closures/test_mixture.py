"""Averages over mixtures of Gaussians and a box: against adaptive quadrature, whatever the width of the components."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from meanfield.closures.averages import averages
from meanfield.closures.mixture import Mixture
from meanfield.closures.panels import tabulate, with_derivatives


def kinked(x):
    return np.maximum(x - 0.2, 0.0) * np.cos(x)


def rows(x):
    return np.array([kinked(x), np.tanh(x), np.where(x > 0.2, 1.0, 0.0)])


TABLE = with_derivatives(tabulate(rows, (0.2,), 40.0, "rows"), 1)
EXACT = {"epsabs": 1e-15, "epsrel": 1e-13}  # a reference: rounding
FUNCTIONS = {0: kinked, 2: np.tanh, 3: lambda x: np.where(x > 0.2, 1.0, 0.0)}  # row 1 is the derivative of row 0


def gaussians(probability, mean, variance):
    nothing = np.zeros((mean.shape[1], 0))
    return Mixture(probability, mean, variance, np.zeros(mean.shape[1]), nothing, nothing, 1.0)


def uniform(half_width):
    return gaussians(np.ones(1), np.zeros((1, 1)), np.zeros((1, 1)))._replace(half_width=np.array([half_width]))


def integral(f, density, centre, width):
    cuts = sorted({0.2, *(centre + width * np.linspace(-12, 12, 13))})
    return sum(quad(lambda x: f(x) * density(x), a, b, **EXACT)[0] for a, b in pairwise(cuts))


@pytest.mark.parametrize("count", [1, 400])
@pytest.mark.parametrize("q", [0.0, 0.05, 0.5, 0.95, 0.9999, -0.999999])
def test_gaussian_components(q, count):
    """One component, and so many that they share refined panels."""
    rng = np.random.default_rng(3)
    probability = rng.dirichlet(np.ones(count))
    mean = rng.normal(0, 1.5, (count, 1))
    variance = np.where(rng.random((count, 1)) < 0.5, 0.0, rng.exponential(0.5, (count, 1)))
    found = averages(TABLE, gaussians(probability, mean, variance), np.array([q]), True)
    if count == 1:
        deviation = np.sqrt(1 - q * q + variance[0, 0] * q * q)
        law = norm(mean[0, 0] * q, deviation)
        for row, f in FUNCTIONS.items():
            right = integral(f, law.pdf, mean[0, 0] * q, deviation)
            assert found[row, 0] == pytest.approx(right, abs=1e-11)  # RESOLVED, times values of a few
            assert found[row, 1] == pytest.approx(mean[0, 0] * right, abs=1e-11)  # the same
            assert found[row, 2] == pytest.approx(variance[0, 0] * right, abs=1e-11)  # the same
    else:
        alone = sum(
            averages(TABLE, gaussians(probability[[a]], mean[[a]], variance[[a]]), np.array([q]), True)
            for a in range(count)
        )
        np.testing.assert_allclose(found, alone, rtol=0, atol=1e-11)  # other cuts of the same series: RESOLVED


@pytest.mark.parametrize("q", [1e-6, 1e-3, 0.1, 0.17, 0.5, 0.9, -0.95, 0.9999, 0.9999999])
def test_a_uniform_variable(q):
    """c uniform on [-L, L]: against the integral over c of Gaussian averages, kink and narrow Gaussians included."""
    L, deviation = np.sqrt(3.0), np.sqrt(1 - q * q)
    found = averages(TABLE, uniform(L), np.array([q]), True)
    reach = L * abs(q)

    def density(x):
        return (norm.cdf((x + reach) / deviation) - norm.cdf((x - reach) / deviation)) / (2 * reach)

    if q > 1e-2:  # the difference of distribution functions is accurate only for wide boxes
        edges = sorted({-reach, reach})
        for row, f in FUNCTIONS.items():
            cuts = sorted({0.2, *(e + deviation * k for e in edges for k in range(-10, 11)), -8.0, 8.0})
            right = sum(quad(lambda x, f=f: f(x) * density(x), a, b, **EXACT)[0] for a, b in pairwise(cuts))
            assert found[row, 0] == pytest.approx(right, abs=2e-11)  # cdf differences over 2 reach, and RESOLVED
    x, weight = np.polynomial.legendre.leggauss(200)
    if deviation > 0.1:  # the Gauss rule over c resolves that
        shifted = [
            averages(TABLE, gaussians(np.ones(1), np.array([[L * c]]), np.zeros((1, 1))), np.array([q]), True)
            for c in x
        ]
        right = np.tensordot(weight / 2, shifted, axes=1)
        np.testing.assert_allclose(found[:, 0], right[:, 0], rtol=0, atol=1e-11)  # RESOLVED
        np.testing.assert_allclose(found[:, 1], right[:, 1], rtol=0, atol=1e-11)  # <c f>, the same


def test_two_features_enter_by_their_own_moments():
    q = np.array([0.6, -0.5])
    mixture = gaussians(np.array([0.3, 0.7]), np.array([[1.0, 0.0], [-0.4, 2.0]]), np.array([[0.2, 0.0], [0.0, 1.5]]))
    found = averages(TABLE, mixture, q, True)
    rest = 1 - q @ q
    for row, f in FUNCTIONS.items():
        parts = []
        for p, mean, variance in zip(mixture.probability, mixture.mean, mixture.variance, strict=True):
            centre, deviation = mean @ q, np.sqrt(rest + variance @ q**2)
            average = integral(f, norm(centre, deviation).pdf, centre, deviation)
            parts.append(p * average * np.array([1.0, *mean, *variance]))
        np.testing.assert_allclose(found[row], sum(parts), rtol=0, atol=1e-11)  # RESOLVED


def test_at_full_overlap_everything_is_finite():
    found = averages(TABLE, gaussians(np.ones(1), np.array([[0.2]]), np.zeros((1, 1))), np.array([1.0]), True)
    assert np.all(np.isfinite(found))
    assert found[2, 0] == pytest.approx(np.tanh(0.2), abs=1e-12)  # the variance is 1e-14 instead of 0
    assert found[3, 0] == pytest.approx(0.5, abs=1e-6)  # an atom on the jump: half of it
