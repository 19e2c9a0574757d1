"""Problem files: every mistake gets one clear message, and what is written is read back."""

import copy
import math
import re
import tomllib
from contextlib import suppress

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield.errors import InputError
from meanfield.families.contrastive.problem import Problem
from meanfield.ingredients.activations import ACTIVATIONS
from meanfield.ingredients.priors import PRIORS
from meanfield.problems.file import format_problem, load_problem, parse_problem
from tests import ROOT

EXAMPLES = sorted((ROOT / "data" / "problems").glob("*.toml"))

GOOD = tomllib.loads(
    """
    title = "Two features"

    [model]
    activation = "quadratic"
    centering = "population"
    learning_rate = 0.02
    batch_size = 10

    [[features]]
    hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }
    coordinate = { law = "gaussian" }
    initial_overlap = 0.5

    [[features]]
    hidden = { law = "discrete", values = [-1.0, 2.0], probabilities = [0.75, 0.25] }
    coordinate = { law = "rademacher" }
    initial_overlap = 0.25

    [augmentation]
    variance = [0.3, 0.3]
    correlation = -1.0

    [prior]
    name = "l1"
    strength = 1.0

    [time]
    stop = 20.0
    outputs = 41

    [density]
    cells = 800
    half_width = 6.0
    feature_nodes = 31
    steps = 400
    order = 2

    [particles]
    method = "plain"
    dimension = 256
    replicas = 4
    seed = 7
    snapshots = [0.0, 0.5, 20.0]
    """
)
NAN, INF = math.nan, math.inf
# Words of Python and of the validation library mean nothing to the author of a problem file.
JARGON = re.compile(r"tuple|dictionary|instance of|\btag\b|discriminator|Input\b|Value error|NoneType", re.IGNORECASE)


def locate(data, key):
    """The container and the last step of a key like `features[0].hidden.values`."""
    *path, last = [int(step) if step.isdigit() else step for step in re.findall(r"\w+", key)]
    for step in path:
        data = data[step]
    return data, last


def text_with(key, value):
    """The good problem with one value replaced (or removed, where the value is None)."""
    data = copy.deepcopy(GOOD)
    container, last = locate(data, key)
    if value is None:
        del container[last]
    else:
        container[last] = value
    return tomli_w.dumps(data)


def message(text):
    with pytest.raises(InputError) as error:
        parse_problem(text)
    assert not JARGON.search(str(error.value)), error.value
    return str(error.value)


def assert_names(found, words):
    for word in words:
        assert word in found, found


def test_the_good_problem_is_good():
    assert len(parse_problem(tomli_w.dumps(GOOD)).features) == 2


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("title", 3, "string"),
        # wrong types
        ("model.activation", 3, "string"),
        ("model.learning_rate", "0.02", "valid number"),
        ("model.learning_rate", True, "valid number"),
        ("model.learning_rate", [0.02], "valid number"),
        ("model.batch_size", 10.5, "valid integer"),
        ("model.batch_size", True, "valid integer"),
        ("features[1].initial_overlap", True, "'random'"),
        ("features[1].initial_overlap", "rand", "'random'"),
        ("density.cells", "auto", "valid integer"),
        ("density.feature_nodes", 1e40, "valid integer"),
        ("density.order", "4", "2 or 4"),
        ("particles.seed", {"times": [0.0], "values": [1]}, "a number, the same at all times; no table"),
        ("particles.snapshots[1]", "0.5", "valid number"),
        # out of range
        ("model.activation", "quadratc", "did you mean 'quadratic'?"),
        ("model.activation", "xyz", "known: "),
        ("model.centering", "bach", "'none', 'population' or 'batch'"),
        ("model.learning_rate", 0.0, "greater than 0"),
        ("model.batch_size", 0, "greater than or equal to 1"),
        ("augmentation.correlation", 1.5, "less than or equal to 1"),
        ("time.stop", 1e13, "less than or equal to 1000000000000"),
        ("density.cells", 801, "multiple of 2"),
        ("density.order", 3, "2 or 4"),
        # lengths
        ("augmentation.variance", [0.1, 0.2, 0.3], "2 elements"),
        ("augmentation", {"variance": [0.1, 1e9]}, "variance 1e+09 is above 1e+06, where views have nothing in common"),
        ("augmentation.variance", [0.1], "too few elements"),
        ("augmentation.variance", 0.3, "list"),
        ("features[1].hidden.values", [], "1 element"),
        # tables
        ("model", 3, "table"),
        ("features", "x", "[[features]]"),
        ("features", {"hidden": {"law": "gaussian"}, "initial_overlap": 0.1}, "[[features]]"),
        ("features[1]", 0.5, "table"),
        ("features[0].hidden", "gaussian", "table"),
        ("features[0].hidden.law", "gauss", "'gaussian'"),
        ("features[0].coordinate.law", "cauchy", "'rademacher'"),
    ],
)
def test_a_bad_value(key, value, allowed):
    found = message(text_with(key, value))
    assert len(found.splitlines()) == 1
    assert_names(found, [key, allowed])
    if not isinstance(value, dict):
        assert_names(found, [repr(value)])


NUMBERS = [
    "model.learning_rate",
    "features[0].hidden.second_moment",
    "features[0].hidden.fourth_moment",
    "features[0].initial_overlap",
    "features[1].hidden.values[0]",
    "features[1].hidden.probabilities[1]",
    "augmentation.variance[0]",
    "augmentation.variance[1]",
    "augmentation.correlation",
    "prior.strength",
    "time.stop",
    "density.half_width",
    "particles.snapshots[2]",
]


@pytest.mark.parametrize("value", [NAN, INF, -INF], ids=str)
@pytest.mark.parametrize("key", NUMBERS)
def test_numbers_are_finite(key, value):
    found = message(text_with(key, value))
    assert_names(found, [key, repr(value), "finite number"])


BOOK = "a" * 10_000


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("model.activation", BOOK, ["unknown name 'aaa", "known: "]),
        ("model.learning_rate", BOOK, ["'aaa", "a': should be a valid number"]),
        ("model.learning_rate", [BOOK] * 100, ["['aaa", "should be a valid number"]),
        ("model.batch_size", 10**4000, ["1000", "should be"]),
        ("model", {BOOK: 1.0}, ["unknown key 'aaa", "a'; known: "]),
    ],
)
def test_long_values_are_shortened(key, value, words):
    """What stays is the key, the beginning of the value, and the remedy."""
    found = message(text_with(key, value))
    assert_names(found, [key.partition(".")[0], *words])
    assert all(len(line) < 600 for line in found.splitlines())


def test_a_value_in_place_of_a_table_is_answered_with_its_keys():
    assert message(text_with("prior", "l1")) == "prior = 'l1': should be a table of keys (name, strength, parameters)"


def test_a_key_of_the_file_below_a_table_is_told_where_it_belongs():
    """TOML takes what follows [[features]] for a key of the last feature."""
    found = message(tomli_w.dumps(GOOD) + '\n[[features]]\ntitle = "at the end"\n')
    assert "unknown key 'title'; " in found
    assert found.endswith("; 'title' is a key of the whole file: write it above the first table")


def test_a_few_of_many_faults_are_told():
    found = message(text_with("features", list(range(300)))).splitlines()
    assert found[0].startswith("features[0] = 0: should be a table of keys")
    assert len(found) == 21
    assert found[-1] == "and 280 faults more"


def test_endless_components_of_a_law_are_refused():
    law = {"law": "gaussian_mixture", "means": [1e200, 0.0], "variances": [1.0, 1.0], "probabilities": [0.5, 0.5]}
    found = message(text_with("features[0].hidden", law))
    assert_names(found, ["features[0].hidden.means[0] = 1e+200", "less than or equal to 1000000"])


@pytest.mark.parametrize("value", [1e200, -1e308, 10**400], ids=["1e200", "-1e308", "10^400"])
@pytest.mark.parametrize("key", NUMBERS)
def test_huge_numbers_are_accepted_or_refused_but_never_a_crash(key, value):
    problem = None
    with suppress(InputError):
        problem = parse_problem(text_with(key, value))
    assert problem is None or parse_problem(format_problem(problem)) == problem


@pytest.mark.parametrize(
    "key",
    [
        "model",
        "model.activation",
        "features[1].initial_overlap",
        "features[0].hidden.law",
        "features[0].coordinate.law",
    ],
)
def test_a_missing_key(key):
    found = message(text_with(key, None))
    assert re.search(re.escape(key) + r": .*missing; add it", found), found


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("titel", "title"),
        ("features[0].hidden.secondmoment", "second_moment"),
        ("time.sotp", "stop"),
    ],
)
def test_an_unknown_key_names_the_nearest_one(key, nearest):
    found = message(text_with(key, 1.0))
    parent, _, last = key.rpartition(".")
    assert found.startswith(f"{parent}: unknown key '{last}'" if parent else f"unknown key '{last}'")
    assert_names(found, [f"did you mean '{nearest}'?"])
    if parent in ("prior", "time"):  # few enough keys to be listed
        assert_names(found, ["(known: ", *Problem.model_fields[parent].annotation.model_fields])


@pytest.mark.parametrize("section", ["model", "time", "density", "particles"])
def test_an_unknown_key_without_a_near_one_lists_all(section):
    found = message(text_with(f"{section}.xyz", 1.0))
    assert_names(found, ["unknown key 'xyz'", "known: ", *Problem.model_fields[section].annotation.model_fields])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"model.centering": "batch", "model.batch_size": 1},
            ["model: batch_size = 1 with centering = 'batch'", "set batch_size to 2 or more", "'population'"],
        ),
        (
            {"features[0].initial_overlap": 0.8, "features[1].initial_overlap": 0.6},
            ["features.initial_overlap = [0.8, 0.6]", "|q(0)|^2 = 1", "below 1", "lower initial_overlap"],
        ),
        (
            {"features[1].initial_overlap": "random"},
            ["features.initial_overlap", "'random' for some features and a number for others", "all or for none"],
        ),
        ({"features": []}, ["features is empty", "add a [[features]] table"]),
        ({"augmentation.variance": [0.3, -0.1]}, ["augmentation", "variance -0.1", "negative", "two numbers >= 0"]),
        ({"particles.dimension": 3}, ["particles.dimension = 3", "2 feature(s)", "at least 4", "raise it"]),
        (
            {"particles.snapshots": [0.0, 0.3]},
            [
                "particles.snapshots: 0.3",
                "not an output time",
                "nearest one is 0.5",
                "time.spacing = 'linear': t = 0 to 20 in 41 outputs",
            ],
        ),
    ],
)
def test_values_that_do_not_go_together(changes, words):
    data = copy.deepcopy(GOOD)
    for key, value in changes.items():
        container, last = locate(data, key)
        container[last] = value
    assert_names(message(tomli_w.dumps(data)), words)


def test_all_mistakes_are_reported_at_once():
    data = copy.deepcopy(GOOD)
    data["model"]["learning_rate"] = -1.0
    data["features"][1]["hidden"]["values"][0] = "x"
    data["time"]["outputs"] = 1
    lines = message(tomli_w.dumps(data)).splitlines()
    assert [line.split(" = ")[0] for line in lines] == [
        "model.learning_rate",
        "features[1].hidden.values[0]",
        "time.outputs",
    ]


@pytest.mark.parametrize("text", ["", "# nothing\n"])
def test_an_empty_file(text):
    starts = [line[: line.index("; add it")] for line in message(text).splitlines()]
    assert starts == ["model: is missing", "features: is missing", "time: is missing"]


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("x = ", "correct the line, texts go in double quotes"),
        ("title = hello", 'write "hello", texts go in double quotes'),
        ("standardise = True", "write true"),
        ("learning_rate = 0,02", "write 0.02, with a decimal point"),
        ("learning_rate = 1/20", "write 0.05, TOML does not calculate"),
        ("learning_rate = 5 %", "write 0.05, TOML does not calculate"),
        ("batch_size: 10", "write batch_size = 10, TOML has no colons"),
        ("activation = \u201cquadratic\u201d", 'write straight quotes, "...", in place of \u201c'),
        ("initial_overlap = \u22120.3", "write the minus sign of the keyboard, -, in place of \u2212"),
        ("batch_size =\u00a010", "write a plain space in place of the special one"),
        ("hidden = { second_moment = 1,1, law = 'x' }", "write 1.1, with a decimal point"),
        ("stop = -10 s  # seconds", "write -10, without a unit"),
        ("dimension = 1,000,000", "write 1000000, without commas"),
        ("stop = 20.", "write 20.0"),
        ("[model]\n[model]", "[[features]]"),
        ("title = 'a'\ntitle = 'b'", "remove one of the two"),
        ("\x00\x01", "correct the line"),
    ],
)
def test_not_toml(text, remedy):
    assert_names(message(text), ["not a TOML file", remedy])


def test_the_place_of_a_fault_in_toml_is_marked():
    *_, line, mark = message('title = "a"\n\n[time]\n\tstop = 0,5 # \x7f\n').splitlines()
    assert (line, mark) == ("  4 |  stop = 0,5 #  ", "    |          ^")
    *_, line, mark = message("[model]\nx = [1, 2").splitlines()
    assert (line, mark) == ("  2 | x = [1, 2", "    |          ^")
    *_, line, mark = message("x = [" + "1, " * 500 + "oops" + ", 2" * 500 + "]").splitlines()
    assert len(line) < 100
    assert line[mark.index("^") :].startswith("oops")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = " + 5000 * "[" + 5000 * "]", ["nested hundreds of levels deep"]),
        ("title = " + 5000 * "1", ["not a TOML file", "4300 digits"]),
    ],
)
def test_what_the_parser_of_toml_gives_up_on(text, words):
    assert_names(message(text), words)


@pytest.mark.parametrize(
    ("key", "value", "hint"),
    [
        ("model.learning_rate", "0,02", "(write 0.02, with a decimal point)"),
        ("time.stop", "20 s", "(write 20, without a unit, since all quantities are dimensionless)"),
        ("particles.dimension", "10,000", "(write 10000, without commas)"),
        ("model.batch_size", "10", "(write 10, without quotes)"),
        ("features[0].initial_overlap", "0,5", "should be a valid number or 'random' (write 0.5, with"),
        ("features[0].initial_overlap", "Random", "(did you mean 'random'?)"),
        ("features[0].hidden.law", "Gaussian", "(did you mean 'gaussian'?)"),
        ("model.centering", "NONE", "(did you mean 'none'?)"),
        ("model.activation", "ReLU", "did you mean 'relu'?"),
        ("prior.name", "L1", "did you mean 'l1'?"),
    ],
)
def test_what_was_probably_meant_is_said(key, value, hint):
    found = message(text_with(key, value))
    assert len(found.splitlines()) == 1
    assert_names(found, [f"{key}", hint])


def test_a_float_that_is_a_whole_number_is_one():
    found = parse_problem(text_with("particles.dimension", 1e4)).particles.dimension
    assert (found, type(found)) == (10_000, int)


def test_the_line_of_a_mistake_in_toml_is_named():
    assert_names(message('title = "a"\nmodel = oops\n'), ["at line 2"])


def failure_of(path):
    with pytest.raises(InputError) as error:
        load_problem(path)
    return str(error.value)


def test_a_missing_file(tmp_path):
    path = tmp_path / "nothing.toml"
    assert_names(failure_of(path), [str(path), "no such problem file", "check the path"])


def test_a_directory(tmp_path):
    assert_names(failure_of(tmp_path), [str(tmp_path), "cannot be read", "directory", "give a TOML problem file"])


@pytest.mark.parametrize("content", [b"\x89HDF\r\n\x1a\n\xff\xfe", b'title = "caf\xe9"', bytes(range(256))])
def test_a_binary_file(tmp_path, content):
    path = tmp_path / "run.nc"
    path.write_bytes(content)
    assert_names(failure_of(path), [str(path), "cannot be read as text", "give a TOML problem file"])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16(tmp_path, encoding):
    """The first has a mark in front, the others are told by the zeros between Latin letters."""
    path = tmp_path / "problem.toml"
    path.write_bytes(tomli_w.dumps(GOOD).encode(encoding))
    assert_names(failure_of(path), [str(path), "it is UTF-16", "Windows", "save it as UTF-8"])


def test_a_file_in_the_encoding_of_a_country(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_bytes(("# first line\n" + tomli_w.dumps(GOOD | {"title": "Über"})).encode("cp1252"))
    assert_names(failure_of(path), ["byte 0xdc in line 2 is no UTF-8", "save it as UTF-8"])


def test_a_result_in_place_of_a_problem_file(tmp_path):
    path = tmp_path / "run.nc"
    path.write_bytes(b"\x89HDF\r\n\x1a\n\0\0\0")
    assert_names(failure_of(path), ["it is no text, but a file of data", "give a TOML problem file"])


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_file_with_a_mark_in_front(tmp_path, line_end):
    path = tmp_path / "problem.toml"
    path.write_bytes(tomli_w.dumps(GOOD).replace("\n", line_end).encode("utf-8-sig"))
    assert load_problem(path) == parse_problem(tomli_w.dumps(GOOD))


def test_a_mistake_in_a_file_names_the_file(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(text_with("time.stop", -1.0))
    assert failure_of(str(path)).startswith(f"{path}: time.stop = -1.0: ")


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples(path):
    problem = load_problem(path)
    assert problem.title
    assert parse_problem(format_problem(problem)) == problem


def test_all_defaults_are_written_out():
    """So a run can be repeated after a default has changed."""
    bare = {key: GOOD[key] for key in ("model", "features", "time")}
    written = tomllib.loads(format_problem(parse_problem(tomli_w.dumps(bare))))
    assert written["density"] == {"tolerance": 1e-6, "scheme": "lagrangian"}
    assert written["particles"] == {
        "method": "auto",
        "dimension": 1024,
        "replicas": 8,
        "seed": 0,
        "snapshot_precision": "double",
        "record": "replicas",
        "longest_days": 1.0,
    }
    assert written["prior"] == {"name": "none", "strength": 1.0, "parameters": {}}
    assert written["title"] == ""
    assert "augmentation" not in written


def tables(required, optional=None):
    """Strategy for tables with some of the optional keys."""
    return st.fixed_dictionaries(required, optional=optional or {})


POSITIVE = st.floats(1e-6, 1e6)
WEIGHTS = st.lists(st.integers(1, 9), min_size=1, max_size=5)
DISCRETE = WEIGHTS.flatmap(
    lambda weights: st.builds(
        lambda values: {
            "law": "discrete",
            "values": values,
            "probabilities": [weight / sum(weights) for weight in weights],
        },
        st.lists(st.floats(0.1, 5.0), min_size=len(weights), max_size=len(weights)),
    )
)
THREE_POINT = st.builds(
    lambda m2, ratio: {"law": "three_point", "second_moment": m2, "fourth_moment": ratio * m2**2},
    POSITIVE,
    st.floats(1.0, 100.0),
)
GAUSSIAN = tables({"law": st.just("gaussian")}, {"second_moment": POSITIVE})
COORDINATE = tables({"law": st.sampled_from(["gaussian", "rademacher"])})
FEATURE = tables(
    {"hidden": GAUSSIAN | THREE_POINT | DISCRETE, "initial_overlap": st.floats(-0.5, 0.5)}, {"coordinate": COORDINATE}
)
INFORMED = st.lists(FEATURE, min_size=1, max_size=3)
RANDOM = INFORMED.map(lambda features: [feature | {"initial_overlap": "random"} for feature in features])
PROBLEMS = tables(
    {
        "model": tables(
            {
                "activation": st.sampled_from(sorted(ACTIVATIONS)),
                "learning_rate": POSITIVE,
                "batch_size": st.integers(2, 10**9),
            },
            {"centering": st.sampled_from(["none", "population", "batch"])},
        ),
        "features": INFORMED | RANDOM,
        "time": tables({"stop": POSITIVE}, {"outputs": st.integers(2, 200)}),
    },
    {
        "title": st.text(),
        "augmentation": tables(
            {"variance": st.lists(st.floats(0.0, 10.0), min_size=2, max_size=2)}, {"correlation": st.floats(-1.0, 1.0)}
        ),
        "prior": tables({}, {"name": st.sampled_from(sorted(PRIORS)), "strength": st.floats(0.0, 1e6)}),
        "density": tables(
            {},
            {
                "cells": st.integers(4, 10**6).map(lambda half: 2 * half),
                "half_width": POSITIVE,
                "feature_nodes": st.integers(2, 1000),
                "steps": st.integers(1, 10**9),
                "order": st.sampled_from([2, 4]),
            },
        ),
        "particles": tables(
            {},
            {
                "method": st.sampled_from(["auto", "plain"]),
                "dimension": st.integers(5, 10**9),
                "replicas": st.integers(1, 10**6),
                "seed": st.integers(0, 2**128),
                "snapshots": st.just([0.0]),
            },
        ),
    },
)


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(data=PROBLEMS)
def test_round_trip(data):
    problem = Problem.model_validate(data)
    text = format_problem(problem)
    again = parse_problem(text)
    assert again == problem
    assert format_problem(again) == text
