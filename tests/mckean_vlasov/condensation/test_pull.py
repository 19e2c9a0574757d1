"""Coarsening without noise against the closed equation under l1, an integration of each weight, and limit laws."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.stats import norm

from meanfield.extend import Prior, PriorSettings
from meanfield.mckean_vlasov.condensation import coarsening, critical_weight
from tests.user_functions import uneven

ACCURACY = 0.02
"""Relative error of shares by steps of 0.5 % and points 0.01 apart, which the module claims to be a percent."""


def functions(name, **parameters):
    return PriorSettings(name=name, parameters=parameters).functions


def closed_form_of_l1(s):
    """P(|w| > w_c) by |w| = A (y0 - theta)_+ with theta' = 1/A and A^-2 = E[(y0 - theta)_+^2]; one ODE."""

    def inverse_square(theta):
        return 2 * ((1 + theta**2) * norm.sf(theta) - theta * norm.pdf(theta))

    theta = solve_ivp(lambda _, y: [inverse_square(y[0]) ** 0.5], (0, s), [0.0], rtol=1e-9, atol=1e-10).y[0, -1]
    ratio = 2 * (norm.pdf(theta) - theta * norm.sf(theta)) / inverse_square(theta) ** 0.5
    return 2 * norm.sf(theta + inverse_square(theta) ** 0.5 / ratio)


def test_shares_under_l1_are_those_of_its_closed_equation():
    flow = coarsening(functions("l1"), 300.0)
    elastic = coarsening(functions("elastic_net", ratio=0.5), 20.0)
    for s in (1.0, 10.0, 300.0):
        assert flow.share_at(s) == pytest.approx(closed_form_of_l1(s), rel=ACCURACY)
    # half of the pull takes twice the time, and the l2 part none
    assert elastic.share[-1] == pytest.approx(closed_form_of_l1(10.0), rel=ACCURACY)


@pytest.mark.parametrize("name", ["cauchy", "log_cosh"])
def test_shares_under_a_smooth_pull_are_those_of_weights_one_by_one(name):
    """4000 weights of equal mass in the tails and below, to a tolerance of 1e-8; E[w^2] = 1 by the multiplier alone."""
    phi = {"cauchy": lambda w: w / (1 + w * w), "log_cosh": np.tanh}[name]
    edges = np.linspace(0.0, 9.0, 4001)
    xi, mass = 0.5 * (edges[1:] + edges[:-1]), 2 * np.diff(norm.cdf(edges))
    w = solve_ivp(
        lambda _, w: (mass @ (w * phi(w))) / (mass @ w**2) * w - phi(w),
        (0, 8.0), xi / np.sqrt(mass @ xi**2), rtol=1e-8, atol=1e-10,
    ).y[:, -1]  # fmt: skip
    ratio = mass @ (w * phi(w))
    beyond = np.interp(0.0, ratio * w[w > 0.5] - phi(w[w > 0.5]), xi[w > 0.5])
    found = coarsening(functions(name), 8.0)
    assert found.share[-1] == pytest.approx(2 * norm.sf(beyond), rel=5 * ACCURACY)  # cusp of the map at its jump
    assert found.critical_weight[-1] == pytest.approx(np.interp(0.0, xi - beyond, w), rel=ACCURACY)


def test_shares_fall_like_their_limit_laws():
    """2/(e s)^2 up to slow logarithms under every pull that goes to 1, and 1/(e (1 + 2 s)) under 1/w."""
    for name in ("l1", "smooth_l1", "log_cosh"):
        flow = coarsening(functions(name), 150.0)
        assert flow.share_at(150.0) * (np.e * 150.0) ** 2 == pytest.approx(2.0, rel=0.35)  # logarithms
        assert flow.elapsed_at(flow.share_at(100.0)) == pytest.approx(100.0, rel=0.01)  # one step
    flow = coarsening(functions("cauchy"), 300.0)
    assert flow.share_at(300.0) * np.e * 601.0 == pytest.approx(1.0, rel=0.15)  # points in the tail, ratio at the jump
    assert flow.elapsed_at(1e-9) == np.inf


def test_critical_weights_solve_their_equation():
    ratio = np.array([0.05, 0.2, 0.9])
    assert critical_weight(functions("l1"), ratio) == pytest.approx(1 / ratio, rel=1e-14)
    assert critical_weight(functions("elastic_net", ratio=0.3), ratio) == pytest.approx(0.3 / ratio, rel=1e-12)
    assert critical_weight(functions("cauchy"), ratio) == pytest.approx(np.sqrt(1 / ratio - 1), rel=1e-14)
    found = critical_weight(functions("log_cosh"), ratio)
    assert np.tanh(found) == pytest.approx(ratio * found, rel=1e-14)
    both_sides = critical_weight(Prior(uneven, kinks=(0.3,)), ratio)
    assert both_sides == pytest.approx(1.5 / ratio, rel=1e-12)  # 2 on one side, 1 on the other, less w/2


def test_no_weight_runs_away_without_a_multiplier_and_all_do_beyond_the_steepest_pull():
    found = critical_weight(functions("cauchy"), np.array([-0.1, 0.0, 1.5, np.nan]))
    np.testing.assert_array_equal(found, [np.inf, np.inf, 0.0, np.nan])
