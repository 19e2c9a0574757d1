import json

import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.contrastive.results import METHODS, VARIABLES
from meanfield.problems.file import parse_problem
from meanfield.results import schema
from meanfield.results.provenance import provenance
from tests.example_problems import SMALL


@pytest.fixture
def dataset():
    return meanfield.solve_order_parameters(parse_problem(SMALL))


def test_result_describes_itself(dataset):
    schema.validate(dataset)
    assert schema.problem_of(dataset) == parse_problem(SMALL)
    assert dataset.attrs["status"] == "complete"
    record = json.loads(dataset.attrs["provenance"])
    assert {"created", "command", "versions", "commit", "wall_time_seconds"} <= set(record)
    for variable in dataset.variables.values():
        assert variable.attrs["long_name"]
        assert variable.attrs["units"] == "1"


def test_every_method_requires_only_known_variables():
    for names in METHODS.values():
        assert set(names) <= set(VARIABLES)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda d: d.attrs.pop("method"), "not a result of meanfield"),
        (lambda d: d.attrs.update(method="guess"), "not a result of meanfield"),
        (lambda d: d.attrs.pop("schema_version"), "not a result of meanfield"),
        (lambda d: d.attrs.update(schema_version=99), "newer than 3, the newest that this version of meanfield reads"),
        (lambda d: d.__delitem__("g"), "variable 'g' is missing"),
        (lambda d: d.__setitem__("q", d["q"].T), r"variable 'q' has dims \('feature', 'time'\)"),
    ],
)
def test_spoilt_results_are_refused(dataset, spoil, message):
    spoil(dataset)
    with pytest.raises(InputError, match=message):
        schema.validate(dataset)


def test_provenance_holds_what_decides_the_numbers():
    record = json.loads(provenance(1.5, seed=3))
    assert record["seed"] == 3
    assert record["wall_time_seconds"] == 1.5
    assert record["versions"]["numpy"] != "not installed"
