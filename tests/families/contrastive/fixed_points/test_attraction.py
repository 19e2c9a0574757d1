"""Regions of attraction against trajectories of another integrator, symmetry, and refusals."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from meanfield.errors import InputError
from meanfield.families.contrastive.fixed_points.attraction import (
    UNDECIDED,
    attraction_intervals,
    attraction_shares,
    attractor_of,
    traps,
)
from meanfield.families.contrastive.fixed_points.points import find_fixed_points
from meanfield.families.contrastive.order_parameters.field import VectorField
from tests.example_problems import feature, features, gaussian, make_problem

LAW = '{ law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }'
BISTABLE = '{ law = "three_point", second_moment = 1.0, fourth_moment = 5.0 }'
SKEW = '{ law = "two_point", values = [-0.5, 2.0], probability = 0.8 }'


def fixed_points(*hidden, lines=()):
    return find_fixed_points(VectorField(make_problem(features(*(feature(0.1, law) for law in hidden)), *lines)))


@pytest.fixture(scope="module")
def unequal():
    return fixed_points(gaussian(1.2), LAW)


def starts_in(d1, count, seed=0):
    points = np.random.default_rng(seed).uniform(-1, 1, (count, d1))
    return points[np.linalg.norm(points, axis=1) < 1]


def ends(points, starts, time=600.0):
    """Where LSODA takes each start, as the number of the closest fixed point."""
    tight = {"rtol": 1e-8, "atol": 1e-10}  # far below the distances of fixed points
    reached = [solve_ivp(lambda _, q: points.field(q), (0, time), q, method="LSODA", **tight).y[:, -1] for q in starts]
    distance = np.linalg.norm(points.q[None] - np.array(reached)[:, None], axis=2)
    return distance.argmin(axis=1), distance.min(axis=1)


def test_two_features_agree_with_trajectories(unequal):
    starts = starts_in(2, 24)
    expected, distance = ends(unequal, starts)
    assert distance.max() < 1e-5  # all arrived, LSODA at 1e-8 over the way
    assert np.array_equal(attractor_of(unequal, starts), expected)


def test_features_that_are_not_symmetric_agree_with_trajectories():
    points = fixed_points(SKEW, LAW, lines=['model = { activation = "relu", learning_rate = 0.3 }'])
    starts = starts_in(2, 12, seed=1)
    expected, distance = ends(points, starts)
    assert distance.max() < 1e-5  # the same
    assert np.array_equal(attractor_of(points, starts), expected)


def test_one_feature_is_attracted_by_intervals():
    points = fixed_points(BISTABLE)
    intervals = attraction_intervals(points)
    assert [number for *_, number in intervals] == points.stable
    assert intervals[0][0] == -1.0
    assert intervals[-1][1] == 1.0
    for low, high, number in intervals:
        inside = np.linspace(low, high, 9)[1:-1, None]
        assert np.all(attractor_of(points, inside) == number)


def test_borders_are_undecided(unequal):
    saddle = next(point for point in unequal.points if point.kind == "saddle")
    assert attractor_of(unequal, np.array([saddle.q, [0.0, 0.0]])).tolist() == [UNDECIDED, UNDECIDED]


def test_traps_hold_what_starts_in_them(unequal):
    for trap in traps(unequal):
        edge = np.linalg.inv(np.linalg.cholesky(trap.metric)).T @ np.array([[1, 0, -1, 0], [0, 1, 0, -1]])
        starts = trap.centre + 0.999 * edge.T
        starts = starts[np.linalg.norm(starts, axis=1) < 1]
        expected, _ = ends(unequal, starts)
        assert np.all(expected == trap.number)


@pytest.mark.slow
def test_shares_of_equal_features_are_equal():
    points = fixed_points(LAW, LAW, LAW)
    share, error = attraction_shares(points, 0.4, count=60)
    single = np.array(points.stable)
    assert share.sum() == pytest.approx(1.0, abs=1e-12)  # rounding: no start lies on a border
    # six regions of 1/6 each, 60 starts: 4 standard errors, 6 looks, one false alarm in 2600 seeds; the seed is fixed
    assert np.abs(share[single] - 1 / 6).max() < 4 * np.sqrt(5 / 36 / 60)
    assert error[single] == pytest.approx(np.sqrt(share[single] * (1 - share[single]) / 60))


def test_shares_tell_where_starts_in_all_directions_end(unequal):
    share, error = attraction_shares(unequal, 0.5, count=40)
    turn = (np.arange(50) + 0.5) * np.pi / 100
    labels = attractor_of(unequal, 0.5 * np.stack([np.cos(turn), np.sin(turn)], axis=-1))
    second = [i for i, point in enumerate(unequal.points) if point.verdict == 1 and abs(point.q[1]) > 0.5]
    expected = np.mean(np.isin(labels, second))
    assert share.sum() == pytest.approx(1.0)
    # 40 directions: 4 standard errors, one false alarm in 16000 seeds; the seed is fixed
    assert abs(share[second].sum() - expected) < 4 * np.sqrt(expected * (1 - expected) / 40)
    assert error == pytest.approx(np.sqrt(share * (1 - share) / 40))


@pytest.mark.parametrize(
    ("starts", "message"),
    [([[0.9, 0.9]], "lies outside the unit ball"), ([[0.1]], "the problem has 2 feature")],
)
def test_bad_starts_are_refused(unequal, starts, message):
    with pytest.raises(InputError, match=message):
        attractor_of(unequal, np.array(starts))


def test_bad_shares_and_intervals_are_refused(unequal):
    with pytest.raises(InputError, match=r"radius = 1\.5"):
        attraction_shares(unequal, 1.5)
    with pytest.raises(InputError, match="count = 0"):
        attraction_shares(unequal, 0.5, count=0)
    with pytest.raises(InputError, match="features: 2 of them, but intervals are for one"):
        attraction_intervals(unequal)
