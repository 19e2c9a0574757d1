"""Calls of compiled functions that are not linked into their callers."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba
from meanfield.process.own_numba.versions import is_numba_known
from tests import ROOT

known = pytest.mark.skipif(not is_numba_known(), reason=f"numba {numba.__version__} links what is called")


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


@known
def test_the_caller_holds_no_copy_of_the_function():
    through_call((X, 1.0))
    (code,) = through_call.inspect_llvm().values()
    lines = [line for line in code.splitlines() if "reciprocals" in line]
    assert any(line.startswith("declare") for line in lines)
    assert not any(line.startswith("define") for line in lines)


@numba.njit
def half(x):
    return 0.5 * x


@known
def test_the_function_has_wrappers_once_python_calls_it():
    assert numba.njit(lambda x: call(half, x))(3.0) == 1.5
    for defined in (False, True):
        (result,) = half.overloads.values()
        engine = result.library.codegen._engine
        assert engine.is_symbol_defined(result.fndesc.llvm_cpython_wrapper_name) is defined
        assert half(3.0) == 1.5


CALLEE = """
from meanfield.process import own_numba as numba

@numba.njit(cache=True)
def plus(x):
    return x + 1.0
"""

MIDDLE = """
from meanfield.process import own_numba as numba
from callee import plus
from meanfield.numerics.compiled.separate_calls import call

@numba.njit(cache=True)
def twice(x):
    return 2.0 * call(plus, x)
"""

CALLER = """
from meanfield.process import own_numba as numba
from middle import twice

@numba.njit(cache=True)
def {name}(x):
    return {factor} * twice(x)  # this one is linked in

print({name}(1.0), sum({name}.stats.cache_hits.values()))
"""


PROCESSES = """
import json, os, sys
from pathlib import Path
from meanfield.process import own_numba
from meanfield.process.own_numba import cache
import meanfield.numerics.compiled.separate_calls

cache.versioned_sources = lambda: ["callee", "middle", "first", "second"]  # those of others are not ours
own_numba.njit(lambda x: x)(1.0)  # what numba does once in every process takes most of the time
for caller in json.loads(sys.argv[1]):
    if not os.fork():
        __import__(caller)
        sys.exit()
    print("exit code", os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
"""Process that forks another one for each module, in which nothing of them is compiled or loaded."""


@pytest.fixture
def printed(tmp_path):
    """What processes print and how they end that import modules of these texts, one after the other."""

    def run(texts, *modules):
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
            "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        }
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)
        command = [sys.executable, "-B", "-c", PROCESSES, json.dumps(modules)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
        return done.stdout.split("exit code 0\n")[:-1], done.stderr

    return run


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that are forked")


@known
@forks
def test_callers_from_the_disk_call_functions_of_their_process(printed):
    """Else LLVM ends the process when it takes a new caller from the disk, whose symbols nobody has loaded."""
    texts = {"callee": CALLEE, "middle": MIDDLE}
    texts |= {name: CALLER.format(name=name, factor=factor) for name, factor in (("first", 1.0), ("second", 10.0))}
    shown, errors = printed(texts, "middle", "first", "first", "second", "second")
    assert shown == ["", "4.0 0\n", "4.0 1\n", "40.0 0\n", "40.0 1\n"], errors


@known
@forks
def test_callers_of_others_hold_what_they_call(printed):
    """numba forgets what has to be loaded for a function that it takes from the disk and links into another one."""
    theirs = CALLER.replace("from meanfield.process import own_numba as numba", "import numba")
    around = theirs.replace("from middle import twice", "from near import near as twice")
    texts = {"callee": CALLEE, "middle": MIDDLE, "near": theirs.format(name="near", factor=1.0).partition("print")[0]}
    texts |= {"far": around.format(name="far", factor=10.0), "begin": "from near import near\nprint(near(1.0))"}
    shown, errors = printed(texts, "begin", "far", "far")
    assert shown == ["4.0\n", "40.0 0\n", "40.0 1\n"], errors
