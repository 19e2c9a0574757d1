"""Thresholds of condensation against closed forms, adaptive quadrature, and states that exist or do not."""

import math

import numpy as np
import pytest
from scipy.integrate import quad, simpson
from scipy.optimize import brentq
from scipy.special import gamma, polygamma

from meanfield.extend import Limit, Prior, PriorSettings
from meanfield.ingredients.laws import GaussianCoordinate, GaussianResidual
from meanfield.mckean_vlasov.condensation import critical_diffusion, held_norm, threshold
from meanfield.mckean_vlasov.condensation.threshold import norm_at
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from tests.user_functions import uneven

TAU, STRENGTH = 0.1, 3.0
PULL = TAU * STRENGTH


def prior(name, strength=STRENGTH, **parameters):
    return PriorSettings(name=name, strength=strength, parameters=parameters)


def own(name):
    return prior(f"tests.user_functions:{name}")


def smooth_l1_threshold(width):
    """By adaptive quadrature of the Huber loss; nothing of the library."""

    def excess(b):
        def integral(power):
            inner = quad(lambda w: w**power * np.exp(-0.5 * b * w * w / width), 0, width, epsabs=0, epsrel=1e-12)[0]
            return (
                inner
                + quad(lambda w: w**power * np.exp(-b * (w - 0.5 * width)), width, np.inf, epsabs=0, epsrel=1e-12)[0]
            )

        return integral(2) / integral(0) - 1.0

    return 2.0 / brentq(excess, 0.5, 4.0, xtol=1e-13)


THRESHOLDS = [
    ("l1", {}, math.sqrt(2)),
    ("elastic_net", {"ratio": 0.3}, 0.3 * math.sqrt(2)),
    ("cauchy", {}, 0.5),
    ("log_cosh", {}, 1.0 / brentq(lambda a: polygamma(1, a) - 2.0, 0.1, 5.0, xtol=1e-14)),
    ("smooth_l1", {"width": 0.5}, smooth_l1_threshold(0.5)),
    ("smooth_l1", {"width": 0.1}, smooth_l1_threshold(0.1)),
]
"""Lambda_c in units of tau strength."""


@pytest.mark.parametrize(("name", "parameters", "threshold"), THRESHOLDS, ids=lambda x: str(x)[:24])
def test_thresholds_are_those_of_closed_forms(name, parameters, threshold):
    settings = prior(name, **parameters)
    found = critical_diffusion(settings, TAU)
    assert found == pytest.approx(threshold * PULL, rel=1e-10)  # digits of the oracle's quadrature and roots
    assert held_norm(settings, TAU, 0.0) < 1e-10  # b is cut off at 2^40
    assert held_norm(settings, TAU, found) == pytest.approx(1.0, rel=1e-10)  # the same digits
    assert held_norm(settings, TAU, 0.9 * found) < 1.0 < held_norm(settings, TAU, 1.1 * found)
    assert held_norm(settings, TAU, critical_diffusion(settings, TAU, 4.0)) == pytest.approx(4.0, rel=1e-10)


@pytest.mark.parametrize("noise", [1e-9, 1e-4, 0.3, 0.6])
def test_the_norm_that_is_held_has_the_closed_forms_of_exponentials_and_powers(noise):
    """Lambda = noise c: l1 holds noise^2/2, cauchy 1/(2/noise - 3), |w|^1.5 a ratio of gamma functions."""
    exponential, power, root = (
        held_norm(settings, TAU, noise * PULL) for settings in (prior("l1"), prior("cauchy"), own("root_pull"))
    )
    assert exponential == pytest.approx(0.5 * noise**2, rel=1e-13)  # rounding
    assert power == pytest.approx(1.0 / (2.0 / noise - 3.0), rel=1e-11)  # tails as powers beyond w = 2^20
    ratio_of_gammas = (0.75 * noise) ** (4 / 3) * gamma(2.0) / gamma(2 / 3)
    assert root == pytest.approx(ratio_of_gammas, rel=1e-9)  # phi is integrated through the cusp of its derivative at 0


def test_a_potential_that_is_not_even_and_has_a_kink_of_its_own():
    """b Phi0 falls on the left with slope 1 and grows on the right with slope 2: two exponentials about 0.3."""
    b = 3.0
    mass = 1 / b + 1 / (2 * b)
    first = (-1 / b**2 + 1 / (2 * b) ** 2) / mass
    second = (2 / b**3 + 2 / (2 * b) ** 3) / mass
    expected = second + 2 * 0.3 * first + 0.09
    assert norm_at(Prior(uneven, kinks=(0.3,)), b) == pytest.approx(expected, rel=1e-11)  # digits of 0.5 w - w/2


HOLDING = [
    *(prior(name) for name in ("none", "l2", "quartic", "double_well")),
    *(own(name) for name in ("steep_pull", "far_wells")),
    prior("l1", strength=0.0),
]


@pytest.mark.parametrize("settings", HOLDING, ids=lambda settings: settings.name)
def test_priors_that_hold_every_norm_have_no_threshold(settings):
    assert critical_diffusion(settings, TAU) == 0.0
    assert held_norm(settings, TAU, 0.0) >= 1.0


def test_formulas_that_overflow_far_out_and_forces_without_a_value_there_do_no_harm():
    def tanh(w):
        return math.tanh(w)

    def overflowing(w):
        return (math.exp(w) - math.exp(-w)) / (math.exp(w) + math.exp(-w))

    def log_cosh(w):
        return math.log(math.cosh(w))

    assert norm_at(Prior(tanh, log_cosh), 2.0) == norm_at(Prior(tanh), 2.0) < 1.0
    assert norm_at(Prior(overflowing), 2.0) == math.inf  # phi is not known far out, and nothing is claimed


@pytest.mark.parametrize("name", ["l1", "elastic_net", "cauchy", "log_cosh", "smooth_l1"])
def test_a_state_exists_above_the_threshold_and_none_below(name):
    """The solver of stationary states finds G by itself, and knows nothing of thresholds."""
    settings = prior(name)
    threshold = critical_diffusion(settings, TAU)

    def state(diffusion):
        limit = Limit(
            closure=lambda q: (np.zeros(1), diffusion),
            learning_rate=TAU,
            prior=settings,
            coordinates=(GaussianCoordinate(),),
            initial_overlap=np.zeros(1),
            initial_residual=GaussianResidual(),
            times=np.array([0.0, 1.0]),
        )
        return StationaryEquations(limit).state(np.zeros(1))

    assert state(1.02 * threshold) is not None
    assert state(0.98 * threshold) is None


def test_a_prior_that_drives_weights_away_has_no_threshold():
    """w^2 pushes negative weights out ever faster: no density of its own is stationary, and nothing is said."""
    assert norm_at(Prior(lambda w: 1.0 + w + w * w), 3.0) == math.inf


def test_a_prior_that_gathers_weights_in_a_point_holds_no_norm():
    """Under log |w| the density |w|^-b has all of its mass at 0 from b = 1 on, and thin tails from b = 3 on."""
    assert norm_at(Prior(lambda w: 1.0 / w if w else 0.0, kinks=(0.0,)), 4.0) < 1e-9  # panels end near 0


@pytest.mark.parametrize("b", [0.1, 1.0, 8.0, 64.0, 1e4])
def test_waves_without_end_hold_every_norm_and_are_not_followed_outwards(b, monkeypatch):
    """Halving one wave after the other it came to 85 000 panels, and to a finite norm that was none."""
    panels, energies = [], threshold._energies
    monkeypatch.setattr(threshold, "_energies", lambda *given: (panels.append(len(given[2])), energies(*given))[1])
    assert norm_at(Prior(lambda w: math.sin(2.0 * w)), b) == math.inf
    assert max(panels) < 1000


def test_waves_on_a_potential_that_rises_change_the_norm_by_what_they_are():
    """Against sums with steps of 1e-4."""
    b = 3.0
    w = np.linspace(0.0, 40.0, 400_001)  # beyond, the density is below e^-120
    density = np.exp(-b * (w + 0.5 * (1.0 - np.cos(2.0 * w))))
    waves = Prior(lambda w: math.copysign(1.0, w) + math.sin(2.0 * w), kinks=(0.0,))
    right = simpson(w * w * density, x=w) / simpson(density, x=w)
    assert norm_at(waves, b) == pytest.approx(right, rel=1e-10)  # sums of 400 000 terms
