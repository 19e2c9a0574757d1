"""Stationary states where the noise of coordinates has several variances, of limits that are written by hand."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq, root

from meanfield.extend import Limit, PriorSettings
from meanfield.ingredients.laws import GaussianResidual
from meanfield.ingredients.laws.coordinate import RademacherCoordinate
from meanfield.ingredients.spectra import Atoms, MarchenkoPastur, PowerLaw
from meanfield.mckean_vlasov.stationary.equations import coordinates_of
from meanfield.mckean_vlasov.stationary.search import polished
from meanfield.mckean_vlasov.stationary.spectra import equations_of
from meanfield.mckean_vlasov.stationary.unknowns import norm_at, overlap_at, unknowns_at, weighted_at
from meanfield.mckean_vlasov.stationary.variables import state_variables
from tests.mckean_vlasov.stationary.test_equations import differences

RHO, SHARE = np.array([0.4, 1.0, 2.2]), np.array([0.5, 0.25, 0.25])
TAU, OMEGA, SIGMA = 0.3, 3.0, 0.5


ATOMS = Atoms(eigenvalues=RHO.tolist(), weights=SHARE.tolist())


def regression(q, norm, tau=TAU):
    """Least squares on noisy labels, which knows the variances of fields alone; its error is E[rho (w - u)^2]."""
    return np.array([0.0, -tau, tau]), tau**2 * (1.0 - 2.0 * q[1] + q[2] + SIGMA**2), 0.0


def principal_component(q):
    """Oja's rule on the sphere."""
    return np.array([-TAU * OMEGA * q[0], 0.0, -TAU]), TAU**2 * (OMEGA * q[0] ** 2 + q[2])


def limit_with(closure, prior, spectrum=ATOMS):
    return Limit(
        closure=closure,
        learning_rate=1.0,
        prior=prior,
        coordinates=(RademacherCoordinate(),),
        initial_overlap=np.zeros(1),
        initial_residual=GaussianResidual(),
        times=np.array([0.0, 1.0]),
        free_norm=closure is not principal_component,
        spectrum=spectrum,
    )


@pytest.mark.parametrize("closure", [regression, principal_component])
@pytest.mark.parametrize("prior", ["none", "l2", "l1", "quartic"])
def test_the_jacobian_is_the_derivative(closure, prior):
    limit = limit_with(closure, PriorSettings(name=prior, strength=0.05))
    equations = equations_of(limit)
    x = unknowns_at(limit, np.array([0.5]), 0.2) + np.array([0.0, 0.1, -0.2, 0.1])[: 3 + limit.free_norm]
    numerical = differences(lambda x: equations(x)[0], x)
    assert equations(x)[1] == pytest.approx(numerical, abs=1e-8)  # differences of step 1e-5 of values good to 1e-13


def test_lasso_rests_where_quadrature_solves_its_equations():
    """Given rho, P is exp(2/(rho Lambda) (rho tau (u w - w^2/2) - strength |w|)), and mirrored for -u."""
    strength = 0.1
    limit = limit_with(regression, PriorSettings(name="l1", strength=strength))
    (x,) = polished(equations_of(limit), [unknowns_at(limit, np.array([0.5]), -0.5)])
    nodes, weights = np.polynomial.legendre.leggauss(40)
    ends = np.linspace(-4.0, 6.0, 21)  # of panels, 0 among them
    w = np.add.outer(0.25 * nodes, 0.5 * (ends[1:] + ends[:-1])).ravel()

    def averages(R_noise, Q_noise):
        scale = 2.0 / (RHO * TAU**2 * (RHO @ SHARE - 2.0 * R_noise + Q_noise + SIGMA**2))
        bare = np.multiply.outer(RHO * TAU, w - 0.5 * w * w) - strength * np.abs(w)
        P = np.exp(scale[:, None] * bare) * np.repeat(weights, len(ends) - 1)
        means, squares = P @ w / P.sum(axis=1), P @ w**2 / P.sum(axis=1)
        return np.array([SHARE @ means, (SHARE * RHO) @ means, (SHARE * RHO) @ squares, SHARE @ squares])

    expected = root(lambda y: averages(*y)[1:3] - y, [0.5, 0.5], tol=1e-13)
    assert expected.success
    found = [*overlap_at(limit, x), *weighted_at(limit, x), norm_at(limit, x)]
    assert found == pytest.approx(averages(*expected.x), abs=1e-10)  # roots are good to 1e-12


def of_variances(y):
    """Velocity of R and Q at each variance under Oja's rule, which keeps the norm of all."""
    R, Q = np.split(y, 2)
    signal, noise = SHARE @ R, TAU**2 * (OMEGA * (SHARE @ R) ** 2 + (SHARE * RHO) @ Q)
    growth = 2.0 * TAU * (RHO * Q + OMEGA * signal * R) + RHO * noise
    S = 0.5 * (SHARE @ growth) / (SHARE @ Q)
    return np.concatenate([TAU * (RHO * R + OMEGA * signal) - S * R, growth - 2.0 * S * Q])


@pytest.mark.parametrize("start", [0.0, 0.7])
def test_principal_components_have_the_states_and_rates_of_closed_equations(start):
    limit = limit_with(principal_component, PriorSettings())
    equations = equations_of(limit)
    (x,) = polished(equations, [unknowns_at(limit, np.array([start]), 0.0)])
    found = state_variables(equations, equations.state(x))
    late = solve_ivp(
        lambda _, y: of_variances(y), (0.0, 200.0), np.repeat([start, 1.0], 3), "LSODA", rtol=1e-12, atol=1e-13
    )
    y = late.y[:, -1]
    assert found["q"] == pytest.approx(SHARE @ y[:3], abs=1e-9)  # slopes of the closure by differences
    assert weighted_at(limit, x) == pytest.approx([(SHARE * RHO) @ y[:3], (SHARE * RHO) @ y[3:]], abs=1e-9)  # likewise
    rates = np.linalg.eigvals(differences(of_variances, y))
    for rate in found["eigenvalue_real"]:
        assert np.abs(rates - rate).min() < 1e-6  # of differences of the closure and of these equations
    assert found["eigenvalue_real"][0] == pytest.approx(rates[np.abs(rates) > 1e-7].real.max(), abs=1e-6)  # likewise
    alone = found["multiplier"] + TAU * RHO[-1]  # of weights given u and the largest variance, which only noise holds
    assert found["relaxation_rate"] == pytest.approx(-alone, abs=1e-8)  # roots are good to 1e-12
    assert found["multiplier_residual"] == pytest.approx(0.0, abs=1e-10)  # 1e-12 of F


@pytest.mark.parametrize(
    ("spectrum", "density", "ends"),
    [
        (
            MarchenkoPastur(aspect_ratio=0.25),
            lambda rho: math.sqrt((2.25 - rho) * (rho - 0.25)) / rho,
            np.array([0.25, 2.25]),
        ),
        (PowerLaw(exponent=1.2, range=100.0), lambda rho: rho ** (-1.0 - 1.0 / 1.2), np.array([1.0, 100.0])),
    ],
)
@pytest.mark.parametrize(("tau", "fed"), [(0.3, False), (1.9, True)])  # the slowest weights lead, or noise they feed
def test_growth_rates_of_continuous_spectra_are_within_their_errors_of_closed_equations(
    spectrum, density, ends, tau, fed
):
    """R decays at tau rho + strength, and Q at the roots x of 1 = tau^2 E[rho^2/(x + 2 (tau rho + strength))]."""

    def mean(f):
        return quad(lambda rho: f(rho) * density(rho), *ends)[0] / quad(density, *ends)[0]

    unit, strength = mean(lambda rho: rho), 0.1  # eigenvalues have the mean 1

    def noise(x):
        return tau**2 * mean(lambda rho: (rho / unit) ** 2 / (x + 2.0 * (tau * rho / unit + strength)))

    slowest = -(tau * ends[0] / unit + strength)
    assert (noise(slowest) > 1.0) == fed
    expected = brentq(lambda x: noise(x) - 1.0, slowest, 0.0) if fed else slowest
    limit = limit_with(partial(regression, tau=tau), PriorSettings(name="l2", strength=strength), spectrum)
    for rung in (0, 1):
        equations = equations_of(limit, coordinates_of(limit, rung))
        (x,) = polished(equations, [unknowns_at(limit, np.array([0.5]), 0.0)])
        found = state_variables(equations, equations.state(x))
        assert abs(found["growth_rate"] - expected) <= found["growth_rate_error"] < 1e-2
