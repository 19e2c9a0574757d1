"""The equations of stationary states: derivatives, the Gaussian case, nodes in u."""

import numpy as np
import pytest

from meanfield.families.contrastive.limit import limit_of
from meanfield.ingredients.laws.coordinate import (
    GaussianCoordinate,
    LaplaceCoordinate,
    RademacherCoordinate,
    UniformCoordinate,
)
from meanfield.mckean_vlasov.stationary.coordinates import CELLS, Coordinates, Layers
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.interpolation import NODES
from meanfield.mckean_vlasov.stationary.stability import stability
from tests.example_problems import feature, features, gaussian, make_problem

MIXED = features(feature(0.5), feature(0.3, gaussian(1.4), "rademacher"), feature(0.2))
PRIORS = ["none", "l2", "l1", "elastic_net", "smooth_l1", "log_cosh", "quartic", "cauchy", "double_well"]


def equations_of(*lines, rung=1):
    limit = limit_of(make_problem(*lines))
    return StationaryEquations(limit, Coordinates(limit.coordinates, rung))


def differences(function, x, h=1e-5):
    return np.array([(function(x + h * e) - function(x - h * e)) / (2 * h) for e in np.eye(len(x))]).T


@pytest.mark.parametrize("prior", PRIORS)
def test_jacobian_is_the_derivative(prior):
    for lines, q in (((), [0.6]), ((MIXED,), [0.5, -0.4, 0.3])):
        equations = equations_of(f'prior = {{ name = "{prior}", strength = 0.7 }}', *lines)
        _, slope = equations(np.array(q))
        numerical = differences(lambda x: equations(x)[0], np.array(q))  # noqa: B023
        assert slope == pytest.approx(numerical, abs=1e-8)  # differences of step 1e-5 of values good to 1e-13
        values, slope = equations.by_spread(np.array(q))
        assert values * equations.state(np.array(q)).spread == pytest.approx(equations(np.array(q))[0], abs=1e-13)
        numerical = differences(lambda x: equations.by_spread(x)[0], np.array(q))  # noqa: B023
        assert slope == pytest.approx(numerical, rel=1e-6, abs=1e-6)  # values are larger by 1/V, up to 100


@pytest.mark.parametrize("prior", ["none", "l2"])
def test_linear_priors_have_gaussian_densities(prior):
    """W given u is N(-u.g/|G|, Lambda/(2|G|)) with G the multiplier less tau strength."""
    equations = equations_of(f'prior.name = "{prior}"', MIXED)
    q = np.array([0.5, -0.4, 0.3])
    state = equations.state(q)
    c = state.coefficients
    stiffness = -state.G
    strength = equations.limit.learning_rate * (prior == "l2")
    assert (equations.shift, equations.pull) == (strength, 0.0)
    assert state.moments[:, 0] == pytest.approx(-state.tilts.tilt / stiffness, abs=1e-12)  # rounding
    variance = state.moments[:, 1] - state.moments[:, 0] ** 2
    assert variance == pytest.approx(0.5 * c.diffusion / stiffness, rel=1e-11)  # rounding of squares up to 50
    assert state.residual == pytest.approx(-c.g / stiffness - q, abs=1e-12)  # rounding


def test_q_zero_solves_a_symmetric_problem():
    for prior in ("none", "quartic", "double_well"):
        values, _ = equations_of(f'prior = {{ name = "{prior}", strength = 0.5 }}', MIXED)(np.zeros(3))
        assert values == pytest.approx(0, abs=1e-13)  # rounding of g(0)


def test_outside_of_the_domain_there_are_no_numbers():
    equations = equations_of('prior = { name = "l1", strength = 5.0 }')
    assert np.isnan(equations(np.array([1.0]))[0]).all()
    assert np.isnan(equations(np.array([np.nan]))[0]).all()
    assert np.isnan(equations(np.array([0.0]))[0]).all()  # E[w^2] = 1 would take G > 0, which l1 does not hold


@pytest.mark.parametrize("panels", [False, True])
def test_gaussian_coordinates_need_one_line_of_nodes(panels):
    laws = (GaussianCoordinate(), GaussianCoordinate(), UniformCoordinate())
    g = np.array([0.3, -0.5, 0.2])
    tilts = (Layers(laws, np.array([-0.2, 0.1]), 2) if panels else Coordinates(laws)).tilts(g)
    assert tilts.weight.sum() == pytest.approx(1, abs=1e-14)  # rounding
    assert tilts.mean.sum(axis=0) == pytest.approx(0, abs=1e-14)  # rounding
    assert tilts.second.sum(axis=0) == pytest.approx(np.eye(3), abs=1e-13)  # rounding
    # E[u_1 exp(s)] for independent coordinates, with E[exp(g u)] = exp(g^2/2) or sinh(x)/x at x = sqrt(3) g
    x = np.sqrt(3) * g[2]
    expected = g[0] * np.exp(0.5 * (g[0] ** 2 + g[1] ** 2)) * np.sinh(x) / x
    # Beyond the 6.7 deviations of the rule lie 2e-11 of the probability, times exp(3.9) and times u = 7.
    assert tilts.mean[:, 0] @ np.exp(tilts.tilt) == pytest.approx(expected, rel=1e-8)  # see the line above


def test_merged_nodes_keep_sums_and_have_no_weight_below_zero():
    tilts = Coordinates((GaussianCoordinate(), UniformCoordinate()), 0).tilts(np.array([0.3, -0.5]))
    merged = tilts.merged(np.linspace(-3.0, 3.0, 9))
    assert len(merged.tilt) <= 8 * CELLS < len(tilts.tilt)
    assert merged.weight.min() > 0
    assert np.linalg.eigvalsh(merged.second).min() >= -1e-15  # rounding
    for name in ("weight", "mean", "second"):
        whole = getattr(tilts, name).sum(axis=0)
        assert getattr(merged, name).sum(axis=0) == pytest.approx(whole, abs=1e-14)  # rounding
    expected = tilts.weight @ np.cos(tilts.tilt)
    assert merged.weight @ np.cos(merged.tilt) == pytest.approx(expected, abs=3e-6)  # (6/800)^2/24, and rounding


def test_linear_priors_need_no_nodes_but_two():
    """Averages of Gaussian densities depend on the second moments of u alone, also in the spectrum."""
    limit = limit_of(make_problem(MIXED, 'prior.name = "l2"'))
    few, many = StationaryEquations(limit), StationaryEquations(limit, Coordinates(limit.coordinates, 1))
    assert len(few.coordinates.tilts(np.ones(3)).weight) == 8
    q = np.array([0.5, -0.4, 0.3])
    for one, other in zip(few(q), many(q), strict=True):
        assert one == pytest.approx(other, abs=1e-9)  # what 71 nodes leave, beyond 8 deviations
    first, second = (stability(e, e.state(q)).eigenvalues for e in (few, many))
    assert first == pytest.approx(second, abs=1e-7, nan_ok=True)  # likewise, and eigenvalues of a matrix of moments


def test_discrete_coordinates_have_exact_nodes():
    coordinates = Coordinates((RademacherCoordinate(), RademacherCoordinate()))
    assert len(coordinates.tilts(np.ones(2)).weight) == 4
    assert coordinates.finer is None


def test_more_nodes_show_the_error_of_fewer():
    equations = equations_of('prior = { name = "l1", strength = 0.5 }', rung=0)
    finest = equations_of('prior = { name = "l1", strength = 0.5 }', rung=2)
    q = np.array([0.9745])
    (coarse, slope), (fine, _) = equations(q), finest(q)
    moved = abs((coarse - fine)[0] / slope[0, 0])
    assert 0.3 * moved < equations.node_error(q) < 3 * moved  # the finest rung is much closer to the limit


def test_nodes_on_panels_are_exact_where_a_function_of_the_tilt_jumps():
    """E[u_k sign(s - c)] and E[sign(s - c)] of independent coordinates, in closed form."""
    c, g = 0.04, np.array([0.3, 0.1])
    laws = (LaplaceCoordinate(), RademacherCoordinate())
    tilts = Layers(laws, np.array([-1.0, c, 1.0]), 2).tilts(g)
    cuts = (c - np.array([-1.0, 1.0]) * g[1]) / g[0]  # of u_1 where u_2 is -1 and 1
    decay = np.exp(-np.sqrt(2) * abs(cuts))
    above = np.where(cuts > 0, 0.5 * decay, 1 - 0.5 * decay)
    beyond = 0.5 * decay * (abs(cuts) + 1 / np.sqrt(2))  # E[u_1; u_1 > cut], even in the cut
    middle = tilts.tilt.reshape(-1, NODES)[:, NODES // 2]
    sign = np.repeat(np.sign(middle - c), NODES)  # both pieces that meet at c have a node there
    assert tilts.weight @ sign == pytest.approx(np.mean(2 * above - 1), abs=1e-13)  # rounding
    assert tilts.mean[:, 0] @ sign == pytest.approx(np.mean(2 * beyond), abs=1e-13)  # rounding
    assert tilts.mean[:, 1] @ sign == pytest.approx(np.mean([-1, 1] * (2 * above - 1)), abs=1e-13)  # rounding
    assert tilts.second[:, 0, 0].sum() == pytest.approx(1, abs=1e-13)  # rounding
