"""Many paths at once against exact solutions: tolerance, order, events, ends, and the edges of a domain."""

from unittest.mock import Mock

import numpy as np
import pytest
from scipy.linalg import expm

from meanfield.errors import InputError
from meanfield.extend import Tolerance
from meanfield.numerics.paths import follow_paths

TIGHT = Tolerance(1e-9, 1e-9)
UNLIMITED = Tolerance(0.0, 1e6)


def turn(q):
    return np.stack([q[:, 1], -q[:, 0]], axis=1)


def grow(q):
    return q


def logistic(q):
    """Rises to 1 from 0 < q, in the time of log(q/(1 - q))."""
    return q * (1.0 - q)


def test_the_tolerance_is_kept_on_random_linear_systems():
    """Over all steps together, within 4 tolerances for systems whose solutions shrink in norm.

    The largest error of 900 systems of other seeds was 0.85 tolerances; the 30 here are of a fixed seed.
    """
    rng = np.random.default_rng(2)
    for tolerance in np.repeat([1e-4, 1e-6, 1e-8], 10):
        B, C = rng.normal(size=(2, 4, 4))
        A, starts = 0.5 * (B - B.T) - 0.25 * C @ C.T, rng.normal(size=(20, 4))
        both = Tolerance(tolerance, tolerance)
        found = follow_paths(lambda q: q @ A.T, starts, both, first_step=0.1, stop=4.0)  # noqa: B023
        allowed = 4 * tolerance * (1 + np.abs(starts).max())  # see above
        assert np.abs(found.end - starts @ expm(4.0 * A).T).max() < allowed
        assert found.finished.all()
        assert np.array_equal(found.time, np.full(20, 4.0))


def test_order_of_convergence():
    """Five, with steps that the tolerance does not limit; both lengths divide the time."""
    starts = np.array([[1.0, 0.0], [0.3, -0.4]])
    exact = starts @ expm(8.0 * np.array([[0.0, 1.0], [-1.0, 0.0]])).T
    runs = [follow_paths(turn, starts, UNLIMITED, first_step=h, longest_step=h, stop=8.0) for h in (0.1, 0.05)]
    coarse, fine = (np.linalg.norm(run.end - exact) for run in runs)
    assert np.log2(coarse / fine) == pytest.approx(5, abs=0.3)  # the next order, a tenth of the step


def test_a_tighter_tolerance_costs_steps_and_pays():
    exact, runs = expm(6.0 * np.array([[0.0, 1.0], [-1.0, 0.0]])).T, []
    for tolerance in (Tolerance(0.0, 1e-4), Tolerance(0.0, 1e-9)):
        velocity = Mock(side_effect=turn)
        found = follow_paths(velocity, np.eye(2), tolerance, first_step=0.1, stop=6.0)
        runs.append((velocity.call_count, np.abs(found.end - exact).max()))
    (few, coarse), (many, fine) = runs
    assert many / few == pytest.approx(10, rel=0.4)  # (1e5)^(1/5), and rejected steps
    assert fine < 1e-3 * coarse  # 1e-5 by proportion; a factor of 100 for luck with the coarse one


def test_every_path_has_steps_of_its_own():
    """A path that turns a thousand times faster leaves the others as they are."""
    speeds = np.array([1.0, 1e3, 2.0])

    def velocity(q):
        return speeds[q[:, 2].astype(int), None] * np.stack([q[:, 1], -q[:, 0], 0 * q[:, 0]], axis=1)

    starts = np.array([[1.0, 0.0, number] for number in range(3)])
    together = follow_paths(velocity, starts, TIGHT, first_step=1e-3, stop=0.1)
    for number in range(3):
        alone = follow_paths(velocity, starts[[number]], TIGHT, first_step=1e-3, stop=0.1)
        assert np.array_equal(together.end[number], alone.end[0])
        exact = np.cos(0.1 * speeds[number]), -np.sin(0.1 * speeds[number])
        assert together.end[number, :2] == pytest.approx(exact, abs=1e-5)  # 1e-9 in 2 000 steps at most


@pytest.mark.parametrize("tolerance", [1e-5, 1e-8])
def test_events_are_where_the_margin_changes_its_sign(tolerance):
    starts = np.array([[1e-3], [0.2], [0.9], [1.0], [1.7]])
    found = follow_paths(
        grow, starts, Tolerance(tolerance, 0.0), first_step=0.1, stop=4.0, margin=lambda q: q[:, 0] - 1.0
    )
    assert found.event[1:3] == pytest.approx(-np.log([0.2, 0.9]), abs=30 * tolerance)  # steps, and the interpolant
    assert np.array_equal(found.event[3:], [0.0, 0.0])
    assert np.isinf(found.event[0])
    assert found.end[:, 0] == pytest.approx(starts[:, 0] * np.exp(4.0), rel=30 * tolerance)  # some 30 steps


def test_the_time_at_the_end_is_the_one_that_was_asked_for():
    """Sums of steps miss it by rounding once in 50 times."""
    for stop in np.random.default_rng(3).uniform(0.1, 10.0, 400):
        found = follow_paths(turn, np.eye(2), UNLIMITED, first_step=0.37 * stop, stop=stop)
        assert np.array_equal(found.time, [stop, stop])


def test_few_steps_are_rejected():
    """On rotations the error estimate is h^5/1237, by the coefficients of the method: all steps may be that long."""
    velocity = Mock(side_effect=turn)
    follow_paths(velocity, np.array([[1.0, 0.0]]), Tolerance(0.0, 1e-9), first_step=0.06, stop=100.0)
    length = 6 * 100.0 / velocity.call_count  # six evaluations each
    # the larger component of the error has at least 1/sqrt(2) of its length; a fiftieth for the ends
    assert 0.98 * 0.9 * 1.237e-6**0.2 < length < 1.02 * 0.9 * (np.sqrt(2) * 1.237e-6) ** 0.2  # see above


def test_an_event_is_the_first_one_and_from_below():
    """The first coordinate starts above 1/2, falls below it at a third of pi, and is back at five thirds."""
    margins = lambda q: 0.5 - q[:, 0], lambda q: -np.abs(q[:, 0] - 0.9) + 0.1
    starts = np.array([[1.0, 0.0]])
    falls, near = (follow_paths(turn, starts, TIGHT, first_step=0.1, stop=20.0, margin=m).event for m in margins)
    assert falls == pytest.approx([np.pi / 3], abs=1e-7)  # 1e-9 per step
    assert np.array_equal(near, [0.0])  # from the start


def test_paths_end_where_they_arrive_each_at_its_time():
    starts = np.array([[0.01], [0.3], [0.999], [1.0]])
    calls = []

    def near_one(q, speed):
        calls.append(len(q))
        assert speed == pytest.approx(logistic(q), abs=1e-15)  # rounding
        return q[:, 0] > 0.99

    found = follow_paths(logistic, starts, TIGHT, first_step=0.01, longest_step=0.05, arrived=near_one)
    exact = np.log(99.0) - np.log(starts[:2, 0] / (1 - starts[:2, 0]))
    assert found.finished.all()
    assert (found.time[:2] >= exact).all()
    assert (found.time[:2] < exact + 0.05).all()  # a step
    assert np.array_equal(found.time[2:], [0.0, 0.0])
    assert np.array_equal(found.end[2:], starts[2:])
    assert (calls[0], calls[-1]) == (4, 1)  # those that are there are left alone


def test_paths_that_go_nowhere_are_given_up():
    found = follow_paths(
        turn,
        np.array([[1.0, 0.0], [2.0, 0.0]]),
        TIGHT,
        first_step=0.1,
        arrived=lambda q, _: q[:, 0] > 1.5,
        most_steps=20,
    )
    assert found.finished.tolist() == [False, True]
    assert found.time[0] > 0.0


def test_the_last_step_of_all_may_lead_home():
    arrived = lambda q, _: q[:, 0] > 1.5  # noqa: E731
    found = follow_paths(grow, np.ones((1, 1)), UNLIMITED, first_step=1.0, arrived=arrived, most_steps=1)
    assert found.finished.all()


def test_no_step_leads_out_of_the_domain():
    """The velocity exists in the unit disc only, at whose edge the first path would arrive at t = 1."""

    def outward(q):
        inside = np.linalg.norm(q, axis=1, keepdims=True) <= 1.0
        return np.where(inside, [1.0, 0.0], np.nan)

    starts = np.array([[0.0, 0.0], [-0.9, 0.1]])
    found = follow_paths(outward, starts, TIGHT, first_step=0.3, stop=1.5, most_steps=200)
    assert found.finished.tolist() == [False, True]
    assert found.end == pytest.approx(np.array([[1.0, 0.0], [0.6, 0.1]]), abs=1e-12)  # rounding
    assert np.linalg.norm(found.end, axis=1).max() <= 1.0


def test_a_component_that_stays_0_needs_no_absolute_tolerance():
    found = follow_paths(grow, np.array([[0.0, 1.0]]), Tolerance(1e-9, 0.0), first_step=0.1, stop=1.0, most_steps=100)
    assert found.end == pytest.approx(np.array([[0.0, np.e]]), rel=1e-8)  # ten steps


def test_no_paths_are_no_paths():
    found = follow_paths(grow, np.empty((0, 2)), TIGHT, first_step=0.1, stop=1.0, margin=lambda q: q[:, 0])
    assert [a.shape for a in (found.end, found.time, found.event, found.finished)] == [(0, 2), (0,), (0,), (0,)]


def test_paths_without_an_end_are_refused():
    with pytest.raises(InputError, match="stop = inf: paths have no end"):
        follow_paths(grow, np.ones((1, 1)), TIGHT, first_step=0.1)
