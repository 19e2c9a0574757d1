"""Results of the small problem, or of the one whose text a module gives in its place."""

import pytest

import meanfield
from meanfield.problems.file import parse_problem
from tests.example_problems import SMALL


@pytest.fixture(scope="module")
def text():
    return SMALL


@pytest.fixture(scope="module")
def density(text):
    return meanfield.solve_density(parse_problem(text))


@pytest.fixture(scope="module")
def ode(text):
    return meanfield.solve_order_parameters(parse_problem(text))


@pytest.fixture(scope="module")
def runs(text):
    return meanfield.simulate_sgd(parse_problem(text))
