"""Studies by the names of their modules, and what they decide."""

import importlib

import pytest


@pytest.fixture(scope="session")
def study():
    """A function from the name of a module to its study."""
    return lambda name: importlib.import_module(f"validation.contrastive.figures.{name}").STUDY


@pytest.fixture(scope="session")
def verdicts(study):
    """A function from the name of a module to what its study decides, by the texts of the statements."""

    def decided(name, with_sgd=False):
        found = study(name)
        statements = found.judge(found.numbers() if with_sgd else found.theory())
        return {statement.text: statement.holds for statement in statements}

    return decided
