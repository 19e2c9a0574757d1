"""States that are images of each other, and nodes on a line in the place of those in u."""

import numpy as np
import pytest

from meanfield.extend import PriorSettings
from meanfield.ingredients.laws import GaussianCoordinate
from meanfield.ingredients.laws.coordinate import RademacherCoordinate, UniformCoordinate
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.interpolation import gathered
from meanfield.mckean_vlasov.stationary.search import orbits
from meanfield.mckean_vlasov.stationary.variables import state_variables
from tests.mckean_vlasov.stationary.test_hand_written_limit import limit_with

L1 = PriorSettings(name="l1", strength=0.3)
TWO = (RademacherCoordinate(), RademacherCoordinate())


def sizes(limit, *overlaps):
    return [len(orbit.maps) for orbit in orbits(limit, [np.array(q) for q in overlaps])]


def test_equal_gains_and_laws_are_exchanged_and_others_are_not():
    overlaps = (0.3, 0.6), (-0.3, 0.6), (0.6, 0.3), (0.0, 0.0), (0.5, 0.5)
    assert sizes(limit_with(TWO, gains=(0.4, 0.4)), *overlaps) == [3, 1, 1]
    assert sizes(limit_with(TWO, gains=(0.4, 0.2)), *overlaps) == [2, 1, 1, 1]
    assert sizes(limit_with((TWO[0], UniformCoordinate()), gains=(0.4, 0.4)), *overlaps) == [2, 1, 1, 1]


def test_images_have_the_variables_that_they_have_on_their_own():
    limit = limit_with(TWO, L1)
    equations = StationaryEquations(limit)
    q, flipped = np.array([0.3, 0.5]), np.array([0.3, -0.5])
    (orbit,) = orbits(limit, [q, flipped])
    assert np.array_equal(orbit.images, [q, flipped])
    first, other = (state_variables(equations, equations.state(at)) for at in (q, flipped))
    for name in set(first) - {"q", "g"}:
        assert other[name] == pytest.approx(first[name], abs=1e-9, nan_ok=True)  # differences of g: nine digits
    assert other["g"] == pytest.approx(orbit.maps[1] @ first["g"], abs=1e-12)  # rounding of sums


def test_gathered_nodes_have_the_sums_of_polynomials_between_ends():
    rng = np.random.default_rng(1)
    ends, places, weights = np.array([-2.0, -0.5, 1.0, 4.0]), rng.uniform(-2, 1, 300), rng.uniform(size=(300, 2))
    nodes, sums = gathered(ends, places, weights)
    assert len(nodes) == 40  # none where there are no places

    first = np.arange(40) < 20  # pieces share an end
    found = np.where(first, nodes**9, 1 - nodes**19) @ sums
    expected = np.where(places < -0.5, places**9, 1 - places**19) @ weights
    assert found == pytest.approx(expected, rel=1e-12)  # rounding of sums


def test_nodes_on_a_line_change_no_average():
    limit = limit_with((GaussianCoordinate(), UniformCoordinate()), L1)
    equations = StationaryEquations(limit)
    state = equations.state(np.array([0.3, 0.5]))
    fewer = equations.on_a_line(state)
    assert len(fewer.tilts.tilt) < 0.1 * len(state.tilts.tilt)
    assert fewer.residual == pytest.approx(state.residual, abs=1e-11)  # as averages are resolved
    assert fewer.tilts.second.sum(axis=0) == pytest.approx(np.eye(2), abs=1e-9)  # nodes of the rule in u
    curved = [np.einsum("c,ckl->kl", one.moments[:, 1], one.tilts.second) for one in (state, fewer)]
    assert curved[1] == pytest.approx(curved[0], abs=1e-11)  # as averages are resolved
