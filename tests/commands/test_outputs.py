"""Files that commands write: names are refused before anything is computed, and figures cost no result."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import meanfield
from meanfield.commands.outputs import labelled
from meanfield.errors import InputError
from meanfield.problems.file import parse_problem
from tests.example_problems import SMALL


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["density", "-o", "x.txt"], "x.txt: a result is a netCDF file; give it the ending .nc"),
        (["sgd", "-o", "noext"], "noext: a result is a netCDF file; give it the ending .nc"),
        (["order-parameters", "-o", "x.NC"], "x.NC: a result is a netCDF file; give it the ending .nc"),
        (["density", "-o", "x.nc", "--joint", "joint"], "joint: a result is a netCDF file; give it the ending .nc"),
        (["stationary", "-o", "x"], "x: a result is a netCDF file; give it the ending .nc"),
        (["dynamics", "-o", "x.nc", "--figure", "f.xyz"], "f.xyz: 'xyz' is no figure format; use one of"),
        (["compare", "-o", "x.nc", "--animate", "f.png"], "f.png: 'png' is no animation format; use one of"),
        (["report", "-o", "x.nc"], "x.nc: a report is a page of HTML; give it the ending .html or .htm"),
    ],
)
def test_wrong_endings_are_refused_before_anything_is_read(call, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(words[0], "problem.toml", *words[1:])
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {message}")
    assert not list(tmp_path.iterdir())


def test_a_figure_that_cannot_be_drawn_takes_no_result_with_it(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = meanfield.solve(parse_problem(SMALL), "order_parameters")
    for name in ("a.nc", "b.nc"):
        meanfield.save(run, name)
    monkeypatch.setattr("meanfield.plotting.plot_comparison", lambda *_: 1 // 0)
    code, out, err = call("compare", "a.nc", "b.nc", "-o", "report.nc", "--figure", "f.png")
    assert code == 1
    assert meanfield.load("report.nc").attrs["method"] == "comparison"
    assert out.endswith("\nwrote report.nc\n")
    assert err.startswith("failed: f.png: cannot be drawn (ZeroDivisionError: ")
    assert err.endswith("; the result is in report.nc\n")


def test_the_backend_of_a_notebook_does_not_reach_a_command():
    """One that is not installed ended the import of matplotlib, and with it the command."""
    code = "from meanfield import cli; cli.run(lambda: print(__import__('matplotlib').get_backend()) or 0)"
    environment = os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.lower()) == (0, "agg\n")


def test_a_protected_result_is_not_replaced(call, tmp_path):
    """Its folder may be writable, which is all that renaming a file over it takes."""
    (tmp_path / "out.nc").write_text("a result")
    (tmp_path / "out.nc").chmod(0o444)
    code, _, err = call("density", "not read", "-o", tmp_path / "out.nc")
    assert code == 2
    assert "out.nc: is write-protected; choose another name for the output, or allow it by chmod +w" in err


@pytest.mark.parametrize(
    ("paths", "labels"),
    [
        (["density.nc", "runs/sgd.nc"], ["density", "sgd"]),
        (["runs/a/out.nc", "runs/b/out.nc"], ["a/out", "b/out"]),
        (["a/x/out.nc", "b/x/out.nc", "b/y/out.nc"], ["a/x/out", "b/x/out", "y/out"]),
        (["out.nc", "out.nc4"], ["out.nc", "out.nc4"]),
        (["run.1.nc", "run.2.nc"], ["run.1", "run.2"]),
    ],
)
def test_labels_are_the_shortest_ends_that_tell_files_apart(paths, labels):
    found = labelled([Path(path) for path in paths])
    assert list(found) == labels
    assert [str(path) for path in found.values()] == paths


def test_a_file_is_given_once():
    with pytest.raises(InputError, match=r"a/\.\./out\.nc is named twice"):
        labelled([Path("out.nc"), Path("a/../out.nc")])
