"""Spectra of the features: moments of nodes, exactness of Gauss rules, and nonlinearities' moments."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from meanfield.ingredients.nonlinearities import Nonlinearity, make_nonlinearity
from meanfield.ingredients.spectra import Atoms, MarchenkoPastur, SpectrumFile


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


@pytest.mark.parametrize(
    ("name", "mean", "slope", "square"),
    [
        ("sign", 0.0, math.sqrt(2 / math.pi), 1.0),
        ("scaled_erf", 0.0, 1 / math.sqrt(math.pi), 1 / 3),
        ("tanh", 0.0, 0.6057055096, 0.3942944904),
        ("linear", 0.0, 1.0, 1.0),
        ("relu", 1 / math.sqrt(2 * math.pi), 0.5, 0.5),
        ("step", 0.5, 1 / math.sqrt(2 * math.pi), 0.5),
    ],
)
def test_moments_of_nonlinearities(name, mean, slope, square):
    found = make_nonlinearity(name).moments(1.0)
    assert [found.mean, found.slope, found.square] == pytest.approx([mean, slope, square], abs=1e-10)  # digits printed


def test_jumps_that_are_not_named_are_found():
    found = Nonlinearity(lambda x: 1.0 if x > 0.3 else -1.0 if x < -0.7712 else 0.0).moments(2.0)
    low, high = ndtr(-0.3856), ndtr(-0.15)
    assert [found.mean, found.square] == pytest.approx([high - low, high + low], abs=1e-11)  # accuracy of the moments


@pytest.mark.parametrize("f", [lambda x: np.exp(x * x / 4), lambda x: np.exp(x * x), lambda x: 1e7 * x])
def test_nonlinearities_that_overflow_are_refused(f):
    with pytest.raises(ValueError, match="overflows"):
        Nonlinearity(f).moments(1.0)
