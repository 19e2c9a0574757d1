"""Sweep files: what they may say, and one clear message for every mistake."""

import tomllib

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.sweep import format_sweep, load_sweep, parse_sweep
from tests.example_problems import SMALL
from tests.sweep.sweeps import M2, TAU, make_sweep

HEAD = """
problem = "small.toml"
[[axes]]
key = "model.learning_rate"
values = [0.1, 0.2]
[methods]
order_parameters = ["final"]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "small.toml").write_text(SMALL)
    return tmp_path


def axis(**what):
    return make_sweep([{"key": "model.learning_rate"} | what]).axes[0]


def values_of(axis):
    return [position[axis.keys[0]] for position in axis.settings(make_sweep().problem)]


def test_values_along_an_axis():
    assert values_of(axis(values=[0.3, 0.1])) == [0.3, 0.1]
    assert values_of(axis(grid={"start": 0.1, "stop": 0.5, "points": 3})) == [0.1, 0.3, 0.5]
    assert values_of(axis(log={"start": 0.01, "stop": 1.0, "points": 3})) == [0.01, 0.1, 1.0]
    coarse, fine = (values_of(axis(grid={"start": 0.7, "stop": 1.6, "points": n})) for n in (50, 99))
    assert coarse == fine[::2]
    random = values_of(axis(random={"low": 0.1, "high": 0.2, "points": 50, "seed": 1}))
    assert random == sorted(random)
    assert 0.1 < min(random) < max(random) < 0.2
    assert set(values_of(axis(random={"low": 0.1, "high": 0.2, "points": 20, "seed": 1}))) < set(random)
    assert values_of(axis(random={"low": 0.1, "high": 0.2, "points": 50, "seed": 2})) != random


@pytest.mark.parametrize("value", ["nan", "[0.1, -inf]", "{ law = 'laplace', second_moment = inf }"])
def test_values_that_are_not_finite_are_refused(folder, value):
    (folder / "s.toml").write_text(HEAD.replace("0.2]", f"{value}]"))
    with pytest.raises(InputError, match=r"axes\[0\]: values\[1\] = .*: should hold finite numbers"):
        load_sweep(folder / "s.toml")


def test_ranges_of_keys_that_hold_whole_numbers_are_whole():
    (positions,) = make_sweep([{"key": "model.batch_size", "log": {"start": 1, "stop": 1000, "points": 4}}]).axes
    assert values_of(positions) == [1, 10, 100, 1000]
    assert all(isinstance(value, int) for value in values_of(positions))


def test_several_keys_vary_along_one_axis():
    moments = ["features[0].hidden.second_moment", "features[0].hidden.fourth_moment"]
    problem = make_sweep().problem
    zipped = make_sweep([{"key": moments, "values": [[1.0, 5.0], [1.1, 6.05]]}]).axes[0]
    assert zipped.settings(problem) == [dict(zip(moments, row, strict=True)) for row in ([1.0, 5.0], [1.1, 6.05])]
    variances = ["augmentation.variance[0]", "augmentation.variance[1]"]
    problem = SMALL + "[augmentation]\nvariance = [0.1, 0.1]\n"
    tied = make_sweep([{"key": variances, "grid": {"start": 0, "stop": 1, "points": 2}}], problem=problem).axes[0]
    assert tied.settings(make_sweep(problem=problem).problem) == [dict.fromkeys(variances, x) for x in (0.0, 1.0)]
    assert (zipped.dim, tied.dim) == ("second_moment", "variance")


def test_the_problem_is_a_file_beside_it_or_a_table(folder):
    (folder / "sweep.toml").write_text(HEAD)
    sweep = load_sweep(folder / "sweep.toml")
    assert sweep.problem == meanfield.load_problem(folder / "small.toml")
    again = parse_sweep(format_sweep(sweep))
    assert again.model_dump() == sweep.model_dump()
    assert again.folder is None  # so that nothing that it names is imported
    assert sweep.folder == folder


def test_the_problem_is_a_table_of_its_family_in_python():
    table = tomllib.loads(SMALL)
    axes, methods = [{"key": "time.stop", "values": [1.0]}], {"density": ["final"]}
    expected = meanfield.Sweep(problem=meanfield.parse_problem(SMALL), axes=axes, methods=methods)
    assert meanfield.Sweep(problem=table, axes=axes, methods=methods) == expected
    with pytest.raises(InputError, match=r"problem: unknown key 'modle'; did you mean 'model'\?"):
        meanfield.Sweep(problem=table | {"modle": {}}, axes=axes, methods=methods)


def test_the_example_is_a_sweep():
    sweep = load_sweep("data/sweeps/phase_diagram.toml")
    assert [axis.size for axis in sweep.axes] == [50, 50]
    assert parse_sweep(format_sweep(sweep)).model_dump() == sweep.model_dump()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('problem = "small.toml"', "", "problem: is missing; add it (the base problem"),
        ('problem = "small.toml"', "problem = { title = 'x' }", "problem.model: is missing; add it"),
        ("model.learning_rate", "model.learning_rte", "axes[0].key: the problem has no key 'model.learning_rte'; did"),
        (
            "values = [0.1, 0.2]",
            "",
            "axes[0]: no values for model.learning_rate; give one of values, grid, log, random",
        ),
        ("values = [0.1, 0.2]", "values = []", "axes[0].values"),
        ("values = [0.1, 0.2]", "values = [0.1, 0.1]", '{"model.learning_rate": 0.1} comes twice'),
        (
            "0.2]",
            "0.2]\ngrid = { start = 0, stop = 1, points = 2 }",
            "axes[0]: values and grid for model.learning_rate",
        ),
        (
            "values = [0.1, 0.2]",
            "grid = { start = 1, stop = 1, points = 2 }",
            "start and stop are both 1; give two ends",
        ),
        (
            "values = [0.1, 0.2]",
            "log = { start = 0, stop = 2, points = 3 }",
            "axes[0].log: start = 0, stop = 2: logarithms",
        ),
        (
            "values = [0.1, 0.2]",
            "random = { low = 2, high = 1, points = 3, seed = 0 }",
            "low = 2 is not below high = 1",
        ),
        ("values = [0.1, 0.2]", "values = [0.1, 0.2]\nname = 'a b'", "axes[0].name = 'a b': should match ^[A-Za-z_]"),
        (
            "values = [0.1, 0.2]",
            "values = [0.1, 0.2]\nname = 'time'",
            "axes[0]: the name 'time' is taken; choose another",
        ),
        (
            '"model.learning_rate"',
            '["model.learning_rate", "time.stop"]',
            "axes[0]: values: 0.1 is no list of 2 values",
        ),
        ("order_parameters", "oder_parameters", "unknown method 'oder_parameters'; did you mean 'order_parameters'?"),
        ('["final"]', '["finl"]', "methods.order_parameters: no 'finl' to keep; did you mean 'final'?"),
        (
            '["final"]',
            '["similarity"]',
            "no 'similarity' to keep; of order_parameters there are final, trajectory, arrangement, all",
        ),
        ('["final"]', '["nowhere:f"]', "methods.order_parameters: 'nowhere:f': module 'nowhere' cannot be imported"),
        ("[methods]", "[methods", "not a TOML file"),
    ],
)
def test_every_mistake_has_a_message(folder, old, new, message):
    assert old in HEAD
    (folder / "sweep.toml").write_text(HEAD.replace(old, new))
    with pytest.raises(InputError) as refused:
        load_sweep(folder / "sweep.toml")
    assert str(refused.value).startswith(f"{folder}")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ([TAU, TAU], "axes\\[1\\].key: 'model.learning_rate' varies with 'model.learning_rate' already"),
        ([M2, {"key": "features[0].hidden", "values": [1]}], "'features\\[0\\].hidden' varies with .* already"),
        ([TAU, {"key": "time.stop", "values": [1.0], "name": "learning_rate"}], "the name 'learning_rate' is taken"),
        (
            [TAU | {"values": list(np.arange(1.0, 2000.0))}, M2 | {"grid": {"start": 1, "stop": 2, "points": 1000}}],
            "1999000 points",
        ),
    ],
)
def test_axes_must_fit_together(axes, message):
    with pytest.raises(ValueError, match=message):
        make_sweep(axes)


def test_a_function_that_is_none_is_refused(folder):
    (folder / "no_function.py").write_text("entropy = 3\n")
    (folder / "sweep.toml").write_text(HEAD.replace('["final"]', '["no_function:entropy"]'))
    with pytest.raises(InputError, match="'no_function:entropy' is int, not a function of a Dataset"):
        load_sweep(folder / "sweep.toml")
