"""Branches of stationary states: ends, turning points, agreement with states found at one value, refusals."""

import numpy as np
import pytest

import meanfield
from meanfield import find_stationary_states
from meanfield.contrastive import continue_stationary_states
from meanfield.errors import InputError
from meanfield.problems.problem_keys import with_value
from meanfield.results.states import branches_of
from meanfield.results.text import describe
from tests.example_problems import feature, features, make_problem

QUARTIC = make_problem(
    features(feature(0.5, '{ law = "three_point", second_moment = 1.0, fourth_moment = 6.05 }')),
    "model.learning_rate = 0.05",
    'prior = { name = "quartic", strength = 0.5 }',
)
RATE, MOMENT = "model.learning_rate", "features[0].hidden.second_moment"


@pytest.fixture(scope="module")
def bistable():
    return continue_stationary_states(QUARTIC, RATE, 0.02, 0.3, points=5)


def test_ends_are_exact_and_hold_all_states(bistable):
    for end in (0.02, 0.3):
        expected = find_stationary_states(with_value(QUARTIC, RATE, end))["q"].values
        found = bistable["q"].values[bistable["parameter"].values == end]
        assert np.sort(found[:, 0]) == pytest.approx(np.sort(expected[:, 0]), abs=1e-9)  # nodes are chosen to 1e-10
    assert "warning" not in bistable.attrs  # nothing is missing at either end


def test_stability_changes_at_the_turning_point_where_the_growth_rate_vanishes(bistable):
    turning = bistable.isel(point=np.flatnonzero(bistable["turning"] == 1))
    assert turning.sizes["point"] == 2
    assert turning["q"].values[0, 0] == pytest.approx(-turning["q"].values[1, 0], abs=1e-6)  # flat there
    assert turning["parameter"].values[0] == pytest.approx(turning["parameter"].values[1], rel=1e-10)  # its square
    assert np.abs(turning["growth_rate"]).max() < 1e-6  # the tangent is level to 1e-9
    for branch in branches_of(bistable):
        if branch["turning"].any():
            at = int(np.flatnonzero(branch["turning"])[0])
            verdicts = branch["stability"].values
            assert len(set(verdicts[:at])) == len(set(verdicts[at + 1 :])) == 1
            assert verdicts[0] == -verdicts[-1]


def test_the_law_of_a_coordinate_may_be_varied():
    sparse = with_value(make_problem(), "features[0].coordinate", {"law": "three_point", "fourth_moment": 5.0})
    sparse = with_value(sparse, "prior.name", "quartic")
    key = "features[0].coordinate.fourth_moment"
    result = continue_stationary_states(sparse, key, 3.0, 3.5, points=2)
    expected = find_stationary_states(with_value(sparse, key, 3.5))["q"].values
    found = result["q"].values[result["parameter"].values == 3.5]
    assert np.sort(found[:, 0]) == pytest.approx(np.sort(expected[:, 0]), abs=1e-9)  # nodes are exact


def test_beyond_the_turning_point_there_are_fewer_states(bistable):
    fold = float(bistable["parameter"][bistable["turning"] == 1][0])
    counts = [find_stationary_states(with_value(QUARTIC, RATE, fold + d)).sizes["state"] for d in (-1e-3, 1e-3)]
    assert counts == [5, 1]


def test_points_between_are_states(bistable):
    for i in range(0, bistable.sizes["point"], 18):
        point = bistable.isel(point=i)
        states = find_stationary_states(with_value(QUARTIC, RATE, float(point["parameter"])))
        assert np.abs(states["q"].values[:, 0] - float(point["q"][0])).min() < 1e-8  # nodes are chosen to 1e-10
    assert (
        bistable["quadrature_error"].values[bistable["turning"] == 0].max() < 1e-7
    )  # the same, and larger close to a turn


@pytest.mark.slow  # a pitchfork in closed form is in tests/mckean_vlasov/stationary/test_hand_written_limit.py
def test_pitchfork_of_a_symmetric_problem():
    """Q = 0 loses stability where <c^2> = 1 + Lambda(0)/(24 tau): Lambda(0) = 16 tau^2 15/m (theory.md, section 7)."""
    expected = 1 + 16 * 0.02**2 * 15 / 10 / (24 * 0.02)
    pitchfork = continue_stationary_states(make_problem(), MOMENT, 0.6, 1.2, points=11)
    zero = next(b for b in branches_of(pitchfork) if np.abs(b["q"]).max() < 1e-9)
    stable = zero["stability"].values == 1
    assert np.array_equal(stable, zero["parameter"].values < expected)
    turning = pitchfork["parameter"].values[pitchfork["turning"].values == 1]
    assert turning == pytest.approx([expected], abs=1e-7)  # q is 0 to 1e-5 there, and p is flat


def test_a_prior_that_leaves_no_density_ends_a_branch():
    problem = make_problem('prior = { name = "l1", strength = 0.1 }', "model.learning_rate = 0.05")
    result = continue_stationary_states(problem, "prior.strength", 0.7, 1.0, points=3)
    zero = next(b for b in branches_of(result) if np.abs(b["q"]).max() < 1e-9)
    # under Laplace's density, G = 0, E[w^2] = (Lambda/(tau strength))^2/2 = 1
    diffusion = 16 * 0.05**2 * 15 / 10
    end = diffusion / (0.05 * np.sqrt(2))
    assert float(zero["parameter"].max()) == pytest.approx(end, abs=3e-5)  # dF/dp is a difference over 1e-5
    assert "branch 0: " in describe(result)


def test_result_saves_and_loads(bistable, tmp_path):
    meanfield.save(bistable, tmp_path / "branches.nc")
    assert meanfield.load(tmp_path / "branches.nc").identical(bistable)
    assert bistable["parameter"].attrs["key"] == RATE
    assert "turning at 0.177" in describe(bistable)


@pytest.mark.parametrize(
    ("key", "start", "stop", "points", "message"),
    [
        ("prior.strenth", 0.0, 1.0, 5, "did you mean 'prior.strength'"),
        ("prior.name", 0.0, 1.0, 5, "holds 'quartic', not one number"),
        ("time.stop", 1.0, 2.0, 5, "'time.stop': stationary states do not depend on it; vary a number of model"),
        ("features[0].initial_overlap", 0.1, 0.2, 5, "stationary states do not depend on it"),
        ("model.batch_size", 1.0, 20.0, 5, "'model.batch_size' = 10 takes whole numbers only"),
        ("prior.strength", -1.0, 1.0, 5, "prior.strength = -1.0: should be greater than or equal to 0"),
        ("prior.strength", 0.0, np.inf, 5, "stop = inf: give a number, one end of the range of 'prior.strength'"),
        ("prior.strength", 1.0, 1.0, 5, "the ends of the range are equal"),
        ("prior.strength", 0.0, 1.0, 1, "points = 1: give a whole number, at least 2"),
        (MOMENT, 0.9, 3.0, 5, "fourth_moment = 6.05 is below second_moment"),
        ("augmentation.correlation", 0.0, 1.0, 5, "'augmentation.correlation' holds nothing in this problem"),
    ],
)
def test_bad_input_is_refused(key, start, stop, points, message):
    with pytest.raises(InputError, match=message):
        continue_stationary_states(QUARTIC, key, start, stop, points)
