"""Compiled code on disk: what is kept, and what damage does."""

from threading import Timer

import numba
import numpy as np
import pytest

from meanfield.numerics.piecewise import panel_of, tabulate
from meanfield.process import own_numba
from meanfield.process.locking import FolderLock
from tests.forks import forks, printed_by

OWN = """
from typing import NamedTuple

class {name}(NamedTuple):
    edges: object
"""

CALL = """
import numpy as np
from meanfield.numerics.piecewise import panel_of, tabulate
from meanfield.process import own_numba
if name:
    import own
    argument = getattr(own, name)(np.array([0.0, 0.5, 1.0]))
else:
    argument = tabulate(lambda x: np.zeros((1, x.size)), (), 0.5, "nothing")
function = own_numba.njit(panel_of.py_func, cache=True)  # which this process has not compiled yet
print(function(argument, 0.2) == 0, sum(function.stats.cache_hits.values()))
"""


@pytest.fixture
def called(tmp_path, monkeypatch):
    """What a new process prints that calls a function of the library, with a type of the module `own` or without."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    return lambda name="": printed_by(CALL, name=name).split()


@forks
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


@pytest.fixture
def hits(monkeypatch, tmp_path):
    """How often the code is found for a call by a dispatcher that has none."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    table = tabulate(lambda x: np.zeros((1, x.size)), (), 0.5, "nothing")

    def count():
        function = own_numba.njit(panel_of.py_func, cache=True)
        assert function(table, 0.2) == panel_of.py_func(table, 0.2)
        return sum(function.stats.cache_hits.values())

    return count


def test_damaged_files_count_as_missing(hits, tmp_path):
    """And are written anew."""
    assert [hits(), hits()] == [0, 1]
    (path,) = tmp_path.rglob("*panel_of*.nbc")
    for damage in DAMAGES.values():
        path.write_bytes(damage(path.read_bytes()))
        assert [hits(), hits()] == [0, 1]
    path.unlink()
    path.mkdir()  # not even a file
    assert hits() == 0


@forks
def test_what_another_process_compiles_is_waited_for(hits, tmp_path, monkeypatch):
    """But not for ever, as that process may have been stopped."""
    assert hits() == 0
    (path,) = tmp_path.rglob("*panel_of*.nbc")
    data = path.read_bytes()
    path.unlink()
    lock = FolderLock(path.with_suffix(".lock"))
    lock.take()
    with monkeypatch.context() as patched:
        patched.setattr("meanfield.process.own_numba.cache.PATIENCE", 0.1)
        assert hits() == 0
    path.unlink()

    def finish():
        path.write_bytes(data)
        lock.let_go()

    Timer(0.2, finish).start()
    assert hits() == 1
    assert not list(tmp_path.rglob("*.lock"))
