"""Stationary states with a free norm, of limits that are written by hand: closed forms, and a discretised operator.

With g = -a, G = -k and Lambda = c (1 + E[w^2]) overlaps of a linear prior obey dq/dt = a - k q and
dQ/dt = 2 a q - 2 k Q + c (1 + Q) with Q = E[w^2].
"""

import numpy as np
import pytest

from meanfield.extend import Limit, PriorSettings
from meanfield.ingredients.laws import GaussianCoordinate, GaussianResidual
from meanfield.ingredients.laws.coordinate import RademacherCoordinate
from meanfield.mckean_vlasov.stationary import all_states, point_masses
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.stability import stability
from meanfield.mckean_vlasov.stationary.unknowns import by_averages
from tests.mckean_vlasov.stationary.test_equations import differences
from tests.mckean_vlasov.stationary.test_stability import discretised

A, K, C = 0.5, 0.6, 0.3


ATOM = (RademacherCoordinate(),)


def free_limit(laws=ATOM, prior=None, pull=K, norm=1.0, closure=None):
    gain = np.array([A, -0.5 * A, 0.2][: len(laws)])
    return Limit(
        closure=closure or (lambda q, Q: (-gain + 0.1 * q, C * (1.0 + Q + 0.3 * q[0]), -pull + 0.05 * np.sin(Q))),
        learning_rate=0.7,
        prior=prior or PriorSettings(),
        coordinates=laws,
        initial_overlap=np.zeros(len(laws)),
        initial_residual=GaussianResidual(),
        times=np.array([0.0, 1.0]),
        initial_norm=norm,
        free_norm=True,
    )


def linear(q, Q):
    return np.array([-A]), C * (1.0 + Q), -K


@pytest.mark.parametrize("strength", [0.0, 0.4])
def test_linear_priors_have_the_state_and_the_rates_of_the_closed_form(strength):
    limit = free_limit((GaussianCoordinate(),), PriorSettings(name="l2", strength=strength), closure=linear)
    equations, (state,) = all_states(limit)
    k = K + 0.7 * strength
    q = A / k
    Q = (2 * A * q + C) / (2 * k - C)
    assert state.q[0] == pytest.approx(q, abs=1e-10)  # 1e-12 of F
    assert state.norm == pytest.approx(Q, abs=1e-10)  # likewise
    assert state.G + equations.shift == pytest.approx(-K, abs=1e-12)  # that of the closure
    found = state.variables
    for rate in (-k, C - 2 * k):
        assert np.nanmin(np.abs(found["eigenvalue_real"] - rate)) < 1e-8  # differences of the closure
    assert found["relaxation_rate"] == pytest.approx(k, rel=1e-8)  # Ornstein-Uhlenbeck, from integrals
    assert found["multiplier_residual"] == pytest.approx(0.0, abs=1e-10)  # 1e-12 of F
    assert found["quadrature_error"] < 1e-10  # what nodes are chosen for


@pytest.mark.parametrize("prior", ["none", "l2", "l1", "elastic_net", "quartic", "double_well"])
def test_the_jacobian_is_the_derivative(prior):
    laws = (RademacherCoordinate(), GaussianCoordinate())
    equations = StationaryEquations(free_limit(laws, PriorSettings(name=prior, strength=0.4)))
    x = np.array([0.5, -0.3, 0.2])
    numerical = differences(lambda x: equations(x)[0], x)
    assert equations(x)[1] == pytest.approx(numerical, abs=1e-8)  # differences of step 1e-5 of values good to 1e-13
    state = equations.state(x)
    slopes = differences(lambda a: np.append(a[:2] / np.sqrt(a[2]), np.log(a[2])), np.append(state.q, state.norm))
    assert by_averages(x, 2, state.norm) == pytest.approx(slopes, abs=1e-8)  # differences of step 1e-5


@pytest.mark.parametrize("prior", ["l1", pytest.param("double_well", marks=pytest.mark.slow)])
def test_rates_agree_with_a_discretised_operator(prior):
    limit = free_limit(prior=PriorSettings(name=prior, strength=0.4))
    equations, (state,) = all_states(limit)
    state = equations.state(state.x)
    spectrum = stability(equations, state)
    coarse, fine = (discretised(equations, state, cells, reach=9.0) for cells in (200, 400))
    leading = [rates[np.abs(rates) > 1e-7][0] for rates in (coarse, fine)]  # each node has an eigenvalue 0
    extrapolated = (4 * leading[1] - leading[0]) / 3
    error = abs(leading[1] - extrapolated)
    assert spectrum.growth_rate == pytest.approx(extrapolated, abs=0.1 * error + 1e-7)  # order 4 is left


def test_a_norm_other_than_1_that_is_kept_scales_with_the_units_of_weights():
    """Under w -> a w the quartic potential of strength s is one of strength s/a^2, and g and Lambda follow."""

    def kept(norm):
        size = np.sqrt(norm)
        return Limit(
            closure=lambda q: (-0.5 * q, 0.2 * norm * (1.0 + float(q @ q) / norm)),
            learning_rate=0.1,
            prior=PriorSettings(name="quartic", strength=0.7 / norm),
            coordinates=(GaussianCoordinate(),),
            initial_overlap=np.zeros(1),
            initial_residual=GaussianResidual(),
            times=np.array([0.0, 1.0]),
            initial_norm=size**2,
        )

    (_, first), (_, other) = (all_states(kept(norm)) for norm in (1.0, 6.25))
    assert len(first) == len(other) == 3
    for one, two in zip(first, other, strict=True):
        assert two.q == pytest.approx(2.5 * one.q, abs=1e-9)  # roots by differences of the closure
        for name in ("growth_rate", "relaxation_rate", "multiplier"):
            assert two.variables[name] == pytest.approx(one.variables[name], abs=1e-8), name  # likewise
        assert two.variables["multiplier_residual"] == pytest.approx(0.0, abs=1e-10)  # 1e-12 of F


def test_tails_that_are_powers_hold_no_weights_without_a_pull_of_the_rule():
    """E[w^2] is infinite under exp(-b log(1 + w^2)/2) with b = 2.9."""
    noise = 2 * 0.7 * 0.5 / 2.9
    cauchy = PriorSettings(name="cauchy", strength=0.5)
    still = free_limit(prior=cauchy, closure=lambda q, Q: (np.zeros(1), noise, 0.0))
    assert StationaryEquations(still).state(np.zeros(2)) is None


def test_point_masses_are_found_where_noise_vanishes():
    def noiseless(q, Q):
        return np.array([-K]), C * (1.0 - 2.0 * q[0] + Q), -K

    (found,) = point_masses(free_limit((GaussianCoordinate(),), closure=noiseless))
    assert found.q == pytest.approx([1.0], abs=1e-6)  # where a parabola is lowest
    assert found.norm == pytest.approx(1.0, abs=1e-6)  # likewise
    assert point_masses(free_limit((GaussianCoordinate(),), closure=linear)) == []
