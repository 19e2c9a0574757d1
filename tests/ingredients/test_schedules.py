"""Schedules: their values against formulas, corners, files and functions, and what is refused."""

import math

import numpy as np
import pytest

import meanfield
from meanfield import InputError
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.problems.base import schedules_of
from meanfield.problems.file import format_problem
from tests.example_problems import SMALL

T = np.array([0.0, 0.5, 1.0, 2.5, 4.0, 7.0])


def with_rate(text, folder=None):
    """Small problem until t = 3 with another text for its learning rate."""
    given = SMALL.replace("learning_rate = 0.05", f"learning_rate = {text}").replace("stop = 1.0", "stop = 3.0")
    return meanfield.parse_problem(given, folder)


def rate_of(text, folder=None) -> Schedule:
    """Schedule of a problem whose learning rate a text gives."""
    found = with_rate(text, folder).model.learning_rate
    assert isinstance(found, Schedule)
    return found


@pytest.mark.parametrize(
    ("text", "expected", "corners"),
    [
        ("{ times = [0.0, 1.0, 4.0], values = [0.1, 0.3, 0.0] }", [0.1, 0.2, 0.3, 0.15, 0.0, 0.0], (1.0, 4.0)),
        (
            '{ times = [0.0, 1.0, 4.0], values = [0.1, 0.3, 0.2], interpolation = "step" }',
            [0.1, 0.1, 0.3, 0.3, 0.2, 0.2],
            (1.0, 4.0),
        ),
        ('{ schedule = "linear", start = 0.1, end = 0.5, duration = 4.0 }', 0.1 + 0.1 * np.minimum(T, 4.0), (4.0,)),
        (
            '{ schedule = "cosine", start = 0.5, end = 0.1, duration = 4.0 }',
            0.1 + 0.4 * np.cos(np.pi * np.minimum(T, 4.0) / 8.0) ** 2,
            (4.0,),
        ),
        (
            '{ schedule = "warmup_cosine", peak = 0.4, warmup = 1.0, end = 0.2, duration = 4.0 }',
            np.where(T < 1.0, 0.4 * T, 0.2 + 0.2 * np.cos(np.pi * (np.clip(T, 1.0, 4.0) - 1.0) / 6.0) ** 2),
            (1.0, 4.0),
        ),
        ('{ schedule = "power", start = 0.4, exponent = 0.5, scale = 2.0 }', 0.4 / np.sqrt(1.0 + T / 2.0), ()),
        ('{ schedule = "exponential", start = 0.4, rate = 0.3 }', 0.4 * np.exp(-0.3 * T), ()),
        (
            '{ schedule = "step", start = 0.4, factor = 0.5, every = 2.0, steps = 2 }',
            [0.4, 0.4, 0.4, 0.2, 0.1, 0.1],
            (2.0, 4.0),
        ),
    ],
    ids=["table", "steps of a table", "linear", "cosine", "warmup_cosine", "power", "exponential", "step"],
)
def test_values_are_those_of_the_formula(text, expected, corners):
    schedule = rate_of(text)
    assert schedule.values_at(T) == pytest.approx(np.array(expected), abs=1e-15)  # rounding
    assert schedule.corners == corners


def test_values_come_from_a_file_and_from_a_function(tmp_path):
    (tmp_path / "rates.csv").write_text("t, rate\n0, 0.1\n2.0, 0.3\n")
    (tmp_path / "own_rates.py").write_text("def rate(t):\n    return 0.1 + 0.1 * t\n")
    by_file, by_name = rate_of('"rates.csv"', tmp_path), rate_of('{ file = "rates.csv" }', tmp_path)
    own = rate_of('"own_rates:rate"', tmp_path)
    times = np.array([0.0, 0.5, 2.0])
    for found in (by_file, by_name, own):
        assert found.values_at(times) == pytest.approx([0.1, 0.15, 0.3], abs=1e-15)  # rounding
    assert by_file.corners == (2.0,)


def test_files_and_functions_are_part_of_the_fingerprints(tmp_path):
    (tmp_path / "rates.csv").write_text("0, 0.1\n2.0, 0.3\n")
    before = with_rate('"rates.csv"', tmp_path)
    (tmp_path / "rates.csv").write_text("0, 0.1\n2.0, 0.4\n")
    after = with_rate('"rates.csv"', tmp_path)
    key = "model.learning_rate.file"
    assert before.fingerprints()[key]["sha256"] != after.fingerprints()[key]["sha256"]
    # what was read stays as it was
    assert schedules_of(before)["model.learning_rate"].values_at(np.array([2.0])) == 0.3


def test_a_problem_with_schedules_is_written_and_read_again():
    problem = with_rate('{ schedule = "power", start = 0.4, exponent = 0.5 }')
    assert meanfield.parse_problem(format_problem(problem)) == problem


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{ times = [0.0, 3.0], values = [0.1, -0.1] }",
            r"model.learning_rate: is -0\.0001001 at t = 1\.5015 of its schedule, and must be at least 0 until",
        ),
        ("{ times = [1.0, 3.0], values = [0.1, 0.1] }", r"model\.learning_rate\.times: begins with 1; begin with 0\.0"),
        ("{ times = [0.0, 3.0, 3.0], values = [0.1, 0.1, 0.2] }", "has 3 after 3; let times increase"),
        ("{ times = [0.0, 3.0], values = [0.1] }", "values: has 1 numbers for 2 times; give one for each"),
        ('{ schedule = "cos", start = 0.1 }', "schedule = 'cos': unknown; did you mean 'cosine'"),
        ('{ schedule = "cosine", start = 0.1, end = 0.2 }', r"model\.learning_rate\.duration: is missing; add it"),
        ("{ vals = [0.1] }", "a schedule has times and values, a file, a function, or schedule = one of linear"),
        ('{ schedule = "warmup_cosine", peak = 0.1, warmup = 9.0, duration = 4.0 }', "warmup: is 9; let it end before"),
        ('{ schedule = "exponential", start = 0.1, rate = -1e4 }', "is inf at t = "),
        ('"missing.csv"', "cannot be read"),
        ('"no_module:rate"', "module 'no_module' cannot be imported"),
        ("-0.1", r"model\.learning_rate = -0\.1: should be greater than 0"),
    ],
)
def test_what_is_no_schedule_is_refused_with_the_key(text, message):
    with pytest.raises(InputError, match=message):
        with_rate(text)


def test_methods_and_functions_that_do_not_follow_schedules_say_so():
    problem = with_rate('{ schedule = "exponential", start = 0.1, rate = 0.1 }')
    with pytest.raises(InputError, match=r"model\.learning_rate: changes in time.*'stationary states'.*at_time"):
        meanfield.find_stationary_states(problem)
    with pytest.raises(InputError, match=r"takes numbers that do not; give it meanfield\.at_time\(problem, t\)"):
        meanfield.contrastive.learnability(problem)


def test_the_problem_at_a_time_has_the_numbers_of_that_time():
    problem = with_rate('{ schedule = "exponential", start = 0.1, rate = 0.1 }')
    fixed = meanfield.at_time(problem, 2.0)
    assert fixed.model.learning_rate == pytest.approx(0.1 * math.exp(-0.2), rel=1e-15)  # rounding
    assert meanfield.at_time(fixed, 1.0) is fixed
    with pytest.raises(InputError, match="time = -1"):
        meanfield.at_time(problem, -1.0)
