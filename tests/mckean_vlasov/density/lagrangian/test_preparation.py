"""Two wells that weights leave for each other: the law that is left, and where points gather between them."""

from types import SimpleNamespace

import numpy as np
import pytest

from meanfield.extend import DensitySettings, Limit, PriorSettings
from meanfield.ingredients.laws import GaussianResidual
from meanfield.ingredients.laws.coordinate import RademacherCoordinate
from meanfield.mckean_vlasov.density.lagrangian.preparation import BARRIER_AMPLITUDE, BARRIER_WIDTH, between_wells
from meanfield.mckean_vlasov.density.solver import solve
from meanfield.numerics.quantile_frame.frame import LOGARITHMIC

PULL, RATE, STRENGTH = -0.05, 0.5, 4.0


def make_limit(noise, stop=1.0):
    """Weights begin mostly in one well, and some of them leave it for the other."""
    return Limit(
        closure=lambda q: (np.full_like(q, PULL), noise),
        learning_rate=RATE,
        prior=PriorSettings(name="quartic", strength=STRENGTH),
        coordinates=(RademacherCoordinate(),),
        initial_overlap=np.array([0.6]),
        initial_residual=GaussianResidual(),
        times=np.linspace(0.0, stop, 5),
    )


def gibbs(q, r, noise):
    """q, r and E[w^2] of exp(-V/D) for u = 1, with the drift that q and r make."""
    D = 0.5 * noise
    growth = q * PULL + RATE * r - D
    w = np.linspace(-3.0, 3.0, 2001)  # the trapezoidal rule is spectral for what decays like exp(-w^4)
    density = np.exp((0.5 * growth * w**2 - PULL * w - 0.25 * RATE * STRENGTH * w**4) / D)
    return np.array([w, STRENGTH * w**4, w**2]) @ density / density.sum()


def test_weights_that_cross_a_barrier_settle_in_gibbs_law():
    noise = 0.3  # a barrier of 3.3 in these units: what is left of the start falls by e in 54
    solution = solve(make_limit(noise, 1300.0), DensitySettings(tolerance=1e-6))
    assert solution.status == "complete"
    q, r = found = solution.moments[-1, :2]
    assert solution.moments[1, 0] - q > 1e-4  # some weights are still to cross
    claimed = np.append(solution.errors.moments[-1], 1e-9)  # of E[w^2]: rounding, and what is left of the start
    assert (np.abs(gibbs(q, r, noise) - np.append(found, 1.0)) <= 10 * claimed).all()  # q and r enter the growth, too
    assert max(solution.effort["points"]) < 1000  # points around a quantile need 3000, the jump moves away from them


@pytest.mark.parametrize(("height", "crossed"), [(1.0, True), (15.0, True), (17.0, False)])
def test_barriers_are_measured_in_units_of_noise(height, crossed):
    noise, q, square = 0.05, 0.2, 0.9
    growth = np.sqrt(4 * RATE * STRENGTH * height * 0.5 * noise)  # (1/4) growth^2/(tau s) is the height for phi = w^3
    r = (growth * square - q * PULL + 0.5 * noise) / RATE
    level = SimpleNamespace(moments=np.array([[q, r, square, 1.0]]), X=np.array([[[-2.0, 0.0, 2.5]]]))
    found = between_wells(make_limit(noise), level)
    assert (found is not None) == crossed
    if found is not None:
        expected = [BARRIER_AMPLITUDE, 0.0, np.sqrt(RATE * STRENGTH / growth) / BARRIER_WIDTH, LOGARITHMIC]
        assert found.terms[:, 0] == pytest.approx(expected, rel=1e-2, abs=2e-3)  # steps between weights are 1e-3


def test_a_single_well_has_no_barrier():
    level = SimpleNamespace(moments=np.array([[0.0, -1.0, 1.0, 1.0]]), X=np.array([[[-2.0, 2.5]]]))
    assert between_wells(make_limit(0.3), level) is None
