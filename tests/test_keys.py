"""Numbers of problems by their keys."""

import pytest

from meanfield.errors import InputError
from meanfield.keys import number_keys, value_of, with_value
from meanfield.problem import Problem
from tests.problems import make_problem

FULL = make_problem(
    'prior = { name = "smooth_l1", strength = 1.5, parameters = { width = 0.5 } }',
    "augmentation = { variance = [0.3, 0.4], correlation = 0.1 }",
)


def test_every_number_can_be_read_and_set():
    keys = number_keys(FULL)
    assert {"prior.strength", "features[0].hidden.second_moment", "augmentation.variance[1]"} <= set(keys)
    for key in keys:
        assert with_value(FULL, key, value_of(FULL, key)) == FULL


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
    changed = with_value(FULL, key, value)
    assert isinstance(changed, Problem)
    assert value_of(changed, key) == value
    different = [k for k in number_keys(FULL) if value_of(changed, k) != value_of(FULL, k)]
    assert different == [key]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("prior.strenth", 1.0, r"no number 'prior.strenth'; did you mean 'prior.strength'\?"),
        ("features[1].hidden.second_moment", 1.0, r"did you mean 'features\[0\].hidden.second_moment'\?"),
        ("features.0.hidden.second_moment", 1.0, r"did you mean 'features\[0\].hidden.second_moment'\?"),
        ("prior.strength.", 1.0, "is no key; write it like prior.strength or"),
        ("prior", 1.0, "'prior' holds a table, not one number"),
        ("prior.name", 1.0, "'prior.name' holds 'smooth_l1', not one number"),
        ("augmentation.variance", 1.0, "holds a list, not one number"),
        ("hidden", 1.0, "'hidden' holds nothing in this problem, not one number"),
        ("prior.strength", -1.0, "prior.strength = -1.0: should be greater than or equal to 0"),
        ("prior.strength", float("nan"), "prior.strength = nan: should be a finite number"),
        ("model.batch_size", 1.5, "model.batch_size = 1.5: should be a valid integer"),
        ("features[0].hidden.second_moment", 3.0, "fourth_moment = 6.05 is below second_moment"),
        ("prior.parameters.width", -1.0, "width = -1.0 must be a positive number"),
    ],
)
def test_bad_keys_and_values_are_refused(key, value, message):
    with pytest.raises(InputError, match=message):
        with_value(FULL, key, value)


def test_functions_of_a_user_stay(tmp_path):
    (tmp_path / "keyed_prior.py").write_text("def pull(w):\n    return w * w * w\n")
    data = make_problem().model_dump() | {"prior": {"name": "keyed_prior:pull"}}
    problem = Problem.model_validate(data, context={"folder": tmp_path})
    changed = with_value(problem, "prior.strength", 3.0)
    assert changed.prior.functions is problem.prior.functions
    assert with_value(problem, "model.learning_rate", 0.5).prior.functions is problem.prior.functions
