"""Fixed points against those of another program."""

import numpy as np
import pytest

from tests.families.hidden_manifold.problems import solved


@pytest.fixture(scope="module")
def states():
    return solved("fixed_points", order_parameters={"tolerance": 1e-6})


def test_the_symmetric_plateau(states):
    """All printed digits of the reference, which found it along the trajectory of units that are alike."""
    plateau = states.isel(state=int(np.argmax(states["generalisation_error"].values)))
    assert plateau["R"].values == pytest.approx(np.full((2, 2), 0.28829344), abs=1e-8)  # digits printed
    Q = [[0.35303210, 0.15074145], [0.15074145, 0.35303210]]
    assert plateau["Q"].values == pytest.approx(np.array(Q), abs=1e-8)  # digits printed
    assert float(plateau["generalisation_error"]) == pytest.approx(0.12386303, abs=1e-8)  # digits printed
    assert float(plateau["growth_rate"]) == pytest.approx(0.010314808, abs=1e-9)  # digits printed
    assert int(plateau["unstable_directions"]) == 1
    antisymmetric = plateau["leading_direction"].values
    assert np.abs(antisymmetric) == pytest.approx(np.ones((2, 2)), abs=1e-6)  # the tolerance
    assert antisymmetric[0, 0] * antisymmetric[0, 1] < 0


def test_the_trajectory_comes_to_rest_at_the_stable_one(states):
    learnt = states.isel(state=0)
    assert int(learnt["stability"]) == 1
    end = solved(time={"stop": 20000.0, "outputs": 2}, order_parameters={"tolerance": 1e-6})
    assert end["R"].values[-1] == pytest.approx(learnt["R"].values, abs=2e-6)  # both tolerances
    assert float(states["residual"].max()) < 1e-11
