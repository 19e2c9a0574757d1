"""Files that earlier versions wrote still load and can be compared; `tests/compatibility/KIND-VERSION.nc`."""

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield.comparison import format_comparison
from meanfield.families.contrastive import FAMILY
from meanfield.mckean_vlasov.cells import edges_of, nodes_of
from meanfield.plotting import plot_result
from meanfield.problems.known_families import find_family
from meanfield.problems.variable import VERDICTS
from meanfield.process.checksum import append_checksum
from meanfield.results import schema
from meanfield.results.result import Result
from meanfield.testing.methods import MOST_REPEATED

pytestmark = pytest.mark.usefixtures("plain_figures")

SINCE = {"sweep": 3, "limit_particles": 5, "joint_density": 6, "support_recovery": 7, "fit": 7}
"""Versions with which kinds came that were not there from the second one on."""

SOLVED = ("density", "order_parameters", "particles")

load = cache(meanfield.load)

FILES = sorted((Path(__file__).parent / "compatibility").glob("*.nc"))

ADDED = {"N", "tau", "w_bnds", "P_sum", "P_difference"}
"""Variables that versions 5 and 6 added."""

REPLACED = {"w_edge", "P_diagonal"}
"""Variables in whose place others came."""

WITHOUT_A_TABLE = {"portrait-4", "sweep-4"}
"""Results that are no table as a whole: a picture with cells and curves, and version 4 of many densities at once."""


def version_of(path):
    return int(path.stem.rpartition("-")[2])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_old_files_load_as_new_ones_with_the_same_numbers(path, tmp_path):
    dataset, before = load(path), xr.load_dataset(path)
    assert dataset.attrs["method"] == path.stem.partition("-")[0]
    assert dataset.attrs["schema_version"] == schema.SCHEMA_VERSION
    assert before.attrs["schema_version"] == version_of(path)
    meanfield.save(dataset, tmp_path / "new.nc")
    assert meanfield.load(tmp_path / "new.nc").identical(dataset)
    if dataset.attrs["method"] == "sweep":
        assert before.drop_attrs().identical(dataset.drop_attrs())
        return
    kept, counted = set(before.variables) - REPLACED, set(dataset.dims) - set(before.variables)
    assert set(dataset.variables) - ADDED - counted == kept - ADDED
    for name in set(before.variables) - REPLACED - {"u"}:
        np.testing.assert_array_equal(dataset[name].values, before[name].values)
    if "w_edge" in before:
        np.testing.assert_array_equal(edges_of(dataset), before["w_edge"].values)
        np.testing.assert_array_equal(nodes_of(dataset)[0], before["u"].values)
    if "P_diagonal" in before:
        sum_and_difference = np.stack([dataset["P_sum"], dataset["P_difference"]], axis=-1)
        np.testing.assert_array_equal(sum_and_difference, before["P_diagonal"].values)


def test_new_attributes_of_old_files_are_those_of_their_problem():
    for path in FILES:
        dataset, before = load(path), xr.load_dataset(path)
        problem = Result.of(before).problem
        expected = {"family": "contrastive"} | problem.labels | before.attrs
        expected["schema_version"] = schema.SCHEMA_VERSION
        if dataset.attrs["method"] in schema.WITHOUT_CONVENTIONS:
            del expected["Conventions"]
        assert dataset.attrs == expected
        assert not any("units" in variable.attrs for variable in dataset.variables.values())


@pytest.mark.parametrize("path", [path for path in FILES if version_of(path) == 4], ids=lambda path: path.stem)
def test_results_of_every_kind_make_tables(path):
    """As `meanfield.testing` has it for methods; here for kinds that none makes, and without rows to spare."""
    dataset = load(path)
    rows, largest = math.prod(dataset.sizes.values()), max(v.size for v in dataset.variables.values())
    if path.stem not in WITHOUT_A_TABLE:
        assert rows <= MOST_REPEATED * largest
    for table in meanfield.tables(dataset).values():
        assert len(table) <= largest


@pytest.mark.parametrize("version", [2, 4])
def test_there_is_a_file_of_every_kind(version):
    found = {path.stem.partition("-")[0] for path in FILES if version_of(path) == version}
    assert found == {kind for kind in FAMILY.all_kinds if SINCE.get(kind, 2) <= version}


@pytest.mark.parametrize("version", [1, 2])
def test_old_files_can_be_compared_with_each_other(version):
    runs = {path.stem: load(path) for path in FILES if version_of(path) == version}
    runs = {name: run for name, run in runs.items() if name.partition("-")[0] in SOLVED}
    report = meanfield.compare(*runs.values(), labels=list(runs))
    assert report.sizes["pair"] == 3
    assert report["W1"].notnull().any()
    for run in runs.values():
        assert run["q"].values[..., 0, 0] == pytest.approx(0.5, abs=2e-4)  # the start; 40 cells put it 1e-4 off


@pytest.mark.parametrize("path", [path for path in FILES if path.stem.startswith("comparison")], ids=lambda p: p.stem)
def test_old_comparisons_without_verdicts_are_told_and_drawn(path):
    report = load(path)
    text = format_comparison(report)
    assert "max |difference of q|" in text
    assert ("verdict" in report) == any(word in text for word in VERDICTS)
    labels = [axes.get_ylabel() for axes in plot_result(report).axes]
    assert any("mean of samples" in label for label in labels) or "verdict" in report


def test_eigenvalues_of_old_files_get_a_dim_of_their_own(tmp_path):
    problem = meanfield.load_problem(find_family("hidden_manifold").example_path)
    now = meanfield.solve_order_parameters(problem)
    before = now.swap_dims(rho="node").reset_coords("rho").assign_coords(node=np.arange(now.sizes["rho"]))
    before.assign_attrs(schema_version=6).to_netcdf(tmp_path / "old.nc")
    append_checksum(tmp_path / "old.nc")
    meanfield.save(now, tmp_path / "now.nc")
    assert meanfield.load(tmp_path / "old.nc").identical(meanfield.load(tmp_path / "now.nc"))
