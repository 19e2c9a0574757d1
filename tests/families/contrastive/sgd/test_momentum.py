"""Momentum: plain steps with a velocity, and the limit of the learning rate tau/(1 - mu)."""

from functools import partial

import numpy as np
import pytest

import meanfield
from meanfield.families.contrastive.sgd.steppers import prepare_steppers
from meanfield.problems.file import format_problem
from tests.example_problems import make_problem
from tests.families.contrastive.channels.problems import standard
from tests.references_in_time import stopped, verdicts

ONE = make_problem("time = { stop = 3.0, outputs = 4 }", "model.momentum = 0.6", "model.learning_rate = 0.03")
TWO = meanfield.with_values(standard(), {"model.momentum": 0.6, "time.stop": 3.0, "time.outputs": 4})


# The limit and steps of one channel are tested below.
@pytest.mark.parametrize("problem", [pytest.param(ONE, marks=pytest.mark.slow), TWO], ids=["one", "two"])
def test_sgd_agrees_with_the_limit_of_the_larger_rate_and_with_no_other(problem):
    """Verdicts are wrong once in 20 times by chance; the seed is fixed."""
    problem = meanfield.with_value(problem, "particles", {"dimension": 600, "replicas": 16, "seed": 2})
    assert verdicts(problem, "order_parameters", "model.momentum", [0.0]) == ["AGREES", "DIFFERS"]


@pytest.mark.parametrize("problem", [ONE, TWO], ids=["one", "two"])
@pytest.mark.parametrize("method", ["order_parameters", "density", pytest.param("stationary", marks=pytest.mark.slow)])
def test_the_limit_is_that_of_the_larger_rate(method, problem):
    problem = meanfield.with_values(problem, {"model.momentum": 0.5, "prior": {"name": "l2"}})
    twice = {"model.momentum": 0.0, "model.learning_rate": 2.0 * problem.model.learning_rate}
    found, known = meanfield.solve(problem, method), meanfield.solve(meanfield.with_values(problem, twice), method)
    for name in ("q", "Lambda"):
        assert np.array_equal(found[name], known[name], equal_nan=True)


@pytest.mark.parametrize("problem", [ONE, TWO], ids=["one", "two"])
def test_a_step_adds_a_share_of_the_one_before(problem):
    """With and without momentum the first steps are equal; the second one moves w~ by mu times the first one more."""
    small = {"particles": {"dimension": 40}, "model.learning_rate": 1e-7}  # the sphere is flat, and w as before
    both = [meanfield.with_values(problem, {**small, "model.momentum": mu}) for mu in (0.6, 0.0)]
    moves = []
    for stepper in (prepare_steppers(each, "plain")(range(1)) for each in both):
        weights = [stepper.snapshot["weights"].copy()]
        for step in range(2):
            stepper.advance(step, 1)
            weights.append(stepper.snapshot["weights"].copy())
        moves.append(np.diff(weights, axis=0))
    (first, second), (known, other) = moves
    assert np.array_equal(first, known)
    assert second == pytest.approx(other + 0.6 * known, abs=1e-4 * np.abs(known).max())  # steps are 1e-6 of the weights


@pytest.mark.parametrize("problem", [ONE, TWO], ids=["one", "two"])
def test_the_velocity_is_part_of_the_state(problem):
    problem = meanfield.with_value(problem, "particles.dimension", 40)
    make = partial(prepare_steppers(problem, "plain"), range(1))
    whole = make()
    whole.advance(0, 9)
    assert np.array_equal(stopped(make, 5, 9).snapshot["weights"], whole.snapshot["weights"])


@pytest.mark.parametrize("problem", [ONE, TWO], ids=["one", "two"])
@pytest.mark.parametrize("method", ["projected", "chain"])
def test_other_steps_refuse_momentum_and_say_what_to_do(method, problem):
    problem = meanfield.with_value(problem, "particles.method", method)
    with pytest.raises(meanfield.InputError, match=r"model\.momentum = 0\.6.*'plain', or remove"):
        meanfield.simulate_sgd(problem)
    known = meanfield.with_values(problem, {"particles.method": "plain", "particles.dimension": 40})
    assert meanfield.simulate_sgd(known).attrs["status"] == "complete"


def test_files_without_momentum_are_what_they_were():
    assert "momentum" in format_problem(ONE)
    assert "momentum" not in format_problem(meanfield.with_value(ONE, "model.momentum", 0.0))
