"""Studies by the names of their modules."""

import importlib

import pytest


@pytest.fixture(scope="session")
def study():
    """A function from the name of a module to its study."""
    return lambda name: importlib.import_module(f"validation.contrastive.figures.{name}").STUDY
