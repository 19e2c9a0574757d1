"""Files that earlier versions wrote still load and can be compared; `tests/compatibility/NAME-VERSION.nc`."""

from pathlib import Path

import pytest

import meanfield
from meanfield.comparison import format_comparison
from meanfield.families.contrastive import FAMILY
from meanfield.plotting import plot_result
from meanfield.problems.family import VERDICTS
from meanfield.results import schema

NEWER = {"sweep"}
"""Methods that were added after version 2."""

SOLVED = ("density", "order_parameters", "particles")

FILES = sorted((Path(__file__).parent / "compatibility").glob("*.nc"))


def version_of(path):
    return int(path.stem.rpartition("-")[2])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_old_files_load_and_are_new_once_they_are_saved(path, tmp_path):
    dataset = meanfield.load(path)
    assert dataset.attrs["method"] == path.stem.rpartition("-")[0]
    assert dataset.attrs["schema_version"] == version_of(path)
    meanfield.save(dataset, tmp_path / "new.nc")
    new = meanfield.load(tmp_path / "new.nc")
    assert new.attrs["schema_version"] == schema.SCHEMA_VERSION
    assert new.attrs == {"family": "contrastive"} | schema.problem_of(dataset).labels | dataset.attrs | {
        "schema_version": schema.SCHEMA_VERSION
    }
    assert new.drop_attrs(deep=False).identical(dataset.drop_attrs(deep=False))


def test_there_is_a_file_of_every_method():
    assert {meanfield.load(path).attrs["method"] for path in FILES if version_of(path) == 2} == set(
        FAMILY.all_kinds
    ) - NEWER


@pytest.mark.parametrize("version", [1, 2])
def test_old_files_can_be_compared_with_each_other(version):
    runs = {path.stem: meanfield.load(path) for path in FILES if version_of(path) == version}
    runs = {name: run for name, run in runs.items() if name.partition("-")[0] in SOLVED}
    report = meanfield.compare(*runs.values(), labels=list(runs))
    assert report.sizes["pair"] == 3
    assert report["W1"].notnull().any()
    for run in runs.values():
        assert run["q"].values[..., 0, 0] == pytest.approx(0.5, abs=2e-4)  # the start; 40 cells put it 1e-4 off


@pytest.mark.parametrize("path", [path for path in FILES if path.stem.startswith("comparison")], ids=lambda p: p.stem)
def test_old_comparisons_without_verdicts_are_told_and_drawn(path):
    report = meanfield.load(path)
    text = format_comparison(report)
    assert "max |difference of q|" in text
    assert not any(word in text for word in VERDICTS)
    labels = [axes.get_ylabel() for axes in plot_result(report).axes]
    assert any("mean of samples" in label for label in labels)
