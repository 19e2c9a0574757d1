"""What problems hold, by its keys."""

import numpy as np
import pytest

from meanfield.errors import InputError
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.tables import Augmentation
from meanfield.ingredients.laws.hidden import Gaussian as HiddenGaussian
from meanfield.problems.file import format_problem, parse_problem
from meanfield.problems.problem_keys import held_by, number_keys, value_of, with_value, with_values
from tests.example_problems import make_problem

EVERY_TABLE = make_problem(
    'prior = { name = "smooth_l1", strength = 1.5, parameters = { width = 0.5 } }',
    "augmentation = { variance = [0.3, 0.4], correlation = 0.1 }",
)


def test_every_number_can_be_read_and_set():
    keys = number_keys(EVERY_TABLE)
    assert {"prior.strength", "features[0].hidden.second_moment", "augmentation.variance[1]"} <= set(keys)
    for key in keys:
        assert with_value(EVERY_TABLE, key, value_of(EVERY_TABLE, key)) == EVERY_TABLE


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("prior.strength", 2.5),
        ("prior.parameters.width", 0.25),
        ("features[0].hidden.second_moment", 0.9),
        ("augmentation.variance[1]", 0.7),
        ("augmentation.correlation", -1.0),
        ("model.batch_size", 7.0),
    ],
)
def test_only_that_number_changes(key, value):
    changed = with_value(EVERY_TABLE, key, value)
    assert isinstance(changed, Problem)
    assert value_of(changed, key) == value
    different = [k for k in number_keys(EVERY_TABLE) if value_of(changed, k) != value_of(EVERY_TABLE, k)]
    assert different == [key]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model.activation", "relu"),
        ("model.centering", "population"),
        ("particles.method", "projected"),
        ("features[0].initial_overlap", "random"),
        ("features[0].hidden", HiddenGaussian(second_moment=1.3)),
        ("particles.snapshots", (0.0, 20.0)),
        ("particles.escape_overlap", 0.5),
        ("density.scheme", "eulerian"),
        ("density.feature_nodes", 21),
    ],
)
def test_words_tables_lists_and_what_was_left_out_can_be_set(key, value):
    plain = value.model_dump() if isinstance(value, HiddenGaussian) else value
    changed = with_value(EVERY_TABLE, key, plain)
    assert held_by(EVERY_TABLE, key) != held_by(changed, key) == value
    assert with_value(changed, key, held_by(EVERY_TABLE, key)) == EVERY_TABLE


@pytest.mark.parametrize("size", [np.int64(3), np.uint8(3)])
def test_whole_numbers_of_numpy_are_whole_numbers(size):
    assert with_value(EVERY_TABLE, "model.batch_size", size).model.batch_size == 3


def test_all_values_are_in_place_before_any_is_checked():
    both = {"features[0].hidden.second_moment": 3.0, "features[0].hidden.fourth_moment": 20.0}
    changed = with_values(EVERY_TABLE, both)
    assert {key: value_of(changed, key) for key in both} == both
    assert with_values(EVERY_TABLE, dict(reversed(both.items()))) == changed
    bare = make_problem()
    noise = {"augmentation.variance": [0.1, 0.2], "augmentation.correlation": 1}
    assert with_values(bare, noise).augmentation == Augmentation(variance=(0.1, 0.2), correlation=1.0)
    slope = {"model.activation": "leaky_relu", "model.activation_parameters.slope": 0.25}
    assert with_values(bare, slope).model.named == ("leaky_relu", (("slope", 0.25),))
    assert with_values(bare, {}) is bare


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("prior.strenth", r"no key 'prior.strenth'; did you mean 'prior.strength'\?"),
        ("prior", "'prior' holds a table, not one number"),
        ("prior.name", "'prior.name' holds 'smooth_l1', not one number"),
        ("augmentation.variance", "holds a list, not one number"),
        ("hidden", "'hidden' holds nothing in this problem, not one number"),
        ("hidden.law", "'hidden.law' holds nothing in this problem, not one number"),
    ],
)
def test_what_is_no_number_is_not_read_as_one(key, message):
    with pytest.raises(InputError, match=message):
        value_of(EVERY_TABLE, key)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("prior.strenth", 1.0, r"no key 'prior.strenth'; did you mean 'prior.strength'\?"),
        ("prior.nme", "l1", r"no key 'prior.nme'; did you mean 'prior.name'\?"),
        ("features[1].hidden.second_moment", 1.0, r"did you mean 'features\[0\].hidden.second_moment'\?"),
        ("features.0.hidden.second_moment", 1.0, r"did you mean 'features\[0\].hidden.second_moment'\?"),
        ("prior.strength.", 1.0, "is no key; write it like prior.strength or"),
        ("", 1.0, "is no key; write it like prior.strength or"),
        ("hidden.lw", "gaussian", "hidden.law: is missing; add it"),
        ("prior.parameters.wdth", 0.5, r"'smooth_l1' has no parameter 'wdth'; did you mean 'width'\?"),
        ("prior.strength", -1.0, "prior.strength = -1.0: should be greater than or equal to 0"),
        ("features[0].hidden.second_moment", 3.0, "fourth_moment = 6.05 is below second_moment"),
        ("prior.parameters.width", -1.0, "width = -1.0 must be a positive number"),
    ],
)
def test_bad_keys_and_values_are_refused(key, value, message):
    with pytest.raises(InputError, match=message):
        with_value(EVERY_TABLE, key, value)


def test_functions_of_a_user_stay(tmp_path):
    (tmp_path / "keyed_prior.py").write_text("def pull(w):\n    return w * w * w\n")
    data = make_problem().model_dump() | {"prior": {"name": "keyed_prior:pull"}}
    problem = Problem.model_validate(data, context={"folder": tmp_path})
    changed = with_value(problem, "prior.strength", 3.0)
    assert changed.prior.functions is problem.prior.functions
    assert with_value(problem, "model.learning_rate", 0.5).prior.functions is problem.prior.functions


def test_functions_are_found_beside_the_file_that_names_them_in_a_value(tmp_path):
    (tmp_path / "valued_prior.py").write_text("def pull(w):\n    return w * w * w\n")
    with pytest.raises(InputError, match="'valued_prior' cannot be imported"):
        with_values(EVERY_TABLE, {"prior.name": "valued_prior:pull", "prior.parameters": {}}).prior.functions  # noqa: B018
    changed = with_values(EVERY_TABLE, {"prior.name": "valued_prior:pull", "prior.parameters": {}}, tmp_path)
    assert changed.prior.functions.forces(np.array([2.0])) == 8.0
    assert with_value(changed, "prior.name", "l2").prior.functions.linear


@pytest.mark.parametrize(
    "values",
    [
        {"prior.strength": 3.0},
        {"prior.parameters": {"power": 2.0}},
        {"model.learning_rate": 0.5},
        {"prior.name": "marking_prior:push"},
        {"prior": {"name": "marking_prior:pull"}},
    ],
)
def test_copies_of_a_problem_from_a_result_import_nothing(values, tmp_path, monkeypatch):
    (tmp_path / "marking_prior.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    text = format_problem(make_problem('prior = { name = "l1" }')).replace('"l1"', '"marking_prior:pull"')
    read = parse_problem(text, trusted=False)
    copy = with_values(with_values(read, values), {"time.stop": 3.0})
    assert not copy.trusted
    with pytest.raises(InputError, match="no module is imported because a result names it"):
        copy.prior.functions  # noqa: B018
    with pytest.raises(InputError, match="SystemExit: imported"):  # the same in a problem file is imported
        with_values(parse_problem(text), values).prior.functions  # noqa: B018
