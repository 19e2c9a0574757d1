"""Studies are scripts: they are imported by name from their folder."""

import importlib

import pytest

from tests import ROOT

FOLDER = ROOT / "validation" / "figures"


@pytest.fixture(scope="session")
def study():
    """A function from the name of a script to its study."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield lambda name: importlib.import_module(name).STUDY


@pytest.fixture(scope="session")
def verdicts(study):
    """A function from the name of a script to what its study decides, by the texts of the statements."""

    def decided(name, with_sgd=False):
        found = study(name)
        statements = found.judge(found.numbers() if with_sgd else found.theory())
        return {statement.text: statement.holds for statement in statements}

    return decided
