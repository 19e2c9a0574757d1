"""A few of the files of `make fuzz`, with the same properties: refused with a reason, or right."""

import shutil
from random import Random

import pytest
import xarray as xr
from hypothesis import HealthCheck, Phase, given, settings

import meanfield
from tests import ROOT
from validation.fuzzing.judge_problems import SCRIPTS, judge, judge_script
from validation.fuzzing.judge_results import RUNS, damaged, judge_damaged, judge_made_up, made_up
from validation.fuzzing.problem_texts import as_text, mangled_file, spoilt_tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    top = tmp_path_factory.mktemp("fuzzing")
    shutil.copytree(ROOT / "data" / "reference", top / "reference")  # named by an example
    (top / "problems").mkdir()
    return top / "problems"


def test_spoilt_tables(folder):
    @settings(
        max_examples=6,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(spoilt_tables(most=4))
    def any_table(data):
        judge(as_text(data), folder)

    any_table()


def test_mangled_files(folder):
    outcomes = [judge(mangled_file(seed)[1], folder) for seed in range(12)]
    assert outcomes.count("refused") < 12


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_refuse_what_is_refused(script, folder):
    for seed in range(100):
        if judge(mangled_file(seed)[1], folder) == "refused":
            judge_script(script, folder)
            return


def test_damaged_results(tmp_path):
    for number, path in enumerate(RUNS):
        meanfield.save(xr.load_dataset(path), tmp_path / "whole.nc")
        whole = (tmp_path / "whole.nc").read_bytes()
        random = Random(number)
        for _ in range(2):
            judge_damaged(damaged(whole, random)[1], whole, tmp_path / "run.nc")


@pytest.mark.filterwarnings("ignore::RuntimeWarning:numpy")
def test_made_up_results(tmp_path):
    outcomes = [judge_made_up(made_up(Random(seed))[2], tmp_path / "run.nc") for seed in range(5)]
    assert {"refused", "read"} <= set(outcomes)
