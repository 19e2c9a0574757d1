"""What is suggested for a word that is not known."""

import pytest

import meanfield
from meanfield import InputError
from meanfield.commands.dispatch import COMMANDS
from meanfield.ingredients.activations import ACTIVATIONS
from meanfield.ingredients.nearest import GROUPS_OF_SYNONYMS, nearest
from meanfield.ingredients.penalties import PENALTIES
from meanfield.ingredients.priors import PRIORS
from meanfield.problems.known_families import families
from tests.example_problems import make_problem


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("identity", ACTIVATIONS, "linear"),
        ("swish", ACTIVATIONS, "silu"),
        ("logistic", ACTIVATIONS, "sigmoid"),
        ("square", ACTIVATIONS, "quadratic"),
        ("ReLU", ACTIVATIONS, "relu"),
        ("tnah", ACTIVATIONS, "tanh"),
        ("Lasso", PRIORS, "l1"),
        ("laplace", PRIORS, "l1"),
        ("ridge", PRIORS, "l2"),
        ("weight-decay", PRIORS, "l2"),
        ("huber", PRIORS, "smooth_l1"),
        ("flat", PRIORS, "none"),
        ("l1", PENALTIES, "absolute"),
        ("quadratic", PENALTIES, "square"),
        ("normal", ["laplace", "gaussian"], "gaussian"),
        ("laplacian", ["laplace", "gaussian"], "laplace"),
        ("particles", COMMANDS, "sgd"),
        ("ode", COMMANDS, "order-parameters"),
        ("explain", COMMANDS, "validate"),
    ],
)
def test_names_of_other_packages_and_slips_are_understood(word, known, meant):
    assert nearest(word, known) == f"did you mean '{meant}'?"


def test_words_that_nobody_uses_have_the_list():
    assert nearest("xyzzy", ["b", "a"]) == "known: a, b"


def test_every_group_has_a_name_that_something_here_has():
    ours = {*ACTIVATIONS, *PRIORS, *PENALTIES, *COMMANDS, "gaussian", "gaussian_mixture", "laplace", "rademacher"}
    ours |= {"student_t", "empirical", "points", "step", "sign", "infonce", "learning_rate"}
    ours |= {method for family in families() for method in family.methods}
    assert [group[0] for group in GROUPS_OF_SYNONYMS if group[0] not in ours] == []


@pytest.mark.parametrize("word", ["sgd", "simulate_sgd", "SGD"])
def test_sgd_is_the_method_particles_of_every_family(word):
    for family in families():
        with pytest.raises(InputError, match=f"unknown method '{word}' of .*did you mean 'particles'"):
            family.method(word)
        assert family.method("particles").title


def test_a_problem_names_laws_and_activations_as_others_do():
    problem = make_problem()
    for key, word, ours in [
        ("model.activation", "identity", "linear"),
        ("prior.name", "lasso", "l1"),
        ("features[0].coordinate.law", "normal", "gaussian"),
        ("features[0].hidden.law", "laplacian", "laplace"),
    ]:
        with pytest.raises(InputError, match=rf"did you mean '{ours}'\?"):
            meanfield.with_value(problem, key, word)
    with pytest.raises(InputError, match=r"did you mean 'model\.learning_rate'\?"):
        meanfield.with_value(problem, "model.lr", 0.1)
