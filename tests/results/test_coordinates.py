"""Results in plain xarray: what people select by is a coordinate, in memory, after a file, and of several features."""

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield.errors import InputError
from meanfield.mckean_vlasov.cells import cell_arrays, edges_of, nodes_of
from meanfield.plotting import plot_result
from meanfield.results.result import Result
from meanfield.results.schema import build_dataset
from tests import ROOT

RUNS = ROOT / "tests" / "compatibility"

ADDED_BY_THE_SCHEMA = {"N", "tau", "feature", "bounds"}
"""Coordinates that no solver gives."""


@pytest.fixture(scope="module")
def density():
    return meanfield.load(RUNS / "density-4.nc")


@pytest.fixture
def plain(density, tmp_path):
    """The density as plain xarray opens its file."""
    meanfield.save(density, tmp_path / "density.nc")
    with xr.open_dataset(tmp_path / "density.nc") as file:
        yield file


def test_nodes_in_one_feature_are_an_index(plain):
    at = plain["P"].sel(u=0.0, method="nearest")
    assert at.dims == ("time", "w")
    assert abs(at["u"].item()) < 1e-9  # the middle one of symmetric nodes
    assert at["u_weight"].item() == plain["u_weight"].max()
    assert set(plain.coords) == {"time", "feature", "u", "u_weight", "w", "bounds", "w_bnds", "tau"}


def test_nodes_in_several_features_are_points(tmp_path):
    meanfield.save(meanfield.load(RUNS / "density-two_features-4.nc"), tmp_path / "density.nc")
    with xr.open_dataset(tmp_path / "density.nc") as plain:
        assert plain["P"].dims == ("time", "node", "w")
        assert plain["u"].dims == ("node", "feature")
        assert {"u", "u_weight"} <= set(plain["P"].coords) | set(plain.coords)
        assert nodes_of(plain)[0].shape == (9, 2)


def test_cells_have_their_edges_as_the_conventions_have_them(plain):
    assert plain["w"].attrs["bounds"] == "w_bnds"
    edges = edges_of(plain)
    assert len(edges) == plain.sizes["w"] + 1
    np.testing.assert_array_equal(cell_arrays(edges)["w"], plain["w"])
    np.testing.assert_array_equal(cell_arrays(edges)["w_bnds"], plain["w_bnds"])
    total = (plain["P_w"] * plain["w_bnds"].diff("bounds").squeeze()).sum("w")
    np.testing.assert_allclose(total, 1.0, rtol=0, atol=1e-12)  # rounding


def test_labels_of_plots_have_no_unit(plain):
    (line,) = plain["q"].isel(feature=0).plot()
    assert line.axes.get_xlabel().replace("\n", " ") == "time t = k/N after k steps"
    assert line.axes.get_ylabel().replace("\n", " ") == "overlap q = E[u w] of weights and features"
    assert line.axes.get_title() == "tau = 0.05, feature = 0"
    line.axes.figure.clear()


def test_runs_go_side_by_side_along_their_dimension():
    runs = [meanfield.load(RUNS / f"particles-{version}.nc") for version in (4, 3)]
    together = xr.concat([run[["q"]] for run in runs], "N")
    assert together["N"].values.tolist() == [16, 64]
    np.testing.assert_array_equal(together["q"].sel(N=16), runs[0]["q"])
    assert together["tau"].item() == 0.05


def test_nodes_in_another_order_are_sorted(density):
    arrays = {str(name): density[name].values for name in {*density.variables} - ADDED_BY_THE_SCHEMA}
    arrays |= {"u": density["u"].values[::-1, None], "u_weight": arrays["u_weight"][::-1], "P": arrays["P"][:, ::-1]}
    again = build_dataset("density", Result.of(density).problem, arrays, "complete", density.attrs["provenance"])
    assert again.attrs.pop("fingerprints")  # which the old file has not
    again.attrs["problem"] = density.attrs["problem"]  # written before some keys were there
    assert again.identical(density)


def test_a_table_of_a_density_has_two_rows_for_each_of_its_numbers(plain):
    assert len(plain.to_dataframe()) == 2 * plain["P"].size


def test_tables_have_each_number_once():
    sgd = meanfield.load(RUNS / "particles-4.nc")
    found = meanfield.tables(sgd)
    assert {dims: len(table) for dims, table in found.items()} == {
        "replica, time, feature": 9,
        "replica, time": 9,
        "replica, snapshot_time, coordinate": 144,
        "replica, coordinate, feature": 48,
    }
    weight = found["replica, snapshot_time, coordinate"].loc[(2, 1.0, 7), "weights"]
    assert weight == sgd["weights"].sel(replica=2, snapshot_time=1.0, coordinate=7)
    with pytest.raises(InputError, match=r"call meanfield\.load\('a.nc'\)"):
        meanfield.tables("a.nc")


def test_what_no_version_wrote_is_refused(tmp_path):
    broken = xr.load_dataset(RUNS / "density-4.nc").isel(edge=slice(1, None))
    meanfield.save(broken, tmp_path / "edge.nc")
    with pytest.raises(InputError, match="variable 'w_bnds' is missing"):
        meanfield.load(tmp_path / "edge.nc")
    other = xr.load_dataset(RUNS / "density-4.nc").assign(mine=("u_", [1.0])).rename_dims(u_="bounds")
    with pytest.raises(InputError, match="is no result of schema version 4: conflicting sizes for dimension 'bounds'"):
        meanfield.save(other, tmp_path / "bounds.nc")


def test_an_older_dataset_is_refused_with_the_call_that_converts_it():
    older = xr.load_dataset(RUNS / "density-4.nc")
    with pytest.raises(InputError, match=r"density 1: schema version 4 is older than 7; meanfield\.load\(path\)"):
        meanfield.compare(older, older)
    with pytest.raises(InputError, match=r"schema version 4 is older than 7; meanfield\.load\(path\) brings"):
        plot_result(older)
