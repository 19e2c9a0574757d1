"""Phases: data, importance and activation that are others from a time on, in exact flows, densities and SGD."""

from functools import partial

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.particles.simulation import Replicas
from meanfield.problems.problem_keys import with_value, with_values
from tests.families.alpha_contrastive.problems import LAW_F, kernel, problem
from tests.families.alpha_contrastive.test_in_time import (
    BATCHES,
    COOLING,
    MIXTURE,
    ONCE,
    at_one_time,
    exact,
    on_an_even_grid,
    over_points,
)
from tests.families.alpha_contrastive.test_population import PATTERNS, two_layers
from tests.references_in_time import stopped

TURNED = [[-y, x] for x, y in LAW_F["points"]]
OTHER = LAW_F | {"points": TURNED}


def in_two(given, change, at=0.45, stop=1.0):
    """Problem that something changes in at a time."""
    return with_values(given, {"time.stop": stop, "phases": [{"stop": at}, {"stop": stop, "set": change}]})


def test_exact_flows_follow_phases_with_schedules_of_their_own():
    """Other points and probabilities, then a temperature that falls and another batch size."""
    given = problem("tanh", LAW_F, kernel("gaussian", 0.8), filters={"count": 4}, **BATCHES)
    change = {"data": OTHER | {"probabilities": [0.1, 0.15, 0.2, 0.25, 0.3]}, "training.momentum": 0.3}
    falling = {
        "importance.temperature": {"times": [*COOLING["times"], 2.0], "values": [*COOLING["values"], 0.6]},
        "training.batch_size": 5,
    }
    phases = [{"stop": 0.31}, {"stop": 0.8, "set": change}, {"stop": 2.0, "set": falling}]
    exact(with_value(given, "phases", phases), over_points)


@pytest.mark.parametrize("kind", ["quadratic", "infonce"])
def test_exact_flows_of_two_layers_follow_phases(kind):
    """Other generators, other tokens in views, and another activation."""
    given = two_layers("tanh", kernel(kind, 0.8), population={"tolerance": 1e-12}, time={"stop": 2.0, "outputs": 4})
    patterns = [[2, 1, -1, -1], [-1, 0, 3, -1], *PATTERNS[:1]]
    change = {"data.patterns": patterns, "data.augmentation": False}
    phases = [{"stop": 0.7}, {"stop": 1.2, "set": change}, {"stop": 2.0, "set": {"model.activation": "quadratic"}}]
    exact(with_value(given, "phases", phases), at_one_time)


def test_phases_that_change_nothing_are_none():
    given = problem("relu", LAW_F, kernel("gaussian", 0.4), filters={"count": 3}, time={"stop": 1.0, "outputs": 5})
    given = with_values(given, {"particles.replicas": 2, "population.tolerance": 1e-5})
    same = in_two(given, {"data": LAW_F, "training.batch_size": 128})
    found, known = (meanfield.solve(each, "particles") for each in (same, given))
    assert np.array_equal(found["weights"], known["weights"])
    assert np.array_equal(found["phase"], [0, 0, 1, 1, 1])
    found, known = (meanfield.solve(each, "population")["weights"].values for each in (same, given))
    assert found == pytest.approx(known, abs=2e-5)  # of both, as steps are halved


def test_filters_on_walls_go_on_among_other_walls():
    """A run to the end of the first phase, and one from there on the other data, are the run with phases."""
    given = problem("relu", LAW_F, kernel("gaussian", 0.8), filters={"count": 4}, time={"stop": 3.0, "outputs": 2})
    given = with_value(given, "population.tolerance", 1e-5)
    whole = in_two(with_value(given, "time.outputs", 5), {"data": OTHER}, at=3.0, stop=4.0)
    half = meanfield.solve(given, "population")["weights"].values[-1, 0]
    late = {"data": OTHER, "time.stop": 1.0, "filters.start": {"law": "points", "values": half.tolist()}}
    rest = meanfield.solve(with_values(given, late), "population")["weights"].values[-1]
    assert meanfield.solve(whole, "population")["weights"].values[-1] == pytest.approx(rest, abs=5e-5)  # as above


@pytest.mark.parametrize(
    ("activation", "law", "change", "count", "allowed"),
    [
        ("quadratic", LAW_F, {"data": OTHER, "importance.kind": "infonce"}, 60, 1e-7),  # rule and flow
        pytest.param(  # the rule at walls: 1/200 of the filters that they hold; the test above has phases with walls
            "relu", LAW_F, {"data": OTHER}, 200, 1e-3, marks=pytest.mark.slow
        ),
        pytest.param(
            "tanh", MIXTURE | {"covariance": 0.4}, {"data.covariance": 0.1}, 60, 1e-7, marks=pytest.mark.slow
        ),  # rule and flow
    ],
)
def test_densities_follow_phases_as_many_filters_do(activation, law, change, count, allowed):
    importance = {"kind": "quadratic"} if law is not LAW_F else kernel("gaussian", 0.6, diagonal="include")
    given = in_two(problem(activation, law, importance, time=ONCE), change)
    density = meanfield.solve(given, "density")
    flow = meanfield.solve(on_an_even_grid(with_value(given, "population.tolerance", 1e-6), count), "population")
    for name in ("moment_cos", "moment_sin"):
        away = np.abs(density[name].values - flow[name].values)
        assert np.all(away <= density[f"{name}_error"].values + allowed), name


def test_sgd_that_is_stopped_in_any_phase_goes_on_with_the_same_numbers():
    given = in_two(
        two_layers("relu", kernel("infonce", 0.8), training={"batch_size": 8, "learning_rate": 0.05}),
        {"data.patterns": PATTERNS[:2], "training.batch_size": 5, "training.learning_rate": 0.02},
    )
    whole, steps = Replicas(given, range(2)), 9 + 27  # 0.45/0.05, and 0.55/0.02 from there on
    whole.advance(0, steps)
    for count in (3, 9, 20):
        second = stopped(partial(Replicas, given, range(2)), count, steps)
        assert np.array_equal(second.filters, whole.filters)
        assert np.array_equal(second.top, whole.top)


def test_filters_of_one_shape_see_no_data_of_another():
    given = problem("tanh", LAW_F, time={"stop": 1.0, "outputs": 3})
    with pytest.raises(InputError, match=r"phases\[1\]\.set: data have 3 coordinates.*give data of the same shape"):
        in_two(given, {"data": {"law": "points", "points": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]]}})
