"""Public functions that are given a path, a result or a problem where something else is wanted say what to call."""

import inspect

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield.arguments import as_number, as_whole
from meanfield.plotting import plot_comparison, plot_result
from meanfield.problems.base import Problem, Time, check_problem
from meanfield.problems.problem_keys import with_value
from meanfield.report import report
from tests.example_problems import feature, features, make_problem

OF_A_PROBLEM = {
    name: found
    for module in (meanfield, *(getattr(meanfield, name) for name in meanfield.NAMESPACES))
    for name, found in ((name, getattr(module, name)) for name in module.__all__)
    if inspect.isfunction(found) and next(iter(inspect.signature(found).parameters), None) == "problem"
}
MORE = {
    "solve": ("density",),
    "at_time": (1.0,),
    "critical_values": ("prior.strength", 0.0, 1.0),
    "continue_critical_points": ("importance.temperature", 0.1, 1.0),
    "continue_fixed_points": ("prior.strength", 0.0, 1.0),
    "continue_stationary_states": ("prior.strength", 0.0, 1.0),
    "with_value": ("time.stop", 1.0),
    "with_values": ({"time.stop": 1.0},),
    "outcomes_in_time": (1e4, 0.5),
    "fit": (xr.Dataset(), ["prior.strength"]),
    "solve_from_run": (xr.Dataset(),),
    "solve_from_weights": ([[1.0]], [[1.0]], [[1.0]]),
}
PATH = r"a text is no problem; call meanfield\.load_problem\('first\.toml'\) first"


def test_many_functions_take_a_problem():
    assert len(OF_A_PROBLEM) >= 25


@pytest.mark.parametrize("name", OF_A_PROBLEM)
def test_a_path_is_no_problem(name):
    function, more = OF_A_PROBLEM[name], MORE.get(name, ())
    with pytest.raises(meanfield.InputError, match=PATH):
        function("first.toml", *more)
    with pytest.raises(meanfield.InputError, match="Dataset is no problem; give what meanfield"):
        function(xr.Dataset(), *more)


def test_a_text_is_no_problem_either():
    with pytest.raises(meanfield.InputError, match=r"call meanfield\.parse_problem\(text\) first"):
        meanfield.solve_density("[model]\nactivation = 'relu'\n")
    with pytest.raises(meanfield.InputError, match=PATH):
        with_value("first.toml", "prior.strength", 1.0)


class Other(Problem):
    """A problem of another family."""

    time: Time = Time(stop=1.0)


def test_functions_of_one_family_refuse_problems_of_others():
    with pytest.raises(meanfield.InputError, match=r"families\.contrastive\.problem, not of .*test_arguments; .*solve"):
        check_problem(Other(), meanfield.contrastive.Problem)
    check_problem(Other())


@pytest.mark.parametrize(
    "use",
    [
        lambda given: meanfield.compare(given, given),
        lambda given: meanfield.save(given, "x.nc"),
        lambda given: plot_result(given),
        lambda given: report({"run": given}),
    ],
)
def test_what_is_no_result(use, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for given, words in (
        ("first.nc", r"a path is no result; call meanfield\.load\('first\.nc'\) first"),
        (make_problem(), "a problem is no result; give what meanfield.solve"),
        (xr.DataArray(1.0), "DataArray is no result; give a Dataset"),
    ):
        with pytest.raises(meanfield.InputError, match=words):
            use(given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: meanfield.load_problem("[model]\n"), r"takes the path of a file; call meanfield\.parse_problem"),
        (lambda: meanfield.parse_problem("first.toml"), r"call meanfield\.load_problem\('first\.toml'\)"),
        (lambda: meanfield.run_sweep("sweep.toml", "out"), r"give what meanfield\.load_sweep\(path\) returns"),
        (lambda: meanfield.simulate_sgd(make_problem(), record="out"), r"give a folder as meanfield\.Checkpoint\("),
    ],
)
def test_paths_texts_sweeps_and_folders(use, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(meanfield.InputError, match=words):
        use()
    assert list(tmp_path.iterdir()) == []


TWO = make_problem(features(feature(), feature()))
OUTPUTS = np.ones((4, 2))


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: meanfield.load(3), "path = 3: give the path of a result"),
        (
            lambda: meanfield.save(xr.Dataset(), None),
            r"path = None: give the path of the file to write, such as 'out\.nc'",
        ),
        (lambda: meanfield.save("out.nc", xr.Dataset()), "path = <Dataset>: .*, after the Dataset"),
        (lambda: meanfield.save("x", "out.nc"), r"a path is no result; call meanfield\.load\('x'\) first"),
        (lambda: meanfield.save(xr.Dataset(attrs={"a": None}), "x.nc"), "'a': None.* make it numbers or text"),
        (
            lambda: meanfield.save(xr.Dataset({"a": ("x", [object()])}), "x.nc"),
            "variable 'a'.* make it numbers or text",
        ),
        (lambda: meanfield.load_problem(3), r"path = 3: give the path of a problem file, such as 'data/problems/"),
        (lambda: meanfield.load_problem("a\0b"), r"path = 'a\\x00b': give the path of a problem file"),
        (lambda: meanfield.parse_problem({}), r"text = <dict>: give the text .*load_problem\(path\) reads a file"),
        (lambda: meanfield.parse_problem("", folder=3), "folder = 3: give the path of a folder"),
        (lambda: meanfield.Problem("first.toml"), r"call meanfield\.load_problem\(path\)"),
        (
            lambda: meanfield.Problem(model=3),
            r"^model = 3: should be a table of keys \(activation, .*\nfeatures: is missing",
        ),
        (lambda: meanfield.Sweep(), "^problem: is missing; add it .*\naxes: is missing"),
        (lambda: meanfield.Checkpoint(3), "folder = 3: give the path of a folder"),
        (lambda: meanfield.Checkpoint("run", "10"), "save_every = '10': give a number of seconds, 0 or more"),
        (lambda: meanfield.solve(make_problem(), 3), "method = 3: give one of 'density', "),
        (
            lambda: meanfield.solve(make_problem(), "particles", worker=2),
            "worker: no .*did you mean 'workers'",
        ),
        (lambda: meanfield.solve(make_problem(), "dynamics", seed=2), "seed: .*takes none; settings are keys"),
        (lambda: meanfield.solve_density(make_problem(), backend=3), "backend = 3: choose one of numba, fipy"),
        (lambda: meanfield.contrastive.critical_values(make_problem(), [], 0.1, 1.0), r"key = <tuple>: give a key"),
        (
            lambda: meanfield.contrastive.best_augmentation(make_problem(), "2"),
            "strongest = '2': give a positive variance",
        ),
        (lambda: meanfield.contrastive.phase_portrait(TWO, cells="9"), "cells = '9': give a whole number"),
        (lambda: meanfield.contrastive.phase_portrait(TWO, plane="z"), "plane = 'z': give 'q' or 'Q'"),
        (lambda: meanfield.contrastive.stationary_similarity("x.nc", [1.0]), r"call meanfield\.load\('x\.nc'\) first"),
        (
            lambda: meanfield.contrastive.stationary_similarity(xr.Dataset(), [1.0]),
            "give what continue_fixed_points returns",
        ),
        (
            lambda: meanfield.hidden_manifold.examine_samples(np.eye(100, 10), teacher="x"),
            "teacher = 'x': give 10 finite rows, and for each vector a column that is not 0",
        ),
        (
            lambda: meanfield.alpha_contrastive.contrastive_covariance(OUTPUTS, OUTPUTS, temperature="1"),
            "temperature = '1': give a number",
        ),
        (
            lambda: meanfield.alpha_contrastive.contrastive_covariance(OUTPUTS, OUTPUTS, first=3),
            "first = 3: give two arrays",
        ),
        (lambda: meanfield.Activation(abs, kinks=0.0), r"kinks = 0.0: give a list of numbers, such as \[0\.0\]"),
        (lambda: meanfield.Penalty(abs, kinks=["0"]), r"kinks\[0\] = '0': give a list of numbers"),
        (lambda: plot_comparison(xr.Dataset()), "results = <Dataset>: give labels and results"),
    ],
)
def test_arguments_of_other_types(use, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(meanfield.InputError, match=words):
        use()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("labels", [3, "ab", ["a", 2]])
def test_labels_that_are_no_texts(labels):
    run = meanfield.solve_order_parameters(make_problem())
    with pytest.raises(meanfield.InputError, match=r"labels(\[1\])? = .*: give a list of texts"):
        meanfield.compare(run, run, labels=labels)


def test_numbers_of_numpy_are_numbers():
    assert as_whole(np.int32(3), "cells", "", least=3) == as_whole(xr.DataArray(3), "cells", "", most=3) == 3
    assert as_number(np.float32(0.5), "low", "", above=0.0) == as_number(np.array(0.5), "low", "") == 0.5
    for given in (True, np.nan, np.inf, [1.0], 0.0):
        with pytest.raises(meanfield.InputError):
            as_number(given, "low", "", above=0.0)
