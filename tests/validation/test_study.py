"""What studies answer as scripts."""

import runpy
import subprocess
import sys
from types import ModuleType

import pytest

import validation
from validation.study import Study, run_study


def run_anyway():
    raise AssertionError("the study runs")


@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("--frob", 2)])
def test_arguments_start_no_study(argument, code):
    module = ModuleType("validation.made_up", "What is claimed.")
    module.STUDY, module.__file__ = Study(run_anyway, None, None), validation.__file__
    with pytest.raises(SystemExit) as end:
        run_study(module, [argument])
    assert end.value.code == code


@pytest.mark.parametrize("name", ["contrastive.demo", "nowhere.figure_1"])
def test_what_is_no_study_is_refused(name, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["validation", name])
    with pytest.raises(SystemExit) as end:
        runpy.run_module("validation", run_name="__main__")
    assert end.value.code == 2
    assert f"validation.{name} is no study and no benchmark; give one" in capsys.readouterr().err


def test_a_study_that_starts_as_a_module_is_refused():
    command = [sys.executable, "-m", "validation.contrastive.accuracy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("give: python -m validation contrastive.accuracy\n")
