"""The face of the package: one verb for the problems of every family, namespaces, and aliases of names that moved."""

import warnings

import pytest

import meanfield
from meanfield.families.latent_tree.images.problem import ImageProblem
from meanfield.methods import VERBS
from meanfield.problems.family import resolve
from meanfield.problems.file import plain_data
from meanfield.problems.known_families import OWN_FAMILIES, families, family_of
from meanfield.process.public_names import homes_in_stub

MOVED = {name: home for name, home in homes_in_stub(meanfield.__file__).items() if name not in meanfield.__all__}
PARTS = [pytest.param(part, id=part.problem) for family in families() for part in family.parts]


@pytest.fixture(params=PARTS)
def problem(request):
    """The example of each family, and of each of its parts."""
    return meanfield.load_problem(request.param.example_path)


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.__name__)
def test_a_verb_solves_problems_of_every_family_that_has_its_method(problem, verb, monkeypatch):
    asked = []
    monkeypatch.setattr("meanfield.problems.family.Method.__call__", lambda *given, **options: asked.append(options))
    monkeypatch.setattr("meanfield.problems.family.Method.check", "")
    method = next(name for name, known in VERBS.items() if known is verb)
    if method in family_of(problem).methods:
        getattr(meanfield, verb.__name__)(problem)
        assert asked == [{}]
    else:
        with pytest.raises(meanfield.InputError, match=r"particles"):  # which every family has
            getattr(meanfield, verb.__name__)(problem)


def test_a_verb_says_which_methods_a_family_has():
    problem = meanfield.load_problem("data/problems/nine_points.toml")
    has = "critical_points, density, optimal_filters, particles, population"
    with pytest.raises(meanfield.InputError, match=rf"^find_stationary_states: the family 'alpha.*; .* one of {has}$"):
        meanfield.find_stationary_states(problem)


def test_options_go_to_the_method(tmp_path):
    problem = meanfield.load_problem("data/problems/nine_points.toml")
    with pytest.raises(meanfield.InputError, match="backend: no option of method 'density'"):
        meanfield.solve_density(problem, backend="fipy")
    with pytest.raises(meanfield.InputError, match="workers = 0: give the number of threads"):
        meanfield.simulate_sgd(problem, workers=0)


def test_every_problem_is_a_problem_of_the_package(problem):
    assert isinstance(problem, meanfield.Problem)
    assert type(meanfield.with_value(problem, "title", "another")) is type(problem)


def test_a_problem_is_made_of_the_family_that_is_named(problem):
    data = plain_data(problem)
    assert meanfield.Problem(**data) == meanfield.Problem.model_validate(data) == type(problem)(**data) == problem
    rest = {key: value for key, value in data.items() if key != "family"}
    assert type(problem)(**rest) == problem


def test_a_class_refuses_the_name_of_another_family():
    with pytest.raises(meanfield.InputError, match=r"family = 'latent_tree': .*contrastive\.problem\.Problem is"):
        meanfield.contrastive.Problem(family="latent_tree")
    with pytest.raises(meanfield.InputError, match="unknown family 'latent_trees'; did you mean 'latent_tree'"):
        meanfield.Problem(family="latent_trees")


def test_a_function_of_one_family_refuses_problems_of_others(problem):
    for name, family in zip(OWN_FAMILIES, families(), strict=True):
        for method in family.methods.values():
            if problem.__module__.startswith(f"meanfield.families.{name}."):
                continue
            with pytest.raises(meanfield.InputError, match=r"this function takes problems of meanfield\.families\."):
                resolve(method.solve)(problem)


def test_dir_has_the_names_that_everybody_needs():
    named = dir(meanfield)
    assert len(named) <= 16 + len(meanfield.NAMESPACES)  # one screen, with a namespace for each family
    assert {"Problem", "load_problem", "solve", *meanfield.NAMESPACES} <= set(named) <= set(meanfield.__all__)
    assert not MOVED.keys() & set(named)


@pytest.mark.parametrize("name", meanfield.NAMESPACES)
def test_a_namespace_has_what_belongs_to_one_family(name):
    namespace = getattr(meanfield, name)
    assert dir(namespace) == namespace.__all__
    assert namespace.Problem is resolve(OWN_FAMILIES[name]).problem_class
    for public in namespace.__all__:
        assert getattr(namespace, public).__name__ == public
    assert not {verb.__name__ for verb in VERBS.values()} & set(namespace.__all__)
    with pytest.raises(AttributeError, match=f"module 'meanfield.{name}' has no attribute 'nonsense'"):
        _ = namespace.nonsense


def test_images_are_part_of_latent_trees():
    assert meanfield.latent_tree.ImageProblem is ImageProblem


@pytest.mark.parametrize(("name", "home"), MOVED.items(), ids=MOVED)
def test_names_that_moved_warn_once_with_the_new_one(name, home, monkeypatch):
    monkeypatch.delitem(vars(meanfield), name, raising=False)
    with pytest.warns(DeprecationWarning, match=rf"^meanfield\.{name} is deprecated; use {home}\.{name}$") as said:
        found = getattr(meanfield, name)
    assert said[0].filename == __file__
    assert found is getattr(getattr(meanfield, home.removeprefix("meanfield.")), name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert getattr(meanfield, name) is found
