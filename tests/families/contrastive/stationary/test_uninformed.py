"""The state with q = 0 under priors that are not linear: rates against a resolvent of finite differences, and runs."""

import numpy as np
import pytest
from scipy.linalg import solve_banded
from scipy.optimize import brentq

from meanfield import InputError, find_stationary_states
from meanfield.families.contrastive.learnability.learnability import learnability
from meanfield.families.contrastive.stationary.uninformed import growth_rate_at_zero, learning_margin
from tests.example_problems import feature, features, gaussian, make_problem

TAU, BATCH = 0.2, 10
"""The threshold is 1 + 10 tau/m = 1.2; the largest strength of l1 that has a state is 240 tau/(sqrt(2) m) = 3.39."""

PRIORS = {"l1": 2.0, "quartic": 1.0, "double_well": 10.0, "cauchy": 3.0, "elastic_net": 3.0}
LEAN = "tests.user_functions:lean"
STRENGTHS = PRIORS | {LEAN: 0.5}


def problem_with(m2, name="none", strength=1.0, hidden=None, coordinate="gaussian"):
    return make_problem(
        f"model = {{ learning_rate = {TAU}, batch_size = {BATCH} }}",
        features(feature(0.1, hidden or gaussian(m2), coordinate)),
        f'prior = {{ name = "{name}", strength = {strength} }}',
    )


class Cells:
    """P at q = 0 and (lambda - L)^-1 on 4001 nodes in w, with the closed forms of x^2: nothing of the library."""

    def __init__(self, m2, potential, strength):
        self.D = 0.5 * 240 * TAU**2 / BATCH
        self.gamma = 12 * TAU * (m2 - 1)
        self.w = np.linspace(-9.0, 9.0, 4001)
        self.h = self.w[1] - self.w[0]
        work = TAU * strength * potential(self.w)

        def exponent(G):
            return (0.5 * G * self.w**2 - work) / self.D

        def density(G):
            P = np.exp(exponent(G) - exponent(G).max())
            return P / P.sum()

        G = brentq(lambda G: density(G) @ self.w**2 - 1, -2.0, 8.0, xtol=1e-15)
        self.P, self.steps = density(G), np.diff(exponent(G))

    def _generator(self):
        """L h = (D/P) d(P dh/dw)/dw as three diagonals, with P at faces the geometric mean."""
        up, down = (self.D / self.h**2 * np.exp(sign * 0.5 * self.steps) for sign in (1, -1))
        bands = np.zeros((3, len(self.w)))
        bands[0, 1:], bands[2, :-1] = up, down
        bands[1, :-1] -= up
        bands[1, 1:] -= down
        return bands

    def response(self, rate):
        """-(gamma/D) E[w (rate - L)^-1 L w], which is 1 at growth rates."""
        bands = self._generator()
        Lw = bands[1] * self.w
        Lw[:-1] += bands[0, 1:] * self.w[1:]
        Lw[1:] += bands[2, :-1] * self.w[:-1]
        resolvent = -bands
        resolvent[1] += rate
        return -self.gamma / self.D * (self.P * self.w) @ solve_banded((1, 1), resolvent, Lw)


POTENTIALS = {
    "l1": np.abs,
    "quartic": lambda w: w**4 / 4,
    "double_well": lambda w: w**4 / 4 - w**2 / 2,
    "cauchy": lambda w: np.log1p(w**2) / 2,
    "elastic_net": lambda w: np.abs(w) / 2 + w**2 / 4,
    LEAN: lambda w: w**4 / 4 + w**2 / 2 - w,
}


@pytest.mark.parametrize("m2", [1.1, 1.4])
@pytest.mark.parametrize("name", STRENGTHS)
def test_growth_rate_solves_the_equation_of_linear_response(name, m2):
    found = growth_rate_at_zero(problem_with(m2, name, STRENGTHS[name]))
    # differences of order h^2 = 2e-5, and some steps that are not small for the steepest potential
    assert Cells(m2, POTENTIALS[name], STRENGTHS[name]).response(found) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("name", PRIORS)
def test_even_priors_move_no_threshold_and_slow_down_what_happens(name):
    threshold = learnability(problem_with(1.0)).learnable_moments[0]
    for m2 in (0.99 * threshold, 1.01 * threshold, 1.3 * threshold):
        linear = float(learnability(problem_with(m2)).growth_rates[0])
        problem = problem_with(m2, name, PRIORS[name])
        assert learning_margin(problem) == pytest.approx(linear, rel=1e-8)  # E[w^2] = 1 is solved to 1e-13
        assert 0 < growth_rate_at_zero(problem) / linear < 1


def test_a_prior_that_is_not_even_raises_the_threshold():
    """Gamma Var(w) = Lambda/2, with the variance of a density that is integrated here."""
    cells = Cells(1.3, POTENTIALS[LEAN], STRENGTHS[LEAN])
    variance = 1 - (cells.P @ cells.w) ** 2
    assert variance < 0.97
    found = learning_margin(problem_with(1.3, LEAN, STRENGTHS[LEAN]))
    assert found == pytest.approx(cells.gamma * variance - cells.D, abs=1e-6)  # trapezoids: exact but for the cut at 9


def test_the_law_of_the_feature_coordinates_does_not_matter():
    rates = [growth_rate_at_zero(problem_with(1.4, "l1", 2.0, coordinate=law)) for law in ("gaussian", "rademacher")]
    assert rates[0] == pytest.approx(rates[1], rel=1e-8)  # the nodes in u see no tilt


def test_agrees_with_the_state_that_the_search_finds():
    problem = problem_with(1.1, "quartic", 1.0)
    states = find_stationary_states(problem)
    zero = int(np.argmin(np.abs(states["q"].values[:, 0])))
    assert growth_rate_at_zero(problem) == pytest.approx(float(states["growth_rate"][zero]), rel=1e-6)  # of a root q


def test_a_prior_that_outweighs_the_noise_is_refused():
    limit = 240 * TAU / BATCH / np.sqrt(2)
    assert np.isfinite(growth_rate_at_zero(problem_with(1.4, "l1", 0.99 * limit)))
    with pytest.raises(InputError, match=r"prior\.strength = 3\.4.*outweighs the noise"):
        growth_rate_at_zero(problem_with(1.4, "l1", 1.01 * limit))
    with pytest.raises(InputError, match=r"outweighs the noise"):
        learning_margin(problem_with(1.4, "l1", 1.01 * limit))
