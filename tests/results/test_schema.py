import json

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.contrastive import FAMILY
from meanfield.problems.file import parse_problem
from meanfield.results import schema
from meanfield.results.provenance import provenance
from meanfield.results.result import Result
from tests.example_problems import SMALL


@pytest.fixture
def dataset():
    return meanfield.solve_order_parameters(parse_problem(SMALL))


def test_result_describes_itself(dataset):
    schema.validate(Result.of(dataset))
    assert Result.of(dataset).problem == parse_problem(SMALL)
    assert dataset.attrs["status"] == "complete"
    record = json.loads(dataset.attrs["provenance"])
    assert {"created", "command", "versions", "commit", "wall_time_seconds"} <= set(record)
    for variable in dataset.variables.values():
        assert variable.attrs["long_name"]
        assert "units" not in variable.attrs  # plots would show it as [1]


def test_every_kind_holds_only_declared_variables():
    for kind in FAMILY.all_kinds.values():
        assert set(kind.names) <= set(FAMILY.all_variables)


def test_results_carry_numbers_of_their_problem(dataset):
    assert dataset.attrs["family"] == "contrastive"
    assert dataset.attrs["dimension"] == Result.of(dataset).label("dimension") == 64
    assert (dataset.attrs["learning_rate"], dataset.attrs["batch_size"]) == (0.05, 4)
    del dataset.attrs["dimension"]  # as in files of schema version 3
    assert Result.of(dataset).label("dimension") == 64


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda d: d.attrs.pop("method"), "not a result of meanfield"),
        (lambda d: d.attrs.update(method="guess"), "not a result of meanfield"),
        (lambda d: d.attrs.pop("schema_version"), "not a result of meanfield"),
        (lambda d: d.attrs.update(schema_version=99), "newer than 7, the newest that this version of meanfield reads"),
        (lambda d: d.__delitem__("g"), "variable 'g' is missing"),
        (lambda d: d.__setitem__("q", d["q"].T), r"variable 'q' has dims \('feature', 'time'\)"),
    ],
)
def test_spoilt_results_are_refused(dataset, spoil, message):
    spoil(dataset)
    with pytest.raises(InputError, match=message):
        schema.validate(Result.of(dataset))


def test_provenance_holds_what_decides_the_numbers():
    record = json.loads(provenance(1.5, seed=3))
    assert record["seed"] == 3
    assert record["wall_time_seconds"] == 1.5
    assert record["versions"]["numpy"] != "not installed"


def test_an_older_result_without_a_problem_is_saved_as_it_is_and_refused_when_loaded(dataset, tmp_path):
    del dataset.attrs["problem"]
    dataset.attrs["schema_version"] = 2
    meanfield.save(dataset, tmp_path / "x.nc")
    with pytest.raises(InputError, match="attribute 'problem' is missing"):
        meanfield.load(tmp_path / "x.nc")
    with pytest.raises(InputError, match="attribute 'problem' is missing"):
        _ = Result.of(dataset).problem


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"Lambda": [0.0, 0.0]}, "'Lambda' has 2 entries along 'time', and 'time' has 3; give as many"),
        (
            {"Lambda": np.zeros((3, 1, 1))},
            r"'Lambda' is an array of float64, shape \(3, 1, 1\); give real numbers along",
        ),
        ({"Lambda": 0.5}, r"'Lambda' is an array of float64, shape \(\); give real numbers along \('time',\)"),
        ({"Lambda": np.full(3, 1j)}, "'Lambda' is an array of complex128"),
        ({"Lambda": ["low"] * 3}, "'Lambda' is an array of <U3"),
        ({"time": None}, "has the dim 'time', and the array 'time' is missing"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_by_name(dataset, change, words):
    names = ("time", "q", "g", "Lambda")
    arrays = {name: dataset[name].values for name in names} | change
    given = {name: array for name, array in arrays.items() if array is not None}
    with pytest.raises(ValueError, match=words):
        schema.build_dataset("order_parameters", parse_problem(SMALL), given, "complete", "{}")


def test_lists_of_numbers_are_arrays(dataset):
    arrays = {name: dataset[name].values.tolist() for name in ("time", "q", "g", "Lambda")}
    built = schema.build_dataset("order_parameters", parse_problem(SMALL), arrays, "complete", "{}")
    assert built["q"].identical(dataset["q"])
