"""Averages over stationary densities against brute force: many narrow panels over a range that holds everything."""

import ctypes
import math

import numpy as np
import pytest

from meanfield.ingredients.priors import Prior, make_prior, potential_of
from meanfield.mckean_vlasov.stationary.panels import MOST_PANELS, find_panels, tilted_moments
from meanfield.numerics.compiled.scalar_functions import compile_scalar, evaluate

RULE = np.polynomial.legendre.leggauss(8)

# prior, a, b, s of the exponent a w^2/2 - s w - b Phi(w), and where the density lives
CASES = [
    ("none", -1.0, 0.0, 0.7, (-12, 12)),
    ("none", -1e4, 0.0, -8e3, (0.6, 1.0)),
    ("l1", -1.0, 2.0, -3.0, (-12, 12)),
    ("l1", -1.0, 2000.0, -3.0, (-0.03, 0.03)),
    ("l1", -1e6, 1e6, -0.99e6, (-0.005, 0.005)),
    ("quartic", 3.0, 1.0, 1.0, (-6, 6)),
    ("double_well", -1.0, 100.0, 0.01, (-2.5, 2.5)),
    ("double_well", -1.0, 1e4, 0.01, (-1.2, 1.2)),
    ("double_well", -2e5, 1e4, 1.44e6, (-4.08, -4.04)),  # a narrow peak beside a place from which E seems to fall
    ("cauchy", -1.0, 5.0, 0.7, (-12, 12)),
    ("cauchy", -914.0, 17750.0, 8059.0, (-2, 1)),  # a narrow peak between samples of wide panels
    ("cauchy", -0.01, 18000.0, 100.0, (-9900, -9700)),  # all beyond a dip at -200
    ("log_cosh", -0.5, 3.0, 1.0, (-14, 14)),
    ("smooth_l1", -0.5, 30.0, 5.0, (-3, 3)),
    ("elastic_net", 0.1, 40.0, 50.0, (-6, 6)),
]


def moments(prior, a, b, s):
    kinks = np.array(sorted(prior.kinks))
    return tilted_moments(compile_scalar(potential_of(prior)), a, b, np.array([s]), kinks, 1.0)


@pytest.mark.parametrize(("name", "a", "b", "s", "span"), CASES)
def test_moments_agree_with_brute_force(name, a, b, s, span):
    prior = make_prior(name)
    edges = np.union1d(np.linspace(*span, 40001), prior.kinks)
    half = 0.5 * np.diff(edges)[:, None]
    w = (0.5 * (edges[1:] + edges[:-1])[:, None] + half * RULE[0]).ravel()
    phi = evaluate(prior.potential, w)
    energy = a * w * w / 2 - s * w - b * phi
    mass = np.exp(energy - energy.max()) * (half * RULE[1]).ravel()
    total = mass.sum()
    expected = [mass @ f / total for f in (w, w**2, w**3, w**4, phi, w * phi, w**2 * phi)]
    found, status = moments(prior, a, b, s)
    assert status == 0
    assert found[0, :7] == pytest.approx(expected, rel=1e-12, abs=1e-14)  # exact to rounding of exponents of 1e3
    assert found[0, 7] == pytest.approx(np.log(total) + energy.max(), rel=1e-12)  # the same


@pytest.mark.parametrize("b", [4.5, 5.0, 40.0])
def test_tails_that_are_powers_have_their_part_of_the_norm(b):
    """The density (1 + w^2)^(-b/2), which has E[w^2] = 1/(b - 3) (Student); a cuts it at 1e9."""
    found, _ = moments(make_prior("cauchy"), -1e-18, b, 0.0)
    assert found[0, 1] == pytest.approx(1.0 / (b - 3.0), rel=1e-11)  # exp(-38) of each decade, and 1e9^(3 - b)


@pytest.mark.parametrize(
    ("name", "a", "b", "s"),
    [
        ("none", 0.0, 0.0, 0.0),
        ("none", 1.0, 0.0, 0.0),
        ("l1", 0.01, 3.0, 0.0),
        ("l1", 0.0, 1.0, 1.5),
        ("cauchy", 0.01, 1.0, 0.0),
        ("l2", 2.0, 1.0, 0.0),
        ("elastic_net", 0.6, 1.0, 0.0),
    ],
)
def test_what_cannot_be_normalised_is_refused(name, a, b, s):
    found, status = moments(make_prior(name), a, b, s)
    assert status == -1
    assert np.isnan(found).all()


def test_a_force_without_potential_is_integrated():
    own = Prior(make_prior("double_well").unit_force)
    expected, _ = moments(make_prior("double_well"), -1.0, 3.0, 0.4)
    found, _ = moments(own, -1.0, 3.0, 0.4)
    assert found == pytest.approx(expected, rel=1e-12)  # polynomials are integrated exactly: rounding


def test_walls_of_steep_priors_take_no_panels():
    """E falls to -1e55 at w = 16: panels on which it varies little were looked for all the way."""
    calls = []
    address = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(
        lambda w: (calls.append(w), math.exp(0.5 * w * w) if abs(w) < 37.0 else math.inf)[1]
    )
    potential = ctypes.cast(address, ctypes.c_void_p).value
    count, _ = find_panels(potential, -1.0, 1.0, 0.5, np.zeros(0), 1.0, np.empty(MOST_PANELS + 1))
    assert 0 < count < 100
    assert len(calls) < 2000
