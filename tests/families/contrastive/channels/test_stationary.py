"""Stationary states of several channels: their laws, what ends in them, and all that is done with results."""

from dataclasses import replace

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.contrastive import FAMILY
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.testing import methods
from meanfield.testing.example import Example
from tests.families.contrastive.channels.problems import standard

ONE_FEATURE = """
[model]
activation = "quadratic"
centering = "population"
learning_rate = 0.02
batch_size = 5
channels = 2
initial_channel_overlap = 0.3
[decorrelation]
strength = 0.05
[[features]]
hidden = { law = "three_point", second_moment = 1.2, fourth_moment = 7.2 }
coordinate = { law = "rademacher" }
initial_overlap = [0.8, 0.7]
[time]
stop = 400.0
outputs = 3
"""


@pytest.fixture(scope="module")
def problem():
    return meanfield.parse_problem(ONE_FEATURE)


@pytest.fixture(scope="module")
def states(problem):
    return meanfield.find_stationary_states(problem)


def test_gaussian_laws_have_the_overlaps_of_their_states(states):
    w, u_weight = states["w"].values, states["u_weight"].values
    mass = states["P"].transpose("state", "channel", ..., "w").values * np.diff(edges_of(states))
    q = np.einsum("sknw,n,w->sk", mass, states["u"].values.ravel() * u_weight, w)
    np.testing.assert_allclose(q, states["q"].values[:, 0], atol=5e-4)  # a cell of the width 0.07 shifts a mean less
    assert states.attrs["indices_add_up"] == "true"
    assert {1, -1} <= set(states["stability"].values.tolist())
    assert float(abs(states["multiplier_residual"]).max()) < 1e-9  # rounding of averages


def test_a_long_density_ends_in_a_stable_state(problem, states):
    density = meanfield.solve_density(problem)
    away = [
        max(float(abs(density[name][-1] - state[name]).max()) for name in ("q", "M", "r"))
        for _, state in states.where(states["stability"] == 1, drop=True).groupby("state")
    ]
    assert min(away) < 1e-4  # exp(-0.03 * 400) of the first distance, with the slowest rate and the time


def test_everything_is_done_with_stationary_states(problem, states, tmp_path):
    example = Example(replace(FAMILY, methods={"stationary": FAMILY.methods["stationary"]}))
    example.__dict__["problem"], example._results["stationary"] = problem, states
    methods.check_report(example, tmp_path)
    for check in (methods.check_result, methods.check_file, methods.check_conventions, methods.check_figure):
        check(example, "stationary", tmp_path)


def test_what_has_no_stationary_states_is_refused():
    with pytest.raises(InputError, match=r"model.channels = 2: branches of stationary states are known for a single"):
        meanfield.contrastive.continue_stationary_states(standard(), "prior.strength", 0.0, 1.0)
