"""The scripts as a person runs them, judged by exit code, messages and files.

But for the one that gets a signal they run in this process, as `__main__`: starting Python and importing takes two
seconds each time.
"""

import runpy
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import numpy as np
import pytest
import xarray as xr

import meanfield
from tests import ROOT
from tests.example_problems import SMALL
from tests.sweep.conftest import Inside

pytestmark = pytest.mark.usefixtures("plain_figures")

SOLVERS = ("solve_density", "solve_order_parameters", "simulate_sgd")


@pytest.fixture(scope="session")
def inside():
    """A function from the name of a script and its arguments to how it ended."""

    def call(name, *arguments):
        path = str(ROOT / "solvers" / f"{name}.py")
        out, err = StringIO(), StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "argv", [path, *map(str, arguments)])
            with pytest.raises(SystemExit) as ended:
                runpy.run_path(path, run_name="__main__")
        return subprocess.CompletedProcess(path, ended.value.code, out.getvalue(), err.getvalue())

    return call


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs")
    (path / "small.toml").write_text(SMALL)
    return path


@pytest.fixture(scope="module")
def runs(folder, inside):
    paths = []
    for name in SOLVERS:
        paths.append(folder / f"{name}.nc")
        result = inside(name, folder / "small.toml", "-o", paths[-1])
        assert result.returncode == 0, result.stderr
        assert f"wrote {paths[-1]}" in result.stdout
        assert result.stderr == ""  # no progress bar outside of a terminal
    return paths


@pytest.mark.parametrize(
    "name",
    [*SOLVERS, "compare", "find_stationary_states", "analyse_dynamics", "run_sweep", "validate_problem", "report"],
)
def test_help(name, inside):
    result = inside(name, "--help")
    assert result.returncode == 0
    assert "exit codes: 0 done, 1 failed or interrupted, 2 bad input" in result.stdout


def test_results_are_those_of_the_library(runs, folder):
    problem = meanfield.load_problem(folder / "small.toml")
    for path, solve in zip(
        runs, (meanfield.solve_density, meanfield.solve_order_parameters, meanfield.simulate_sgd), strict=True
    ):
        assert meanfield.load(path).drop_attrs().equals(solve(problem).drop_attrs())


def test_workers_are_an_option(folder, runs, inside):
    result = inside("simulate_sgd", folder / "small.toml", "-o", folder / "one.nc", "--workers", 1)
    assert result.returncode == 0
    assert meanfield.load(folder / "one.nc")["q"].equals(meanfield.load(runs[2])["q"])


@pytest.mark.slow  # tests/families/contrastive/density/test_fipy.py runs this backend, and its name is one of a list
def test_the_other_backend(folder, inside):
    text = SMALL.replace("cells = 200", "cells = 40\nsteps = 4").replace("feature_nodes = 15", "feature_nodes = 5")
    (folder / "tiny.toml").write_text(text)
    result = inside("solve_density", folder / "tiny.toml", "-o", folder / "fipy.nc", "--backend", "fipy")
    assert result.returncode == 0, result.stderr
    assert '"backend": "fipy"' in meanfield.load(folder / "fipy.nc").attrs["provenance"]


def test_ctrl_c_saves_and_the_same_command_goes_on(tmp_path, inside):
    text = SMALL.replace('method = "plain"', 'method = "projected"').replace("dimension = 64", "dimension = 8000")
    (tmp_path / "long.toml").write_text(text)
    out = tmp_path / "out.nc"
    command = [sys.executable, str(ROOT / "solvers/simulate_sgd.py"), str(tmp_path / "long.toml"), "-o", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    overlaps = out.with_name("out.nc.checkpoint") / "q.npy"
    while not (overlaps.exists() and np.isfinite(np.load(overlaps)).any()) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)  # the next replica is on its way, which takes half a second
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=120)
    assert process.returncode == 1
    assert message.splitlines() == [
        f"{tmp_path / 'long.toml'}: interrupted",
        f"what was computed before that is in {out}",
        "to go on, give the same command again",
    ]
    part = meanfield.load(out)
    assert part.attrs["status"] == "interrupted"
    result = inside("simulate_sgd", tmp_path / "long.toml", "-o", out)
    assert result.returncode == 0
    assert result.stderr == f"going on with the unfinished run in {out}.checkpoint\n"
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["long.toml", "out.nc"]
    whole = meanfield.load(out)
    reached = np.isfinite(part["q"].values)
    assert not reached.all()
    assert np.array_equal(part["q"].values[reached], whole["q"].values[reached])
    assert np.isfinite(whole["weights"]).all()


def test_refused_runs_leave_nothing_behind(folder, tmp_path, inside):
    (tmp_path / "large.toml").write_text(SMALL.replace("dimension = 64", "dimension = 1000000000000"))
    result = inside("simulate_sgd", tmp_path / "large.toml", "-o", tmp_path / "out.nc")
    assert result.returncode == 2
    assert "particles: 3 replicas with N = 1000000000000 ('plain') take" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["large.toml"]


def test_compare_prints_a_table_and_writes_report_and_figure(runs, folder, inside):
    result = inside("compare", *runs, "-o", folder / "report.nc", "--figure", folder / "f.png")
    assert result.returncode == 0, result.stderr
    assert "solve_density - simulate_sgd" in result.stdout
    assert "W1 distance of w" in result.stdout
    assert meanfield.load(folder / "report.nc").attrs["method"] == "comparison"
    assert (folder / "f.png").read_bytes().startswith(b"\x89PNG")


def test_compare_says_which_results_differ_and_strict_exits_with_1(runs, folder, tmp_path, inside):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    right = meanfield.load(runs[1])
    meanfield.save(right, tmp_path / "a" / "out.nc")
    meanfield.save(right.assign(q=right["q"] + 0.01), tmp_path / "b" / "out.nc")
    files = tmp_path / "a" / "out.nc", tmp_path / "b" / "out.nc"
    result = inside("compare", *files, "-o", tmp_path / "report.nc")
    assert result.returncode == 0, result.stderr
    assert "a/out - b/out: DIFFERS" in result.stdout
    assert meanfield.load(tmp_path / "report.nc").attrs["verdict"] == "DIFFERS"
    assert inside("compare", *files, "-o", tmp_path / "report.nc", "--strict").returncode == 1
    assert inside("compare", runs[1], files[0], "-o", tmp_path / "report.nc", "--strict").returncode == 0
    assert "is named twice" in inside("compare", files[0], files[0], "-o", tmp_path / "other.nc").stderr


def test_compare_animates_the_density_over_sgd(runs, folder, inside):
    result = inside("compare", runs[0], runs[2], "-o", folder / "report.nc", "--animate", folder / "weights.gif")
    assert result.returncode == 0, result.stderr
    assert (folder / "weights.gif").read_bytes().startswith(b"GIF89a")
    for chosen, name, message in (
        (runs, "weights.avi", "'avi' is no animation format; use one of gif, mp4"),
        (runs[1:], "other.gif", "add that of `meanfield density`"),
    ):
        result = inside("compare", *chosen, "-o", folder / "none.nc", "--animate", folder / name)
        assert result.returncode == 2
        assert message in result.stderr
        assert not (folder / name).exists()
        assert not (folder / "none.nc").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("learning_rate = 0.05", "learning_rate = -0.05", "model.learning_rate = -0.05: should be greater than 0"),
        ("fourth_moment = 6.05", "fourth_moment = 1.0", "fourth_moment = 1.0 is below second_moment^2"),
        ("[model]", "[model", "not a TOML file"),
    ],
)
def test_bad_problems_end_with_code_2_one_message_and_no_file(tmp_path, old, new, message, inside):
    assert old in SMALL
    (tmp_path / "bad.toml").write_text(SMALL.replace(old, new, 1))
    result = inside("solve_order_parameters", tmp_path / "bad.toml", "-o", tmp_path / "out.nc")
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["bad.toml"]


def test_missing_problem_and_missing_output_directory(folder, tmp_path, inside):
    result = inside("solve_density", tmp_path / "none.toml", "-o", tmp_path / "out.nc")
    assert (result.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "no such problem file" in result.stderr
    result = inside("solve_density", folder / "small.toml", "-o", tmp_path / "none" / "out.nc")
    assert (result.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "output directory" in result.stderr


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("solve_order_parameters", "the order parameters close only under priors with linear phi"),
        ("analyse_dynamics", ""),
    ],
)
def test_priors_that_do_not_close_the_equations(script, what, tmp_path, inside):
    (tmp_path / "l1.toml").write_text(SMALL + '[prior]\nname = "l1"\n')
    result = inside(script, tmp_path / "l1.toml", "-o", tmp_path / "out.nc")
    assert result.returncode == 2
    assert f"prior.name = 'l1': {what}" in result.stderr
    assert not (tmp_path / "out.nc").exists()


def test_compare_refuses_foreign_files_and_other_problems(runs, folder, tmp_path, inside):
    xr.Dataset({"q": ("x", [1.0])}).to_netcdf(tmp_path / "foreign.nc")
    result = inside("compare", runs[0], tmp_path / "foreign.nc", "-o", tmp_path / "report.nc")
    assert result.returncode == 2
    assert "not a result of meanfield" in result.stderr
    (tmp_path / "other.toml").write_text(SMALL.replace("0.05", "0.06"))
    assert inside("solve_order_parameters", tmp_path / "other.toml", "-o", tmp_path / "other.nc").returncode == 0
    result = inside("compare", runs[0], tmp_path / "other.nc", "-o", tmp_path / "report.nc")
    assert result.returncode == 2
    assert "model.learning_rate = 0.05 against 0.06" in result.stderr
    assert not (tmp_path / "report.nc").exists()


def test_blow_up_ends_with_code_1_and_says_when_what_and_what_to_change(tmp_path, inside):
    (tmp_path / "fast.toml").write_text(SMALL.replace("learning_rate = 0.05", "learning_rate = 1e5"))
    result = inside("solve_density", tmp_path / "fast.toml", "-o", tmp_path / "out.nc")
    assert result.returncode == 1
    assert "failed: at t = " in result.stderr
    assert "lower model.learning_rate" in result.stderr
    assert meanfield.load(tmp_path / "out.nc").attrs["status"].startswith("failed: at t = ")


def test_stationary_states_are_listed_saved_and_drawn(folder, tmp_path, inside):
    result = inside("find_stationary_states", folder / "small.toml", "-o", tmp_path / "states.nc")
    assert (result.returncode, result.stderr) == (0, "")
    assert "unstable" in result.stdout
    assert f"wrote {tmp_path / 'states.nc'}" in result.stdout
    assert meanfield.load(tmp_path / "states.nc").sizes["state"] == 5  # bistable
    vary = ("--vary", "prior.strength", 0, 1, "--points", 3, "--figure", tmp_path / "f.png")
    result = inside("find_stationary_states", folder / "small.toml", "-o", tmp_path / "branches.nc", *vary)
    assert (result.returncode, result.stderr) == (0, "")
    assert meanfield.load(tmp_path / "branches.nc").attrs["method"] == "continuation"
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--vary", "prior.strenth", 0, 1), "did you mean 'prior.strength'?"),
        (("--vary", "prior.strength", "x", 1), "--vary: 'x' is no number; give KEY START STOP"),
        (("--figure", "f.png"), "add --vary KEY START STOP"),
    ],
)
def test_bad_branches_end_with_code_2_and_no_file(folder, tmp_path, arguments, message, inside):
    result = inside("find_stationary_states", folder / "small.toml", "-o", tmp_path / "out.nc", *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_dynamics_are_listed_saved_and_drawn(folder, tmp_path, inside):
    outputs = tmp_path / "dynamics.nc", tmp_path / "dynamics.png"
    result = inside("analyse_dynamics", folder / "small.toml", "-o", outputs[0], "--figure", outputs[1])
    assert result.returncode == 0, result.stderr
    assert "stable node" in result.stdout
    assert "growth rates at q = 0" in result.stdout
    assert result.stdout.endswith(f"wrote {outputs[0]} and {outputs[1]}\n")
    assert meanfield.load(outputs[0]).attrs["method"] == "dynamics"
    assert outputs[1].stat().st_size > 10_000


def test_a_figure_of_no_format_is_refused_before_anything_is_computed(folder, tmp_path, inside):
    outputs = tmp_path / "dynamics.nc", tmp_path / "dynamics.xyz"
    result = inside("analyse_dynamics", folder / "small.toml", "-o", outputs[0], "--figure", outputs[1])
    assert result.returncode == 2
    assert "'xyz' is no figure format; use one of" in result.stderr
    assert result.stdout == ""
    assert not any(path.exists() for path in outputs)


def test_validate_problem_explains_and_writes_nothing(folder, tmp_path, inside, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = inside("validate_problem", folder / "small.toml")
    assert (result.returncode, result.stderr) == (0, "")
    assert "one-pass SGD, tau = 0.05, batches of m = 4" in result.stdout
    assert "stationary states" in result.stdout
    result = inside("validate_problem", folder / "small.toml", "--latex", "symbols")
    assert (result.returncode, result.stderr) == (0, "")
    assert r"\verb|model.learning_rate| & 0.05" in result.stdout
    (tmp_path / "bad.toml").write_text(SMALL.replace("learning_rate = 0.05", "learning_rate = -0.05"))
    result = inside("validate_problem", tmp_path / "bad.toml")
    assert (result.returncode, result.stdout) == (2, "")
    assert "model.learning_rate = -0.05: should be greater than 0" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bad.toml"]


def test_report_puts_results_on_one_page(runs, folder, tmp_path, inside):
    page = tmp_path / "page.html"
    result = inside("report", runs[1], "-o", page)
    assert (result.returncode, result.stderr) == (0, "")
    assert f"wrote {page}" in result.stdout
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    result = inside("report", folder / "none.nc", "-o", page)
    assert result.returncode == 2
    assert "no such file; run a solver" in result.stderr
    result = inside("report", runs[1], "-o", tmp_path / "page.pdf")
    assert result.returncode == 2
    assert "page.pdf: a report is a page of HTML; give it the ending .html or .htm" in result.stderr
    assert not (tmp_path / "page.pdf").exists()
    result = inside("report", runs[1], "-o", tmp_path / "none" / "page.html")
    assert result.returncode == 2
    assert "output directory" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (
            "simulate_sgd",
            ["--workers", "two"],
            "argument --workers: 'two' is no whole number; give the number of threads",
        ),
        ("simulate_sgd", ["--workers", 0], "argument --workers: 0 is below 1; give the number of threads, 1 or more"),
        ("find_stationary_states", ["--points", 1], "argument --points: 1 is below 2; give the number of points"),
        ("solve_density", ["--backend", "cuda"], "argument --backend: invalid choice: 'cuda' (choose from"),
        ("solve_density", ["--tolerance", 1], "unrecognized arguments: --tolerance 1; --help explains all arguments"),
        ("report", [], "the following arguments are required: RUN.nc"),
        ("validate_problem", [], "the following arguments are required: PROBLEM.toml; --help explains all arguments"),
    ],
)
def test_bad_arguments_end_with_code_2_and_say_what_is_allowed(folder, tmp_path, name, arguments, message, inside):
    needed = [folder / "small.toml", "-o", tmp_path / "out.nc"] if name not in ("report", "validate_problem") else []
    result = inside(name, *needed, *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_over_processes_is_drawn_and_not_repeated(folder, tmp_path, inside, monkeypatch):
    monkeypatch.setattr("meanfield.sweep.workers.START_METHOD", "fork")  # test_workers.py has real starts
    text = f"""
problem = "{folder / "small.toml"}"
axes = [
    {{ key = "model.learning_rate", log = {{ start = 0.01, stop = 1.0, points = 3 }} }},
    {{ key = "features[0].hidden.second_moment", values = [0.9, 1.2] }},
]
methods.fixed_points = ["similarity"]
"""
    (tmp_path / "sweep.toml").write_text(text)
    out, figure = tmp_path / "out", tmp_path / "f.png"
    for _ in range(2):
        result = inside("run_sweep", tmp_path / "sweep.toml", "-o", out, "--workers", 2, "--figure", figure)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout == f"6 points: 6 complete\nwrote {out / 'sweep.nc'} and {figure}\n"
    assert meanfield.load(out / "sweep.nc")["similarity"].sizes == {"learning_rate": 3, "second_moment": 2}
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_a_sweep_with_failed_points_says_so_in_its_status_and_its_exit_code(folder, tmp_path, inside, monkeypatch):
    monkeypatch.setattr("meanfield.sweep.run.LocalWorkers", Inside)
    text = f"""
problem = "{folder / "small.toml"}"
axes = [{{ key = "prior.name", values = ["none", "l1"] }}, {{ key = "model.learning_rate", values = [0.1, 0.2] }}]
methods = {{ fixed_points = ["similarity"], density = ["final"] }}
"""
    (tmp_path / "sweep.toml").write_text(text)
    out, figure = tmp_path / "out", tmp_path / "f.png"
    for _ in range(2):
        result = inside("run_sweep", tmp_path / "sweep.toml", "-o", out, "--figure", figure)
        assert result.returncode == 1
        assert result.stdout.startswith("4 points: 2 complete, 2 failed\n")
        assert result.stdout.endswith(f"wrote {out / 'sweep.nc'} and {figure}\n")  # drawn though it has two methods
        assert result.stderr.endswith("sweep.toml: failed: 2 of 4 points; the variable 'status' says why\n")
    assert meanfield.load(out / "sweep.nc").attrs["status"].startswith("failed: 2 of 4 points")


@pytest.mark.parametrize(
    ("old", "new", "arguments", "message"),
    [
        ("fixed_points", "fixd_points", (), "unknown method 'fixd_points'; did you mean 'fixed_points'?"),
        ('["similarity"]', '["states"]', ("--figure", "f.png"), "--figure draws the similarity of stationary states"),
        ("[0.1]", "[-0.1]", (), "axes[0].values[0]: model.learning_rate = -0.1: should be greater than 0"),
        ("[0.1]", "[0.1]", ("--scheduler", "tcp://127.0.0.1:1"), "no Dask scheduler answers at tcp://127.0.0.1:1"),
        ("[0.1]", "[0.1]", ("--workers", 0), "0 is below 1; give the number of workers"),
    ],
)
def test_bad_sweeps_end_with_code_2_and_no_folder(folder, tmp_path, inside, monkeypatch, old, new, arguments, message):
    monkeypatch.setattr("meanfield.sweep.workers.CONNECT_SECONDS", 0.2)
    text = f'problem = "{folder / "small.toml"}"\naxes = [{{ key = "model.learning_rate", values = [0.1] }}]\n'
    text += 'methods.fixed_points = ["similarity"]\n'
    assert old in text
    (tmp_path / "sweep.toml").write_text(text.replace(old, new))
    result = inside("run_sweep", tmp_path / "sweep.toml", "-o", tmp_path / "out", *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.toml"]
