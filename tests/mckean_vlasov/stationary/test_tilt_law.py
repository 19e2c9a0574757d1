"""Law of the tilt of three coordinates, against closed forms, and the error of few nodes that it shows."""

from itertools import product

import numpy as np
import pytest

from meanfield.extend import PriorSettings
from meanfield.ingredients.laws import GaussianCoordinate
from meanfield.ingredients.laws.coordinate import LaplaceCoordinate, UniformCoordinate
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.tilt_law import tilt_rule
from tests.mckean_vlasov.stationary.test_hand_written_limit import limit_with

FOURTH = {UniformCoordinate: 9 / 5, LaplaceCoordinate: 6, GaussianCoordinate: 3}
REACH = 3**0.5


@pytest.mark.parametrize(
    ("laws", "gains"),
    [
        ((UniformCoordinate, UniformCoordinate, UniformCoordinate), (0.3, -1.0, 0.7)),
        ((GaussianCoordinate, LaplaceCoordinate, UniformCoordinate), (0.05, -1.0, 0.0)),
    ],
)
def test_moments_up_to_the_fourth_are_those_of_the_laws(laws, gains):
    g, fourth = np.array(gains), np.array([FOURTH[law] for law in laws])
    s, weight, mean = tilt_rule([law() for law in laws], g, np.array([0.1, 0.1001, 99.0]))
    assert weight.sum() == pytest.approx(1.0, abs=1e-14)  # normalised
    assert mean.sum(axis=0) == pytest.approx(0.0, abs=1e-13)  # rounding
    assert mean.T @ s == pytest.approx(g, abs=1e-11)  # tails beyond the range of a law
    assert mean.T @ s**3 == pytest.approx(g**3 * fourth + 3 * g * (g @ g - g * g), abs=1e-11)  # likewise


def below(c, g):
    """Probability that a sum of uniform coordinates lies below c, by inclusion and exclusion of corners of a cube."""
    reach = REACH * np.abs(g)
    signs = np.array(list(product((0, 1), repeat=len(g))))
    parts = (-1.0) ** signs.sum(axis=1) * np.maximum(c - (2 * signs - 1) @ reach, 0.0) ** len(g)
    return parts.sum() / (6.0 * np.prod(2 * reach))


def test_steps_between_nodes_are_where_they_are():
    g, step = np.array([1.0, -0.7, 0.3]), 0.123
    s, weight, _ = tilt_rule([UniformCoordinate()] * 3, g, np.array([step]))
    assert weight[s < step].sum() == pytest.approx(below(step, g), abs=1e-12)  # rounding of cubes


def test_few_nodes_in_three_coordinates_tell_their_error():
    """E[w|s] jumps from well to well in a layer at s = 0 that is narrower than nodes are apart."""
    prior, a = PriorSettings(name="double_well", strength=5.0), 0.2
    equations = StationaryEquations(limit_with((UniformCoordinate(),) * 3, prior, gains=(0.4,) * 3, noise=2e-4))
    state = equations.state(np.full(3, a))
    g = state.coefficients.g
    edges = np.unique(np.concatenate([np.linspace(-0.42, 0.42, 2001), np.linspace(-0.02, 0.02, 2001)]))
    middle = 0.5 * (edges[1:] + edges[:-1])
    moments, _ = equations._moments(state.G, state.coefficients.diffusion, middle)
    along = np.diff([below(edge, g) for edge in edges]) @ (middle * moments[:, 0])
    residual = along / g.sum() - a  # of each coordinate, as all are alike: E[s w] is the sum of g E[u w]
    check = equations.check(state)
    assert check.residual == pytest.approx(abs(residual), abs=1e-6)  # cells of the sum that stands for the integral
    assert np.abs(state.residual - residual).max() > 3e-4  # the nodes are wrong
    assert check.error > 3e-4  # one Newton step
