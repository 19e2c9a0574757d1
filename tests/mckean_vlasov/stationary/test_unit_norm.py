"""The multiplier of the norm: against closed forms and adaptive quadrature, also where rare weights far out hold it."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from meanfield.extend import PriorSettings
from meanfield.ingredients.laws.coordinate import RademacherCoordinate
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.unit_norm import Norm, Scale, multiplier
from tests.mckean_vlasov.stationary.test_hand_written_limit import TAU, limit_with

WIDTH = 1e-9


def power(exponent):
    """E[w^2] = (0.3/|G|)^exponent."""
    return lambda G: Norm((0.3 / abs(G)) ** exponent, exponent * (0.3 / abs(G)) ** exponent / abs(G), np.empty(0))


def step(G):
    """E[w^2] from 0.001 to 10 about G = -0.01, within WIDTH."""
    chance = 1.0 / (1.0 + math.exp(min(-(G + 0.01) / WIDTH, 700.0)))
    return Norm(1e-3 + 10.0 * chance, 10.0 * chance * (1.0 - chance) / WIDTH, np.empty(0))


@pytest.mark.parametrize(
    ("norm_at", "expected"),
    [(power(1), -0.3), (power(3), -0.3), (step, -0.01 - WIDTH * math.log(10.0 / 0.999 - 1.0))],
)
@pytest.mark.parametrize("guess", [-1e-9, -0.3, -1e4, 5.0])
def test_the_multiplier_is_found_from_any_guess(norm_at, expected, guess):
    G, _ = multiplier(norm_at, guess, Scale(0.0, 1e-3))
    assert pytest.approx(expected, rel=1e-12) == G  # 1e-13 of the norm
    trials = []
    assert (
        multiplier(lambda G: trials.append(G) or Norm(0.5 - abs(G), 1.0, np.empty(0)), guess, Scale(0.0, 1.0)) is None
    )
    assert len(trials) < 25  # what is left from 1e4 to 1e-10, by steps of exp(3)


def test_a_norm_beyond_a_dip_of_the_density_is_found():
    """Weights at 400 or so, of which one in 2e5 is enough, beyond a dip that begins at the well of the prior."""
    prior = PriorSettings(name="cauchy", strength=1.0 / TAU)
    limit = limit_with((RademacherCoordinate(),), prior, gains=(0.1,), noise=0.002)
    state = StationaryEquations(limit).state(np.array([0.3]))
    tilt, diffusion = state.coefficients.g[0], state.coefficients.diffusion

    def exponent(w):
        return 2.0 / diffusion * (0.5 * state.G * w * w - tilt * w - 0.5 * np.log1p(w * w))

    far = tilt / state.G
    ends = [-5.0, -0.5, 0.0, 0.05, 0.5, 5.0, 0.5 * far, 0.9 * far, far, 1.1 * far, 1.5 * far]
    weight, square = (
        sum(
            quad(lambda w: w**k * np.exp(exponent(w)), *pair, epsabs=0, limit=400)[0]  # noqa: B023
            for pair in pairwise(ends)
        )
        for k in (0, 2)
    )
    assert square / weight == pytest.approx(1.0, abs=1e-8)  # relative accuracy of the quadrature by default
    assert far > 300  # otherwise there is no dip
