"""Versions of numba whose inner parts are changed, and others, on which numba compiles in its own way."""

import os
import subprocess
import sys

import numba
import pytest

from meanfield.process.numba_versions import HIGHEST, LOWEST, is_numba_known
from tests import ROOT


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("0.{}.0", True),
        ("0.{}.1rc2", True),
        ("0+unknown", False),
        ("0.5", False),
        ("0.100.0", False),
        ("1.{}.0", False),
    ],
)
def test_versions_between_the_lowest_and_the_highest_are_known(monkeypatch, version, known):
    for _, minor in (LOWEST, HIGHEST):
        monkeypatch.setattr(numba, "__version__", version.format(minor))
        assert is_numba_known() is known


def test_the_neighbours_of_known_versions_are_not_known(monkeypatch):
    for major, minor in ((LOWEST[0], LOWEST[1] - 1), (HIGHEST[0], HIGHEST[1] + 1)):
        monkeypatch.setattr(numba, "__version__", f"{major}.{minor}.0")
        assert not is_numba_known()


ON_ANOTHER_VERSION = """
import sys
from meanfield.process import cache_folder, numba_versions

numba_versions.HIGHEST = numba_versions.LOWEST = (0, 0)

import numpy as np
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from tests.numerics.compiled.test_separate_calls import reciprocals, through_call

pair = np.arange(3.0), 1.0
assert through_call(pair) == reciprocals(pair, 2).sum()
try:
    through_call((pair[0], 0.0))
except ValueError as error:
    print(error)
assert JITCPUCodegen._library_class is JITCodeLibrary
assert "meanfield.process.entry_points" not in sys.modules
"""


def test_numba_compiles_in_its_own_way_on_other_versions():
    """Nothing of it is changed, and not even looked for."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", ON_ANOTHER_VERSION]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (0, "no offset\n"), done.stderr
