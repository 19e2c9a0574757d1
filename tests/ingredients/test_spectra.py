"""Spectra: moments of nodes, exactness of Gauss rules, and quantiles."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from meanfield.ingredients.spectra import Atoms, MarchenkoPastur, PowerLaw, SpectrumFile


@pytest.mark.parametrize("delta", [0.1, 0.5, 1.0, 2.0])
def test_moments_of_marchenko_pastur(delta):
    """Narayana's numbers: 1, 1 + d, 1 + 3 d + d^2, 1 + 6 d + 6 d^2 + d^3."""
    rho, weight, _ = MarchenkoPastur(aspect_ratio=delta).nodes(8)
    exact = [1, 1, 1 + delta, 1 + 3 * delta + delta**2, 1 + 6 * delta + 6 * delta**2 + delta**3]
    assert [weight @ rho**k for k in range(5)] == pytest.approx(exact, rel=1e-13)  # rounding of eigenvectors
    assert np.all(rho <= (1 + math.sqrt(delta)) ** 2)
    if delta == 2.0:  # half of the eigenvalues are 0, where 16 nodes find the atom to 1e-3
        rho, weight, _ = MarchenkoPastur(aspect_ratio=delta).nodes(16)
        assert weight[rho < 1e-3].sum() == pytest.approx(0.5, abs=1e-3)  # see above


def test_a_long_list_becomes_a_gauss_rule(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.gamma(3.0, size=400)
    values /= values.mean()
    np.save(tmp_path / "rho.npy", values)
    for spectrum in (Atoms(eigenvalues=tuple(values)), SpectrumFile(path=str(tmp_path / "rho.npy"))):
        rho, weight, _ = spectrum.nodes(7)
        moments = [weight @ rho**k / np.mean(values**k) for k in range(14)]
        assert moments == pytest.approx([1.0] * 14, rel=1e-9)  # exact up to degree 13, to rounding of high powers
    few = Atoms(eigenvalues=(0.4, 1.6)).nodes(7)
    assert few.rho.tolist() == [0.4, 1.6]


@pytest.mark.parametrize(("exponent", "largest", "teacher"), [(1.0, 50.0, 0.0), (1.5, 1e6, 0.5), (0.4, 3.0, -2.0)])
def test_power_laws_have_the_moments_of_their_quantile_function(exponent, largest, teacher):
    """Eigenvalues (x_0 + (1 - x_0) x)^-exponent over their mean, x uniform, integrated in log."""
    least = largest ** (-1.0 / exponent)

    def mean(power):
        integral = quad(lambda log: math.exp(log * (1.0 - exponent * power)), math.log(least), 0.0, epsabs=0)[0]
        return integral / (1.0 - least)

    rho, weight, share = PowerLaw(exponent=exponent, range=largest, teacher=teacher).nodes(40)
    for power in (0, 1, 2, 3):
        assert weight @ rho**power == pytest.approx(mean(power) / mean(1) ** power, rel=1e-11)  # of both integrals
    assert weight @ share == pytest.approx(1.0, rel=1e-14)
    assert share[-1] / share[0] == pytest.approx((rho[-1] / rho[0]) ** teacher, rel=1e-12)


@pytest.mark.parametrize(
    "spectrum",
    [
        PowerLaw(exponent=1.0, range=50.0, teacher=1.0),
        MarchenkoPastur(aspect_ratio=0.5),
        MarchenkoPastur(aspect_ratio=2.0),
        Atoms(eigenvalues=(2.0, 0.0, 1.0), weights=(0.4, 0.4, 0.2), teacher=(1.0, 1.25, 0.5)),
    ],
    ids=str,
)
def test_quantiles_have_the_moments_of_the_law(spectrum):
    rho, _, teacher = spectrum.quantiles((np.arange(20_000) + 0.5) / 20_000)
    nodes = spectrum.nodes(10)
    assert np.all(np.diff(rho) >= 0)
    for power in (1, 2, 3):  # the rule of midpoints, and the root where the density of Marchenko and Pastur begins
        assert np.mean(rho**power) == pytest.approx(nodes.weight @ nodes.rho**power, rel=2e-4)
    assert np.mean(rho * teacher) == pytest.approx(nodes.weight @ (nodes.rho * nodes.teacher), rel=2e-4)


def test_quantiles_of_a_list_are_the_list(tmp_path):
    values = np.random.default_rng(0).gamma(3.0, size=30)
    np.save(tmp_path / "rho.npy", values / values.mean())
    found = SpectrumFile(path=str(tmp_path / "rho.npy")).quantiles((np.arange(30) + 0.5) / 30)
    assert np.array_equal(found.rho, np.sort(values / values.mean()))
