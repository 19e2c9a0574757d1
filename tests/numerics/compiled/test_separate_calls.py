"""Calls of compiled functions that are not linked into their callers."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from meanfield.numerics.compiled.separate_calls import call
from tests import ROOT


@numba.njit
def reciprocals(pair, scale):
    """Function with arrays as arguments and as the result, and with an error."""
    x, offset = pair
    if offset == 0.0:
        raise ValueError("no offset")
    return scale / (x + offset)


@numba.njit
def through_call(pair):
    return call(reciprocals, pair, 2).sum()


X = np.arange(3.0)


def test_a_separate_call_gives_what_the_function_gives():
    assert through_call((X, 1.0)) == reciprocals((X, 1.0), 2).sum()


def test_a_separate_call_raises_what_the_function_raises():
    with pytest.raises(ValueError, match="no offset"):
        through_call((X, 0.0))


def test_the_caller_holds_no_copy_of_the_function():
    through_call((X, 1.0))
    (code,) = through_call.inspect_llvm().values()
    lines = [line for line in code.splitlines() if "reciprocals" in line]
    assert any(line.startswith("declare") for line in lines)
    assert not any(line.startswith("define") for line in lines)


CALLEE = """
import numba

@numba.njit(cache=True)
def plus(x):
    return x + {}
"""

MIDDLE = """
import numba
from callee import plus
from meanfield.numerics.compiled.separate_calls import call

@numba.njit(cache=True)
def twice(x):
    return 2.0 * call(plus, x)
"""

CALLER = """
import numba
from middle import twice

@numba.njit(cache=True)
def whole(x):
    return {} * twice(x)  # this one is linked in

print(whole(1.0), sum(whole.stats.cache_hits.values()))
"""


@pytest.fixture
def run(tmp_path):
    """Run the modules in a new process, of which the caller multiplies and the callee adds a number."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }
    (tmp_path / "middle.py").write_text(MIDDLE)

    def run(factor, added):  # numbers of another length each time, so that files have another stamp
        (tmp_path / "caller.py").write_text(CALLER.format(factor))
        (tmp_path / "callee.py").write_text(CALLEE.format(added))
        command = [sys.executable, "-B", "-c", "import caller"]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)

    return run


def test_a_caller_from_the_cache_calls_the_function_as_it_is_now(run):
    assert run("1.0", "1.0").stdout == "4.0 0\n"
    assert run("1.0", "10.0").stdout == "22.0 1\n"
    refused = run("1.0", "100j")
    assert refused.returncode == 1
    assert "callee.plus returns complex128, but compiled code on disk expects float64" in refused.stderr


def test_a_new_caller_of_a_function_from_the_cache_finds_what_that_calls(run):
    """Else LLVM ends the process when it takes the new caller from the cache, whose symbols nobody has loaded."""
    assert run("1.0", "1.0").stdout == "4.0 0\n"
    assert run("10.0", "1.0").stdout == "40.0 0\n"
    assert run("10.0", "1.0").stdout == "40.0 1\n"
