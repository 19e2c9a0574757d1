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

CALLER = """
import numba
from callee import plus
from meanfield.numerics.compiled.separate_calls import call

@numba.njit(cache=True)
def twice(x):
    return 2.0 * call(plus, x)

@numba.njit(cache=True)
def whole(x):
    return twice(x)  # this one is linked in

print(whole(1.0), sum(whole.stats.cache_hits.values()))
"""


def test_a_caller_from_the_cache_calls_the_function_as_it_is_now(tmp_path):
    (tmp_path / "caller.py").write_text(CALLER)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }

    def run(added):
        (tmp_path / "callee.py").write_text(CALLEE.format(added))  # of another length each time, so of another stamp
        command = [sys.executable, "-B", "-c", "import caller"]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)

    assert run("1.0").stdout == "4.0 0\n"
    assert run("10.0").stdout == "22.0 1\n"
    refused = run("100j")
    assert refused.returncode == 1
    assert "callee.plus returns complex128, but compiled code on disk expects float64" in refused.stderr
