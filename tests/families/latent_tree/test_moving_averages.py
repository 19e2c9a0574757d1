"""Moving averages of the weights on trees: gradient flows against SciPy, and SGD step by step."""

import numpy as np
import pytest

import meanfield
from meanfield.ensembles.averages import clocked
from meanfield.families.latent_tree.particles import Replicas
from meanfield.families.latent_tree.results import AVERAGED
from meanfield.problems.clock import Clock
from meanfield.problems.file import format_problem
from meanfield.problems.problem_keys import at_time, with_value, with_values
from tests.families.latent_tree.problems import case_b
from tests.families.latent_tree.test_in_time import FINE, RATES, STOP, scheduled
from tests.references_in_time import lagging, replicas_and_statistics, stopped

A = 1.5


@pytest.mark.parametrize(
    "given",
    [pytest.param(case_b(stop=STOP, loss={}, population=FINE), marks=pytest.mark.slow), scheduled("beta", "linear")],
    ids=["steady", "in time"],
)
def test_the_flow_has_averages_of_its_weights(given):
    averaged = with_value(given, "training.average_rate", A)
    found, without = meanfield.solve(averaged, "population"), meanfield.solve(given, "population")
    assert all(np.array_equal(found[name], without[name]) for name in without.data_vars)
    expected = lagging(given, A)
    # the rule by a share (a dt)^2/12 = 1e-7 of what moves, less where nodes change
    assert found["weights_average"].values == pytest.approx(expected, abs=1e-6)  # ten times that share
    last = with_values(at_time(given, STOP), {"time": {"stop": 1e-6, "outputs": 2}})
    W = [
        part.reshape(*part.shape[:2], -1) for part in given.initial_weights.like(found["weights_average"].values[-1]).W
    ]
    there = with_values(last, {"network.initial.weights": [part.tolist() for part in W]})
    resting = meanfield.solve(there, "population")
    for name in ("loss", "selectivity"):
        there = resting[name].values[0]
        assert found[f"{name}_average"].values[-1] == pytest.approx(there, abs=1e-14), name  # rounding


SGD = with_values(
    case_b(normalised=True, stop=0.2, loss={"kind": "infonce", "temperature": 0.5}),
    {"training": {"learning_rate": RATES, "average_rate": A, "batch_size": 8}, "particles.replicas": 2},
)


def test_each_step_moves_the_average_and_no_weight():
    def make():
        return clocked(SGD, Replicas)(range(2))

    clock, ours, theirs = Clock(SGD), make(), Replicas(SGD, range(2))
    average = theirs.w.copy()
    for k in range(9):
        theirs.advance(k, 1)
        average += A * at_time(SGD, clock.time_of(k)).training.learning_rate * (theirs.w - average)
    ours.advance(0, 4)
    ours.advance(4, 5)
    for name, row in theirs.rows.items():
        assert np.array_equal(ours.rows[name], row), name
    assert ours.rows["weights_average"] == pytest.approx(average, abs=1e-13)  # rounding
    again = stopped(make, 5, 9)
    assert all(np.array_equal(again.rows[name], row) for name, row in ours.rows.items())
    same = theirs.rows_of_average(theirs.trained)
    assert all(np.array_equal(same[f"{name}_average"], theirs.rows[name]) for name in AVERAGED)


def test_statistics_are_those_of_the_replicas():
    replicas_and_statistics(SGD, ("loss_average", "selectivity_average", "score_average"))


def test_what_cannot_be_averaged_says_what_to_do():
    fast = with_values(SGD, {"training.average_rate": 100.0})
    message = r"average_rate = 100 with 55\.5\d* steps .*lower the rate to 55.*, or lower training\.learning_rate"
    with pytest.raises(meanfield.InputError, match=message):
        meanfield.solve(fast, "particles")
    assert "average" not in format_problem(with_value(SGD, "training.average_rate", None))
