"""Studies are scripts: they are imported by name from their folder."""

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "validation" / "figures"


@pytest.fixture(scope="session")
def study():
    """A function from the name of a script to its study."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield lambda name: importlib.import_module(name).STUDY
