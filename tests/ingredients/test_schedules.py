"""Schedules: their values against formulas, corners, files and functions, and what is refused."""

import math
import re
from contextlib import nullcontext

import numpy as np
import pytest

import meanfield
from meanfield import InputError
from meanfield.cli import run
from meanfield.commands.dispatch import run_named
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.problems.base import schedules_of
from meanfield.problems.file import format_problem
from meanfield.problems.known_families import families
from meanfield.problems.problem_keys import held_by, number_keys, value_of, without_numbers
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
    (tmp_path / "rates.csv").write_text("t, rate\n0, 0.1\n3.0, 0.4\n")
    (tmp_path / "own_rates.py").write_text("def rate(t):\n    return 0.1 + 0.1 * t\n")
    by_file, by_name = rate_of('"rates.csv"', tmp_path), rate_of('{ file = "rates.csv" }', tmp_path)
    own = rate_of('"own_rates:rate"', tmp_path)
    times = np.array([0.0, 0.5, 2.0])
    for found in (by_file, by_name, own):
        assert found.values_at(times) == pytest.approx([0.1, 0.15, 0.3], abs=1e-15)  # rounding
    assert by_file.corners == (3.0,)


def test_files_and_functions_are_part_of_the_fingerprints(tmp_path):
    (tmp_path / "rates.csv").write_text("0, 0.1\n3.0, 0.3\n")
    before = with_rate('"rates.csv"', tmp_path)
    (tmp_path / "rates.csv").write_text("0, 0.1\n3.0, 0.4\n")
    after = with_rate('"rates.csv"', tmp_path)
    key = "model.learning_rate.file"
    assert before.fingerprints()[key]["sha256"] != after.fingerprints()[key]["sha256"]
    # what was read stays as it was
    assert schedules_of(before)["model.learning_rate"].values_at(np.array([3.0])) == 0.3


def test_a_problem_with_schedules_is_written_and_read_again():
    problem = with_rate('{ schedule = "power", start = 0.4, exponent = 0.5 }')
    assert meanfield.parse_problem(format_problem(problem)) == problem


KEY = r"^model\.learning_rate"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{ times = [0.0, 3.0], values = [0.1, -0.1] }",
            r": is -0\.0001001 at t = 1\.5015 of its schedule, and must be at least 0 until time\.stop; correct it",
        ),
        ("{ times = [1.0, 3.0], values = [0.1, 0.1] }", r"\.times: begins with 1; begin with 0\.0"),
        ("{ times = [0.0, 3.0, 3.0], values = [0.1, 0.1, 0.2] }", r"\.times: has 3 after 3; let times increase"),
        ("{ times = [0.0, nan], values = [0.1, 0.1] }", r"\.times\[1\] = nan: should be a finite number"),
        ("{ times = [0.0, 3.0], values = [0.1] }", r"\.values: has 1 numbers for 2 times; give one for each"),
        (
            "{ times = [0.0, 2.0], values = [0.1, 0.2] }",
            r"\.times ends at t = 2, before the run does, at time\.stop = 3; add the time 3 with the value 0\.2, ",
        ),
        (
            "{ times = [0.0, 2.0], values = [0.1, 0.2], slopes = [0.0, 0.1], interpolation = 'cubic' }",
            r"\.times ends at t = 2, .* add the time 3 with the value 0\.2 and the slope 0\.0, if it keeps",
        ),
        ("{ schedule = 'cos', start = 0.1 }", r"\.schedule = 'cos': unknown; did you mean 'cosine'"),
        ("{ schedule = ['linear'], start = 0.1 }", r"\.schedule = \['linear'\]: unknown; did you mean 'linear'"),
        (
            "{ schedule = 'warmup_cosine', peak = 0.1, warmup = 9.0, duration = 4.0 }",
            r"\.warmup: is 9; let it end before",
        ),
        ("{ schedule = 'exponential', start = 0.1, rate = -1e4 }", r": is inf at t = .*, and must be finite"),
        (
            "{ vals = [0.1] }",
            r" = {'vals': \[0\.1\]}: a schedule has times and values, a file, a function, or schedule = ",
        ),
        ("[0.1, 0.2]", r" = \[0\.1, 0\.2\]: should be a valid number \(tau, .* or a schedule\)"),
        ("true", r" = True: should be a valid number"),
        ("'missing.csv'", r": .*missing\.csv: cannot be read .*; give a CSV file of times and values"),
        ("'no_module:rate'", r"\.function: 'no_module:rate': module 'no_module' cannot be imported .*; put it on"),
        ("{ function = 'own_rates' }", r"\.function: 'own_rates' names no module; write 'module:function'"),
        ("'own_rates:number'", r"\.function: 'own_rates:number' is int; give a function of t"),
        ("'own_rates:rat'", r"\.function: 'own_rates:rat': module 'own_rates' has no 'rat'; did you mean 'rate'"),
        ("'own_rates:nothing'", r"\.function: 'own_rates:nothing' at t = 0: TypeError: .*; let it take t alone"),
        ("'own_rates:late'", r"\.function: 'own_rates:late' at t = 2\.0.*: IndexError: .*; let it take t alone"),
        ("{ function = 'own_rates:rate', jumps = [-1.0] }", r"\.jumps: has -1; give times t = k/N of the run, from 0"),
    ],
)
def test_what_is_no_schedule_is_refused_with_the_key(text, message, tmp_path):
    (tmp_path / "own_rates.py").write_text(
        "number = 3\nrate = abs\ndef nothing(t):\n    pass\ndef late(t):\n    return [0.1][int(t > 2.0)]\n"
    )
    with pytest.raises(InputError, match=KEY + message):
        with_rate(text, tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no line where 't, value' is wanted, such as 2.0, 0.06; correct it"),
        ("t, rate\n", "no line where 't, value' is wanted"),
        ("t\n0\n1\n", "the line '0' where 't, value' is wanted"),
        ("0, 0.1\n2, abc\n", "the line '2, abc' where 't, value' is wanted"),
        ("0, nan\n0, 0.1\n", "the line '0, nan' where 't, value' is wanted"),
        ("0;0.1\n1;0.2\n", "the line '0;0.1' where 't, value' is wanted"),
        ("0, 0.1\n2, 0.2\n1, 0.3\n", "times has 1 after 2; let times increase"),
        ("1, 0.1\n2, 0.2\n", "times begins with 1; begin with 0.0"),
        ("0, 0.1\n2, -0.1\n", "is -0.0003003 at t = 1.003 of its schedule"),
        (
            "0, 0.1\n2, 0.2\n",
            "rates.csv ends at t = 2, before the run does, at time.stop = 3; add the line '3, 0.2', if",
        ),
        (b"\xff\xfe\x00\x01", "cannot be read ('utf-8' codec"),
    ],
)
def test_faults_of_files_are_said_with_their_lines(content, message, tmp_path):
    (tmp_path / "rates.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=KEY + ".*" + re.escape(message)):
        with_rate('"rates.csv"', tmp_path)


def test_what_ends_in_steps_or_is_alone_stays():
    for text in (
        '{ times = [0.0, 1.0], values = [0.1, 0.3], interpolation = "step" }',
        "{ times = [0.0], values = [0.3] }",
    ):
        assert rate_of(text).values_at(np.array([3.0])) == 0.3


def test_tables_of_phases_go_on_until_the_end_of_the_run():
    problem = with_rate("0.05")
    for last, said in ((2.0, r"phases\[0\]\.set: model\.learning_rate\.times ends at t = 2, .* time 3 "), (3.0, "")):
        phases = [
            {"stop": 2.0, "set": {"model.learning_rate": {"times": [0.0, last], "values": [0.1, 0.2]}}},
            {"stop": 3.0, "set": {"model.learning_rate": 0.1}},
        ]
        with pytest.raises(InputError, match=said) if said else nullcontext():
            meanfield.with_value(problem, "phases", phases)


def test_a_faulty_schedule_ends_a_command_with_two(tmp_path, capsys):
    path = tmp_path / "P.toml"
    path.write_text(SMALL.replace("learning_rate = 0.05", "learning_rate = { times = [0.0], values = [-1.0] }"))
    with pytest.raises(SystemExit) as ended:
        run(lambda: run_named(["validate", str(path)]))
    assert ended.value.code == 2
    assert "model.learning_rate: is -1 at t = 0 of its schedule" in capsys.readouterr().err


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


@pytest.mark.parametrize("family", list(families()), ids=lambda family: family.name)
def test_problems_of_results_are_read_without_opening_what_their_schedules_name(family, tmp_path):
    problem = meanfield.load_problem(family.example_path)
    for key in {*number_keys(problem)} - {"loss.margin", "loss.beta"}:  # of other losses than that of the example
        if any(method.does_follow(without_numbers(key)) for method in family.methods.values()):
            (tmp_path / "numbers.csv").write_text(f"0, {value_of(problem, key)}\n")
            said = format_problem(meanfield.with_values(problem, {key: "numbers.csv"}, tmp_path))
            stored = held_by(meanfield.parse_problem(said, trusted=False), key)
            assert "not opened" in stored.in_words, key
