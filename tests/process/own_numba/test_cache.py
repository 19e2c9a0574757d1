"""Compiled code on disk: what is kept, and what damage does."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from meanfield.numerics.piecewise import panel_of, tabulate
from meanfield.process import own_numba

OWN = """
from typing import NamedTuple

class {name}(NamedTuple):
    edges: object
"""

CALL = """
import sys
import numpy as np
from meanfield.numerics.piecewise import panel_of, tabulate
if sys.argv[1:]:
    import own
    argument = getattr(own, sys.argv[1])(np.array([0.0, 0.5, 1.0]))
else:
    argument = tabulate(lambda x: np.zeros((1, x.size)), (), 0.5, "nothing")
print(panel_of(argument, 0.2) == 0, sum(panel_of.stats.cache_hits.values()))
"""


@pytest.fixture
def called(tmp_path):
    """What a process prints that calls a function of the library, with a type of the module `own` or without."""

    def call(*name):
        result = subprocess.run(
            [sys.executable, "-c", CALL, *name],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path) if name else ""},
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout.split()

    return call


def test_code_for_types_of_others_is_not_kept(called, tmp_path):
    """They may change at any time, and other processes could not read what names them."""
    (tmp_path / "own.py").write_text(OWN.format(name="Mine"))
    assert called() == ["False", "0"]
    for _ in range(2):
        assert called("Mine") == ["True", "0"]
    assert called() == ["False", "1"]
    assert len(list(tmp_path.rglob("*panel_of*.nbc"))) == 1


DAMAGES = {
    "emptied": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "one bit": lambda data: data[:-10] + bytes([data[-10] ^ 1]) + data[-9:],
    "garbage": lambda data: bytes(range(256)) * 20,
    "grown": lambda data: data + b"more",
}


def test_damaged_files_count_as_missing(monkeypatch, tmp_path):
    """And are written anew."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    table = tabulate(lambda x: np.zeros((1, x.size)), (), 0.5, "nothing")

    def hits():
        """How often the code is found for a call by a dispatcher that has none."""
        function = own_numba.njit(panel_of.py_func, cache=True)
        assert function(table, 0.2) == panel_of.py_func(table, 0.2)
        return sum(function.stats.cache_hits.values())

    assert [hits(), hits()] == [0, 1]
    (path,) = tmp_path.rglob("*panel_of*.nbc")
    for damage in DAMAGES.values():
        path.write_bytes(damage(path.read_bytes()))
        assert [hits(), hits()] == [0, 1]
    path.unlink()
    path.mkdir()  # not even a file
    assert hits() == 0
