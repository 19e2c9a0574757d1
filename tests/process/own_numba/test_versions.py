"""Versions of numba whose inner parts are changed, and others, on which numba compiles in its own way."""

import os
import subprocess
import sys

import numba
import pytest

from meanfield.process.own_numba.versions import HIGHEST, LOWEST, PLAIN_NUMBA, is_numba_known
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


SOLVES = """
import sys
import meanfield
from tests.example_problems import make_problem
from tests.numerics.compiled.test_separate_calls import reciprocals, through_call

import numpy as np

pair = np.arange(3.0), 1.0
assert through_call(pair) == reciprocals(pair, 2).sum()
try:
    through_call((pair[0], 0.0))
except ValueError as error:
    print(error)
problem = make_problem("time.stop = 0.1", "particles.dimension = 20", "particles.replicas = 2")
print(meanfield.solve_order_parameters(problem).q.values[-1])
print(meanfield.simulate_sgd(problem).q.values[:, -1])
print("meanfield.process.own_numba.target" in sys.modules)
"""


@pytest.mark.slow
def test_numba_compiles_in_its_own_way_on_other_versions(tmp_path):
    """Nothing of our target is even looked for, results are the same, and the code is kept on disk; it is said once."""
    command = [sys.executable, "-c", SOLVES]
    printed = {}
    for plain in ("", "1"):
        environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            PLAIN_NUMBA: plain,
            "NUMBA_CACHE_DIR": str(tmp_path / plain),
        }
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        printed[plain] = done.stdout.splitlines()
        assert done.stderr.count("compiles in its own way") == bool(plain)
        assert any((tmp_path / plain).rglob("*.nbc"))
    assert [lines.pop() for lines in printed.values()] == ["True", "False"]
    assert printed[""] == printed["1"]
