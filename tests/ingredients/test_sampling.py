"""Functions of t in Python: tables that are as close as they say, jumps at their times, and names of modules."""

import math

import numpy as np
import pytest

import meanfield
from meanfield import InputError
from meanfield.ingredients.schedules.sampling import jumps_of
from meanfield.ingredients.schedules.tables import Function, Table
from meanfield.problems.file import format_problem
from meanfield.problems.phases import pieces_of
from tests.example_problems import SMALL

KEY = "model.learning_rate"
PROBLEM = meanfield.parse_problem(SMALL.replace("stop = 1.0", "stop = 20.0"))


def decay(t):
    return 0.05 * math.exp(-t / 10.0)


def rate_of(function) -> Table:
    found = meanfield.with_value(PROBLEM, KEY, function).model.learning_rate
    assert isinstance(found, Table)
    return found


@pytest.mark.parametrize(
    "function",
    [
        lambda t: 0.05 * math.exp(-t / 10.0),
        lambda t: 0.01 + 0.05 * math.cos(math.pi * t / 40.0) ** 2,
        lambda t: 0.05 * math.exp(-t / 10.0) if t <= 3.0 else 0.02 + 1e-3 * t,
        lambda t: min(0.05, 0.01 + 0.005 * t),
        lambda t: 0.01 * math.sqrt(t),
        lambda t: 0.02 + 0.01 * math.tanh(1e3 * (t - 3.0)),
    ],
    ids=["exponential", "cosine", "jump", "kink", "root", "steep"],
)
def test_tables_are_as_close_as_they_say(function):
    times = np.sort(np.random.default_rng(0).uniform(0.0, 20.0, 20_000))
    values = np.array([function(t) for t in times])
    error = np.abs(rate_of(function).values_at(times) - values).max()
    assert error <= 1e-9 * np.ptp(values)  # ACCURACY


def test_steps_are_found_to_rounding_and_become_a_table_of_steps():
    found = rate_of(lambda t: 0.02 * (1.0 + int(t / math.pi) % 3))
    assert found.interpolation == "step"
    assert found.times == pytest.approx([math.pi * k for k in range(7)], rel=4e-16, abs=0.0)  # two neighbours
    assert found.values == (0.02, 0.04, 0.06, 0.02, 0.04, 0.06, 0.02)


def test_the_value_from_the_jump_on_is_the_new_one():
    found = rate_of(lambda t: 0.05 + 0.001 * t if t < 3.0 else 0.02 + 0.001 * t)
    assert found.values_at(np.array([np.nextafter(3.0, 0.0), 3.0])) == pytest.approx([0.053, 0.023], rel=1e-15)
    assert found.corners.count(3.0) == 1


def test_a_result_holds_the_table_and_is_solved_again_with_the_same_bits():
    problem = meanfield.with_values(PROBLEM, {KEY: lambda t: 0.05 * math.exp(-t), "time.stop": 1.0})
    again = meanfield.parse_problem(format_problem(problem))
    assert again == problem
    assert meanfield.simulate_sgd(again).drop_attrs().equals(meanfield.simulate_sgd(problem).drop_attrs())


def test_functions_of_modules_have_their_names():
    found = meanfield.with_value(PROBLEM, KEY, decay).model.learning_rate
    assert isinstance(found, Function)
    assert found.function == f"{__name__}:decay"


def test_functions_stand_in_problems_that_are_made_of_keys_and_in_phases():
    table = rate_of(lambda t: 0.05 * math.exp(-t / 10.0))
    keys = {name: getattr(PROBLEM, name) for name in ("features", "particles", "density")}
    model = {"activation": "quadratic", "batch_size": 4, "learning_rate": lambda t: 0.05 * math.exp(-t / 10.0)}
    made = meanfield.contrastive.Problem(model=model, time={"stop": 20.0}, **keys)
    assert made.model.learning_rate == table
    phases = [{"stop": 20.0, "set": {KEY: lambda t: 0.05 * math.exp(-t / 10.0)}}]
    problem = meanfield.with_value(PROBLEM, "phases", phases)
    assert pieces_of(problem)[0].problem.model.learning_rate == table
    assert meanfield.parse_problem(format_problem(problem)) == problem


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda t: 0.05 / t, r"learning_rate: the function at t = 0: ZeroDivisionError: .*; let it take t alone"),
        (lambda t: None, r"learning_rate: the function at t = 0: TypeError: .*; let it take t alone"),
        (
            lambda t: math.inf if t > 3.0 else 1.0,
            r"the function is inf at t = 3\.0[0-9]*; let it return a finite number",
        ),
        (lambda t: 0.1 - 0.01 * t, r"learning_rate: is -.* at t = 10\.0.* of its schedule, and must be at least 0"),
        (
            lambda t: 1e9 * t % 1.0,
            r"a function that 2,000 values do not describe .*; put it into a module, and give its name",
        ),
    ],
    ids=["error", "nothing", "infinite", "negative", "noise"],
)
def test_what_is_no_schedule_is_refused(function, message):
    with pytest.raises(InputError, match=message):
        meanfield.with_value(PROBLEM, KEY, function)


def test_keys_that_take_no_schedule_take_no_function():
    with pytest.raises(InputError, match=r"particles\.replicas = <function .*: should be a valid integer"):
        meanfield.with_value(PROBLEM, "particles.replicas", lambda t: 3)


JUMPS = "def rate(t):\n    return 0.05 if t < 2.5 else 0.01 * t if t < 7.125 else 0.03\n"


def test_jumps_that_are_not_declared_are_refused_with_their_times(tmp_path):
    (tmp_path / "jumping.py").write_text(JUMPS)
    text = format_problem(PROBLEM).replace("learning_rate = 0.05", "learning_rate = RATE")
    with pytest.raises(
        InputError, match=r"learning_rate\.function = 'jumping:rate' jumps from 0\.05 to 0\.025 at t ="
    ) as said:
        meanfield.parse_problem(text.replace("RATE", '"jumping:rate"'), tmp_path)
    remedy = str(said.value).partition("declare it: ")[2]
    assert remedy == "{ function = 'jumping:rate', jumps = [2.5, 7.125] }"
    found = meanfield.parse_problem(text.replace("RATE", remedy), tmp_path).model.learning_rate
    assert found.corners == (2.5, 7.125)


@pytest.mark.parametrize(
    "function",
    [
        lambda t: math.tanh(1e6 * (t - 3.0)),
        lambda t: abs(t - 3.0) ** 0.5,
        lambda t: math.sin(30.0 * t),
        lambda t: max(0.0, t - 3.0),
        lambda t: 0.3,
    ],
    ids=["steep", "infinitely steep", "wave", "bend", "constant"],
)
def test_smooth_functions_do_not_jump_however_steep_they_are(function):
    assert jumps_of(np.vectorize(function, otypes=[float]), 0.0, 20.0) == []


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-5])
def test_small_jumps_of_curves_are_found(size):
    found = jumps_of(lambda t: np.sin(t / 7.0) + size * (t >= math.e), 0.0, 20.0)
    assert found == pytest.approx([math.e], rel=4e-16, abs=0.0)  # two neighbours


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "times = [0.0, 1.0], values = [0.1, 0.2], interpolation = 'cubic'",
            r"slopes: are 0 for 2 times; give one for",
        ),
        ("times = [0.0, 1.0], values = [0.1, 0.2], slopes = [0.0, 0.0]", r"slopes: belong to interpolation = 'cubic'"),
        (
            "times = [0.0, 1.0, 1.0, 1.0], values = [0.1, 0.1, 0.1, 0.1], slopes = [0.0, 0.0, 0.0, 0.0], "
            "interpolation = 'cubic'",
            r"times: has 1 after 1; let times increase",
        ),
    ],
)
def test_cubic_tables_have_slopes_and_two_equal_times_at_most(text, message):
    with pytest.raises(InputError, match=message):
        meanfield.parse_problem(SMALL.replace("learning_rate = 0.05", f"learning_rate = {{ {text} }}"))
