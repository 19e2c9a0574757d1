"""Branches of fixed points against closed forms, stationary states, and fixed points at single values."""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.contrastive.fixed_points.branches import continue_fixed_points, stationary_similarity
from meanfield.families.contrastive.fixed_points.points import find_fixed_points
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.plotting import plot_branches
from meanfield.problems.problem_keys import with_value
from tests.example_problems import feature, features, gaussian, make_problem

LAW = '{ law = "three_point", second_moment = 1.0, fourth_moment = 5.0 }'
ONE = make_problem(features(feature(0.1, LAW)))
TWO = make_problem(features(feature(0.1, gaussian(1.2)), feature(0.1, LAW)))
RATE, MOMENT = "model.learning_rate", "features[0].hidden.second_moment"


@pytest.fixture(scope="module")
def bistable():
    return continue_fixed_points(ONE, RATE, 0.02, 0.3, points=11)


def at_end(branches, value):
    return branches["q"].values[branches["parameter"].values == value]


def test_ends_hold_all_fixed_points(bistable):
    for end in (0.02, 0.3):
        expected = find_fixed_points(VectorField(with_value(ONE, RATE, end))).q
        found = np.unique(np.round(at_end(bistable, end)[:, 0], 9))
        assert found == pytest.approx(np.sort(expected[:, 0]), abs=1e-8)  # rounded to 1e-9


def test_turning_point_is_where_the_polynomial_has_a_double_root(bistable):
    """(dQ/dt)/(8 tau Q) = 2 Q (1 - Q) - 2 (tau/m) T6 with m4 = 5, m6 = 25 (theory.md, section 8)."""
    Q = np.linspace(0.01, 0.99, 200_001)
    ratio = Q * (1 - Q) / (10 * Q**3 + 30 * Q**2 * (1 - Q) + 15)
    turning = bistable["parameter"].values[bistable["turning"].values == 1]
    assert turning == pytest.approx(10 * ratio.max(), abs=1e-8)  # the grid in Q: (5e-6)^2, and the level tangent
    assert len(turning) == 2


def test_stability_changes_at_the_turning_point(bistable):
    for number in np.unique(bistable["branch"]):
        branch = bistable.isel(point=np.flatnonzero(bistable["branch"].values == number))
        verdicts = branch["stability"].values[branch["turning"].values == 0]
        assert np.count_nonzero(np.diff(verdicts)) == branch["turning"].values.sum()


def test_branches_between_are_found_once(bistable):
    assert len(np.unique(bistable["branch"])) == 3  # zero, and the fold with its mirror image


def test_states_that_exist_only_in_between_are_found():
    """The origin loses its stability in a pitchfork on the way, from which a state goes on to the end.

    A Gaussian variable has this branch alone; what a three-point law has beside it is followed in the fixture.
    """
    problem = make_problem(features(feature(0.1, gaussian(1.0))))
    result = continue_fixed_points(problem, MOMENT, 1.01, 1.03, points=2)
    assert result["tau"].item() == problem.model.learning_rate
    expected = 1 + 0.02 * 16 * 15 / 24 / 10  # <c^2> = 1 + Lambda(0)/(24 tau), theory.md, section 7
    turning = result["parameter"].values[result["turning"].values == 1]
    assert turning == pytest.approx([expected], abs=1e-6)  # flat there


def test_two_features_agree_with_single_searches():
    result = continue_fixed_points(TWO, RATE, 0.05, 0.06, points=2)
    for value in (0.05, 0.06):
        expected = find_fixed_points(VectorField(with_value(TWO, RATE, value)))
        found = at_end(result, value)
        nearest = np.linalg.norm(expected.q[:, None] - found[None], axis=2).min(axis=1)
        assert nearest.max() < 1e-9  # Newton at 1e-11


@pytest.mark.slow
def test_prior_free_stationary_states_are_the_same(bistable):
    states = meanfield.find_stationary_states(with_value(ONE, RATE, 0.02))
    order = np.argsort(at_end(bistable, 0.02)[:, 0])
    found = at_end(bistable, 0.02)[order, 0]
    assert found == pytest.approx(states["q"].values[:, 0], abs=1e-9)  # nodes are chosen to 1e-10
    verdicts = bistable["stability"].values[bistable["parameter"].values == 0.02][order]
    assert verdicts.tolist() == states["stability"].values.tolist()


def test_similarity_is_that_of_the_best_stable_state(bistable):
    values = np.array([0.02, 0.1, 0.12, 0.2])
    expected = []
    for value in values:
        points = find_fixed_points(VectorField(with_value(ONE, RATE, value)))
        expected.append(max(np.linalg.norm(points.points[i].q) for i in points.stable))
    assert stationary_similarity(bistable, values) == pytest.approx(expected, abs=1e-9)  # Newton at 1e-11, flat


def test_result_saves_loads_and_draws(bistable, tmp_path):
    assert set(bistable.coords) == {"parameter", "branch", *bistable.dims}  # no tau, which varies
    meanfield.save(bistable, tmp_path / "branches.nc")
    loaded = meanfield.load(tmp_path / "branches.nc")
    assert loaded.identical(bistable)
    figure = plot_branches(loaded)
    assert len(figure.axes) == 1
    assert figure.axes[0].get_xlabel() == r"learning rate $\tau$"


@pytest.mark.parametrize(
    ("problem", "key", "message"),
    [
        (ONE, "prior.strength", "fixed points do not depend on it; vary a number of model"),
        (ONE, "model.batch_size", "takes whole numbers only"),
        (make_problem('prior = { name = "l1", strength = 1.0 }'), RATE, "the order parameters close only"),
    ],
)
def test_bad_input_is_refused(problem, key, message):
    with pytest.raises(InputError, match=message):
        continue_fixed_points(problem, key, 0.1, 0.2)


def test_similarity_outside_the_range_is_refused(bistable):
    with pytest.raises(InputError, match=r"model\.learning_rate = 0\.5: branches go from 0\.02 to 0\.3"):
        stationary_similarity(bistable, np.array([0.5]))
