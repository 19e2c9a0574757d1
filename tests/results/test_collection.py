"""Several results in one DataTree, in one file, and where single ones are taken."""

import netCDF4
import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield.plotting import plot_comparison
from meanfield.report import report
from meanfield.results import files
from tests.example_problems import make_problem

PROBLEM = make_problem("particles.method = 'chain'", "particles.replicas = 8", "time.outputs = 3", "time.stop = 2.0")


@pytest.fixture(scope="module")
def limit():
    return meanfield.solve_order_parameters(PROBLEM)


@pytest.fixture(scope="module")
def runs():
    return meanfield.simulate_sgd(PROBLEM)


@pytest.fixture(scope="module")
def tree(limit, runs):
    return meanfield.collect(limit, runs, labels=["limit", "SGD, 8 runs"])


@pytest.fixture
def path(tree, tmp_path):
    meanfield.save(tree, tmp_path / "all.nc")
    return tmp_path / "all.nc"


def test_nodes_are_the_results(tree, limit, runs):
    assert tree["limit"].to_dataset().identical(limit)
    assert list(meanfield.collect(limit, runs, limit).children) == [
        *("order_parameters 1", "particles", "order_parameters 3"),
    ]
    assert list(meanfield.collect(tree, runs).children) == ["limit", "SGD, 8 runs", "particles"]


def test_a_file_gives_back_each_with_its_provenance(path, tree, limit):
    assert meanfield.load_collection(path).identical(tree)
    one = meanfield.load(path / "limit", PROBLEM)
    assert one.identical(limit)
    assert one.attrs["provenance"] == limit.attrs["provenance"]
    with xr.open_datatree(path, engine="netcdf4") as plain:
        assert plain["limit"].attrs["problem"] == limit.attrs["problem"]
        assert plain["SGD, 8 runs"]["q"].dims == ("replica", "time", "feature")


def test_large_variables_are_written_in_pieces_into_their_group(tree, path, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "WRITTEN_IN_PIECES", 3)
    meanfield.save(tree, tmp_path / "pieces.nc")
    assert meanfield.load_collection(tmp_path / "pieces.nc").identical(tree)


def test_a_file_of_one_result_is_a_collection_of_one(limit, tmp_path):
    meanfield.save(limit, tmp_path / "one.nc")
    assert list(meanfield.load_collection(tmp_path / "one.nc").children) == ["order_parameters"]


def test_damage_anywhere_is_noticed(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    for use in (lambda: meanfield.load_collection(path), lambda: meanfield.load(path / "limit")):
        with pytest.raises(meanfield.InputError, match=r"all\.nc: is damaged"):
            use()


def test_one_that_is_impossible_is_named(path):
    with netCDF4.Dataset(path, "a") as file:
        file["limit"]["q"][1, 0] = 7.0
    with pytest.raises(meanfield.InputError, match=r"all\.nc/limit: variable 'q' has \|q\|\^2 = 49"):
        meanfield.load_collection(path)


def test_a_path_leads_to_one_of_them(path):
    with pytest.raises(
        meanfield.InputError, match=r"holds 2 results \(limit, SGD, 8 runs\); name one of them, .*/limit"
    ):
        meanfield.load(path)
    with pytest.raises(meanfield.InputError, match="holds no result of that name; did you mean 'limit'"):
        meanfield.load(path / "Limit")
    with pytest.raises(meanfield.InputError, match="no such file"):
        meanfield.load_collection(path.with_name("none.nc"))
    path.write_text("text")
    with pytest.raises(meanfield.InputError, match=r"all\.nc: cannot be read as netCDF"):
        meanfield.load_collection(path)


def test_it_is_compared_drawn_and_reported_as_it_is(tree, limit, runs):
    compared = meanfield.compare(tree)
    assert compared["pair"].values.tolist() == ["limit - SGD, 8 runs"]
    assert meanfield.compare(tree["limit"], runs)["pair"].values.tolist() == ["limit - particles"]
    np.testing.assert_array_equal(compared["p_value"], meanfield.compare(limit, runs)["p_value"])
    assert len(plot_comparison(tree, compared).axes) == len(plot_comparison({"a": limit, "b": runs}).axes)
    assert "AGREES" in report(tree)
    assert "overlap q = E[u w]" in report({"a": tree["limit"]})


@pytest.mark.parametrize(
    ("given", "labels", "words"),
    [
        ((), None, "0 results given"),
        (("a.nc",), None, r"call meanfield\.load\('a\.nc'\) first"),
        ((xr.Dataset(),), None, "not a result of meanfield"),
        ((xr.DataTree(),), None, "not a result of meanfield"),
        (("limit", "limit"), ["a", "a"], "'a' comes twice"),
        (("limit",), ["a", "b"], "2 labels for 1 results"),
        (("limit",), "ab", "give a list of texts"),
        (("limit",), ["a/b"], "label = 'a/b': give the node a name"),
        (("limit",), [""], "label = '': give the node a name"),
        (("limit",), ["a "], "label = 'a ': give the node a name"),
    ],
)
def test_what_is_no_collection(given, labels, words, limit):
    given = [limit if each == "limit" else each for each in given]
    with pytest.raises(meanfield.InputError, match=words):
        meanfield.collect(*given, labels=labels)


def test_nothing_of_a_tree_of_others_is_lost_in_silence(tree, limit, tmp_path):
    for other in (
        xr.DataTree.from_dict({"/": limit, "/a": limit}),
        xr.DataTree.from_dict({"/a": limit, "/a/b": limit}),
        xr.DataTree.from_dict({"/a": xr.Dataset()}),
    ):
        with pytest.raises(meanfield.InputError, match=r"meanfield\.collect's|not a result of meanfield"):
            meanfield.save(other, tmp_path / "other.nc")
    assert list(tmp_path.iterdir()) == []
