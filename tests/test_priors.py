"""Priors: phi is the derivative of Phi, on arrays and in compiled code."""

import numba
import numpy as np
import pytest

from meanfield.priors import PRIORS
from meanfield.problem import PriorSettings

W = np.array([-3.0, -1.3, -0.2, 0.0, 0.4, 1.0, 2.5])
AWAY_FROM_THE_KINK = W[W != 0]

FORCES = {"none": lambda w: 0 * w, "l2": lambda w: w, "l1": np.sign, "quartic": lambda w: w**3}


def test_every_prior_is_tested():
    assert set(FORCES) == set(PRIORS)


@pytest.mark.parametrize("name", PRIORS)
def test_force(name):
    np.testing.assert_allclose(PRIORS[name].force(W), FORCES[name](W), rtol=1e-15)  # rounding of w^3


@pytest.mark.parametrize("name", PRIORS)
def test_force_is_the_slope_of_the_potential(name):
    prior, h = PRIORS[name], 1e-5
    slope = (prior.potential(AWAY_FROM_THE_KINK + h) - prior.potential(AWAY_FROM_THE_KINK - h)) / (2 * h)
    # Truncation h^2/6 Phi''' = 3e-10 for the quartic, rounding of Phi = 20 over h: 2e-10.
    np.testing.assert_allclose(prior.force(AWAY_FROM_THE_KINK), slope, rtol=0, atol=2e-9)  # see the line above


@pytest.mark.parametrize("name", PRIORS)
def test_potential_is_symmetric_and_smallest_at_zero(name):
    """So a prior pulls towards 0 and prefers no sign."""
    potential = PRIORS[name].potential
    np.testing.assert_array_equal(potential(W), potential(-W))
    assert potential(0.0) == 0
    assert np.all(potential(W) >= 0)


def test_jumping_force_vanishes_at_the_kink():
    assert PRIORS["l1"].force(0.0) == 0


@pytest.mark.parametrize("name", PRIORS)
def test_linear_means_proportional_to_w(name):
    force = PRIORS[name].force
    proportional = np.allclose(force(W), W * force(1.0), rtol=1e-12)  # far below the difference for l1 and quartic
    assert PRIORS[name].linear == proportional


@pytest.mark.parametrize("name", PRIORS)
def test_compiled_on_scalars(name):
    force, potential = numba.njit(PRIORS[name].force), numba.njit(PRIORS[name].potential)
    for w in W:
        assert force(w) == pytest.approx(PRIORS[name].force(w), rel=1e-15)  # rounding
        assert potential(w) == pytest.approx(PRIORS[name].potential(w), rel=1e-15)  # rounding


@pytest.mark.parametrize("name", PRIORS)
def test_settings_multiply_by_the_strength(name):
    settings = PriorSettings(name=name, strength=2.5)
    np.testing.assert_allclose(settings.force(W), 2.5 * FORCES[name](W), rtol=1e-15)  # rounding
    np.testing.assert_allclose(settings.potential(W), 2.5 * PRIORS[name].potential(W), rtol=1e-15)  # rounding
    assert settings.force(W).shape == settings.potential(W).shape == W.shape
    assert settings.functions is PRIORS[name]


def test_no_prior_by_default():
    np.testing.assert_array_equal(PriorSettings().force(W), np.zeros_like(W))
