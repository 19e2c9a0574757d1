"""Datasets are made of what solvers computed in one place."""

import inspect
import json

import numpy as np

from meanfield.extend import Solved, solver
from meanfield.problems.file import parse_problem
from meanfield.problems.problem_keys import with_value
from tests.example_problems import SMALL

TIME, Q = np.array([0.0, 1.0]), np.array([[0.5], [0.6]])
ARRAYS = {"time": TIME, "q": Q, "g": np.zeros((2, 1)), "Lambda": np.ones(2)}
PROBLEM = parse_problem(SMALL)


@solver
def solve(problem, elsewhere=None):
    """Give what is known."""
    return Solved(
        "order_parameters",
        ARRAYS,
        "interrupted",
        "a warning",
        {"steps": 3},
        {"plane": "Q"},
        {"q": {"seed": 7}},
        without=("learning_rate",),
        problem=elsewhere,
    )


def test_a_result_has_all_that_was_computed():
    found = solve(PROBLEM)
    assert np.array_equal(found["q"], Q)
    assert (found.attrs["status"], found.attrs["warning"], found.attrs["plane"]) == ("interrupted", "a warning", "Q")
    assert found["q"].attrs["seed"] == 7
    assert "learning_rate" not in found
    origin = json.loads(found.attrs["provenance"])
    assert origin["steps"] == 3
    assert 0.0 <= origin["wall_time_seconds"] < 60.0


def test_the_problem_that_was_solved_may_be_another_one():
    other = with_value(PROBLEM, "time.stop", 3.0)
    assert "stop = 3.0" in solve(problem=PROBLEM, elsewhere=other).attrs["problem"]


def test_help_shows_the_options_and_the_dataset():
    assert str(inspect.signature(solve)) == "(problem, elsewhere=None) -> 'xr.Dataset'"
