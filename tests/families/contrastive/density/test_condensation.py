"""A condensing run ends `complete` with a warning, which its file and the command repeat."""

import numpy as np
import pytest

import meanfield
from meanfield.commands.dispatch import run_command
from meanfield.problems.file import format_problem
from meanfield.report.content import content_of
from meanfield.results import schema
from meanfield.results.result import Result
from tests.example_problems import make_problem

FIXED = "density = { cells = 1600, half_width = 40.0, steps = 1200, order = 2, feature_nodes = 7 }"
WEAK_NOISE = "model = { learning_rate = 0.1, batch_size = 100 }"
"""Lambda = 240 tau^2/m = 0.024 at q = 0, and Lambda_c = tau strength/2 = 0.5 under cauchy."""


def problem_with(name, strength, *more):
    return make_problem(
        f'prior = {{ name = "{name}", strength = {strength} }}',
        WEAK_NOISE,
        'features = [{ hidden = { law = "gaussian", second_moment = 1.0 }, initial_overlap = 0.1 }]',
        "time = { stop = 6.0, outputs = 4 }",
        FIXED,
        *more,
    )


@pytest.fixture(scope="module")
def run():
    return meanfield.solve_density(problem_with("cauchy", 10.0))


def test_the_run_is_complete_and_warns(run):
    assert run.attrs["status"] == "complete"
    assert run.attrs["warning"].startswith("condensation: from t = 0 on the prior outweighs the noise")
    assert "below Lambda_c = 0.5)" in run.attrs["warning"]
    assert "SGD with N = 64 follows this limit until about t = 0," in run.attrs["warning"]
    assert (np.diff(run["runaway_weights"]) < 0).all()
    assert (np.diff(run["critical_weight"]) > 0).all()
    assert run["runaway_norm"][1:].values == pytest.approx(2 / np.e, abs=0.1)  # its limit, slowly


def test_the_file_repeats_the_warning(run, tmp_path):
    meanfield.save(run, tmp_path / "run.nc")
    loaded = meanfield.load(tmp_path / "run.nc")
    assert loaded.attrs["warning"] == run.attrs["warning"]
    np.testing.assert_array_equal(loaded["critical_weight"], run["critical_weight"])
    assert content_of(Result.of(loaded)).warning == run.attrs["warning"]


def test_the_command_prints_the_warning_and_succeeds(tmp_path, capsys):
    file = tmp_path / "runaway.toml"
    file.write_text(format_problem(problem_with("cauchy", 10.0)))
    assert run_command("density", [str(file), "-o", str(tmp_path / "out.nc")], "solve_density.py") == 0
    assert f"{file}: warning: condensation: from t = 0" in capsys.readouterr().err


def test_a_warning_that_is_no_text_is_refused(run):
    with pytest.raises(meanfield.InputError, match="the attribute 'warning' is no text"):
        schema.validate(Result.of(run.assign_attrs(warning=3)))


@pytest.mark.parametrize(("name", "strength"), [("none", 1.0), ("quartic", 10.0)])
def test_runs_that_do_not_condense_say_nothing(name, strength):
    found = meanfield.solve_density(problem_with(name, strength))
    assert "warning" not in found.attrs
    assert "critical_weight" not in found
    assert content_of(Result.of(found)).warning == ""
