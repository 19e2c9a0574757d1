"""Nothing gets into a part of a problem unchecked: not by copies, assignments or conversions of another type."""

import copy
import pickle
from typing import Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

import meanfield
from meanfield import InputError
from meanfield.families.alpha_contrastive.settings import Model
from meanfield.ingredients.part import NamedValues, Part
from meanfield.problems.known_families import families, find_family
from meanfield.problems.problem_keys import number_keys, value_of
from tests.example_problems import make_problem

WITH_PRIOR = make_problem('prior = { name = "smooth_l1", strength = 1.5, parameters = { width = 0.5 } }')
REMEDY = r"meanfield\.with_value\(problem, 'prior\.strength', 2\.0\)"


@pytest.mark.parametrize("part", [WITH_PRIOR, WITH_PRIOR.particles, WITH_PRIOR.prior, WITH_PRIOR.features[0].hidden])
@pytest.mark.parametrize(
    "change",
    [
        lambda part: part.model_copy(update={"dimesion": 50}),
        lambda part: part.copy(update={"dimesion": 50}),
        lambda part: part.__replace__(dimesion=50),
        lambda part: setattr(part, "dimesion", 50),
        lambda part: setattr(part, next(iter(type(part).model_fields)), 50),
    ],
)
def test_a_part_does_not_change_and_says_what_to_call(part, change):
    before = part.model_dump()
    with pytest.raises(InputError, match=REMEDY):
        change(part)
    assert part.model_dump() == before
    assert meanfield.with_value(WITH_PRIOR, "prior.strength", 2.0).prior.strength == 2.0  # the remedy


def test_what_nobody_checks_is_not_made():
    with pytest.raises(InputError, match=r"a Problem that nobody checks; call meanfield\.load_problem"):
        meanfield.Problem.model_construct(title="x")
    with pytest.raises(InputError, match="a ParticleSettings that nobody checks; give its keys by name"):
        type(WITH_PRIOR.particles).model_construct(dimension=2)


def test_copies_as_they_are_stay():
    for twin in (WITH_PRIOR.model_copy(), WITH_PRIOR.model_copy(deep=True), copy.deepcopy(WITH_PRIOR)):
        assert twin == WITH_PRIOR
        assert type(twin.prior.parameters) is NamedValues
    numbers = WITH_PRIOR.prior.parameters
    assert pickle.loads(pickle.dumps(numbers)) == numbers


@pytest.mark.parametrize(
    "change",
    [
        lambda numbers: numbers.__setitem__("width", -1.0),
        lambda numbers: numbers.update(width=-1.0),
        lambda numbers: numbers.setdefault("other", 1.0),
        lambda numbers: numbers.__ior__({"width": -1.0}),
        lambda numbers: numbers.pop("width"),
        lambda numbers: numbers.clear(),
    ],
)
def test_parameters_do_not_change_either(change):
    with pytest.raises(InputError, match=REMEDY):
        change(WITH_PRIOR.prior.parameters)
    assert WITH_PRIOR.prior.parameters == {"width": 0.5}


@pytest.mark.parametrize("given", [True, "1"])
def test_numbers_of_all_examples_are_numbers(given):
    """Neither booleans, which are numbers to Python, nor digits in quotes; 1.0 is a whole number as 1e4 is."""
    for family in families():
        for part in family.parts:
            problem = meanfield.load_problem(part.example_path)
            keys = number_keys(problem)
            assert len(keys) >= 5
            for key in keys:
                with pytest.raises(InputError, match=r"should be|should have"):
                    meanfield.with_value(problem, key, given)
                value = value_of(problem, key)
                assert value_of(meanfield.with_value(problem, key, float(value)), key) == value


def _parts(kind=Part):
    for found in kind.__subclasses__():
        yield found
        yield from _parts(found)


def _literals(annotation):
    if get_origin(annotation) is Literal:
        yield get_args(annotation)
    for inner in get_args(annotation):
        yield from _literals(inner)


def test_true_is_not_one_of_some_whole_numbers():
    for family in families():  # imports their classes
        assert issubclass(family.problem_class, BaseModel)
    seen = []
    for kind in _parts():
        for key, field in kind.model_fields.items():
            if any(type(word) is int for words in _literals(field.annotation) for word in words):
                with pytest.raises(ValueError, match="= True: should be"):
                    kind(**{key: True})
                seen.append(key)
    assert {"layers", "order"} <= set(seen)
    assert Model(layers=1.0, activation="relu").layers == 1
    problem = meanfield.load_problem(find_family("alpha_contrastive").example_path)
    with pytest.raises(InputError, match=r"^model\.layers = True: should be 1 or 2"):
        meanfield.with_value(problem, "model.layers", True)
