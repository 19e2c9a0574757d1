"""Moving averages of filters and top layers: exact flows against SciPy, and SGD step by step."""

import numpy as np
import pytest

import meanfield
from meanfield.ensembles.averages import clocked
from meanfield.families.alpha_contrastive.initial import Weights
from meanfield.families.alpha_contrastive.particles.simulation import Replicas
from meanfield.families.alpha_contrastive.population.solver import drift_of
from meanfield.problems.clock import Clock
from meanfield.problems.file import format_problem
from meanfield.problems.problem_keys import at_time, with_value, with_values
from tests.families.alpha_contrastive.problems import LAW_F, kernel, problem
from tests.families.alpha_contrastive.test_in_time import AVERAGES, POINTS, STOP, scheduled
from tests.references_in_time import lagging, replicas_and_statistics, stopped

A = 1.5
RELU = problem(
    "relu", LAW_F, kernel("gaussian", 1.0), filters={"count": 6}, time={"stop": STOP, "outputs": 4},
    population={"tolerance": 1e-6},
)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "seed"),
    [
        pytest.param(POINTS["infonce"], None, marks=pytest.mark.slow),  # the next has all of it, in time
        (POINTS["infonce"], 1),
        pytest.param(RELU, None, marks=pytest.mark.slow),
        pytest.param(RELU, 1, marks=pytest.mark.slow),
        pytest.param(AVERAGES["infonce"], 1, marks=pytest.mark.slow),
    ],
    ids=["one layer", "one layer in time", "walls", "walls in time", "two layers in time"],
)
def test_exact_flows_have_averages_of_their_weights(given, seed):
    given = given if seed is None else scheduled(seed, given)
    averaged = with_value(given, "training.average_rate", A)
    found, without = meanfield.solve(averaged, "population"), meanfield.solve(given, "population")
    assert all(np.array_equal(found[name], without[name], equal_nan=True) for name in without.data_vars)
    expected = lagging(given, A)
    # the rule by a share (a dt)^2/12 = 3e-7 of what moves, and a path with walls by its tolerance
    assert found["weights_average"].values == pytest.approx(expected, abs=2e-6)  # the tolerance of a path, twice
    last = at_time(given, STOP)
    top = found["top_average"].values[-1] if "top_average" in found else np.zeros((0, 2, 2))
    energy = drift_of(last)(
        Weights(found["weights_average"].values[-1], top.reshape(len(top), top[:1].size or 4))
    ).energy
    assert float(found["energy_average"][-1]) == pytest.approx(energy, abs=1e-12)  # rounding


SGD = with_values(
    scheduled(0, POINTS["infonce"]),
    {"time": {"stop": 0.4, "outputs": 3}, "training.average_rate": A, "particles.replicas": 2},
)


@pytest.mark.parametrize(
    "given", [SGD, with_values(AVERAGES["infonce"], {"time": {"stop": 0.4, "outputs": 3}, "training.average_rate": A})]
)
def test_each_step_moves_the_average_and_no_weight(given):
    def make():
        return clocked(given, Replicas)(range(2))

    clock, ours, theirs = Clock(given), make(), Replicas(given, range(2))
    average = np.array(theirs.trained)
    for k in range(9):
        theirs.advance(k, 1)
        average += A * at_time(given, clock.time_of(k)).training.learning_rate * (theirs.trained - average)
    ours.advance(0, 4)
    ours.advance(4, 5)
    for name, row in theirs.rows.items():
        assert np.array_equal(ours.rows[name], row), name
    split = theirs.filters[0].size
    assert ours.rows["weights_average"].reshape(2, -1) == pytest.approx(average[:, :split], abs=1e-13)  # rounding
    again = stopped(make, 5, 9)
    assert all(np.array_equal(again.rows[name], row) for name, row in ours.rows.items())
    same = theirs.rows_of_average(theirs.trained)
    assert all(np.array_equal(same[f"{name}_average"], theirs.rows[name]) for name in ("energy", "weights"))


def test_statistics_are_those_of_the_replicas():
    _, statistics = replicas_and_statistics(SGD, ["energy_average"])
    assert "weights_average" not in statistics


def test_what_cannot_be_averaged_says_what_to_do():
    message = r"average_rate = 60 with 50 steps .* rate to 50 or less, or lower training\.learning_rate"
    with pytest.raises(meanfield.InputError, match=message):
        meanfield.solve(with_values(RELU, {"training.average_rate": 60.0}), "particles")
    phases = [{"stop": 1.0}, {"stop": STOP, "set": {"training.average_rate": 2.0}}]
    with pytest.raises(
        meanfield.InputError, match=r"phases\[1\]\.set: training\.average_rate is 2\.0, .*give the same"
    ):
        with_value(RELU, "phases", phases)
    fast = with_values(AVERAGES["noise of places"], {"population.fast_top": True, "training.average_rate": A})
    for method in ("population", "particles"):
        with pytest.raises(meanfield.InputError, match=r"average_rate = 1\.5 with population\.fast_top = true"):
            meanfield.solve(with_value(fast, "time.stop", 0.1), method)


def test_problems_without_the_key_are_what_they_were():
    assert "average" not in format_problem(RELU)
    assert "average_rate = 1.5" in format_problem(with_value(RELU, "training.average_rate", A))
