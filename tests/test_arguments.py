"""Public functions that are given a path, a result or a problem where something else is wanted say what to call."""

import inspect

import pytest
import xarray as xr

import meanfield
from meanfield.plotting import plot_result
from meanfield.problems.base import BaseProblem, Time, check_problem
from meanfield.problems.problem_keys import with_value
from meanfield.report import report
from tests.example_problems import make_problem

OF_A_PROBLEM = [
    name
    for name in meanfield.__all__
    if inspect.isfunction(getattr(meanfield, name))
    and next(iter(inspect.signature(getattr(meanfield, name)).parameters)) == "problem"
]
MORE = {
    "solve": ("density",),
    "critical_values": ("prior.strength", 0.0, 1.0),
    "continue_critical_points": ("importance.temperature", 0.1, 1.0),
    "continue_fixed_points": ("prior.strength", 0.0, 1.0),
    "continue_stationary_states": ("prior.strength", 0.0, 1.0),
    "solve_from_run": (xr.Dataset(),),
    "solve_from_weights": ([[1.0]], [[1.0]], [[1.0]]),
}
PATH = r"a text is no problem; call meanfield\.load_problem\('first\.toml'\) first"


def test_many_functions_take_a_problem():
    assert len(OF_A_PROBLEM) >= 12


@pytest.mark.parametrize("name", OF_A_PROBLEM)
def test_a_path_is_no_problem(name):
    function, more = getattr(meanfield, name), MORE.get(name, ())
    with pytest.raises(meanfield.InputError, match=PATH):
        function("first.toml", *more)
    with pytest.raises(meanfield.InputError, match="Dataset is no problem; give what meanfield"):
        function(xr.Dataset(), *more)


def test_a_text_is_no_problem_either():
    with pytest.raises(meanfield.InputError, match=r"call meanfield\.parse_problem\(text\) first"):
        meanfield.solve_density("[model]\nactivation = 'relu'\n")
    with pytest.raises(meanfield.InputError, match=PATH):
        with_value("first.toml", "prior.strength", 1.0)


class Other(BaseProblem):
    """A problem of another family."""

    time: Time = Time(stop=1.0)


def test_functions_of_one_family_refuse_problems_of_others():
    with pytest.raises(meanfield.InputError, match=r"families\.contrastive\.problem, not of .*test_arguments; .*solve"):
        check_problem(Other(), meanfield.Problem)
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
