"""Calls of compiled functions that are not linked into their callers."""

import json
import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from meanfield.numerics.compiled.separate_calls import call
from meanfield.process.numba_versions import is_numba_known
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


ADDED = """
ADDED = {}
"""

CALLEE = """
import numba
from added import ADDED

@numba.njit(cache=True)
def plus(x):
    return x + ADDED
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
from callee import plus
from middle import twice

@numba.njit(cache=True)
def whole(x):
    return {} * twice(x)  # this one is linked in

print(whole(1.0), sum(whole.stats.cache_hits.values()), plus(1.0))
"""


PROCESSES = """
import json, os, sys
from pathlib import Path
import numba
import meanfield.numerics.compiled.separate_calls

numba.njit(lambda x: x)(1.0)  # what numba does once in every process takes most of the time
for caller, added in json.loads(sys.argv[1]):
    for path, text in ((Path("caller.py"), caller), (Path("added.py"), added)):
        if path.read_text() != text:  # numba before 0.68 takes a file that is written anew for another one
            path.write_text(text)
    if not os.fork():
        import caller
        sys.exit()
    print("exit code", os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
"""Process that forks another one for each pair of texts, in which nothing of them is compiled or loaded."""


@known
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that are forked")
def test_callers_from_the_cache_call_functions_as_they_are_now(tmp_path):
    """Else LLVM ends the process when it takes a new caller from the cache, whose symbols nobody has loaded."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }
    # The caller multiplies, the callee adds; numbers of another length each time, so that files have another stamp. The
    # caller does not import the file with the number that the callee adds, and stays as it is when that changes.
    numbers = [("1.0", "1.0"), ("10.0", "1.0"), ("10.0", "1.0"), ("10.0", "10.0"), ("10.0", "100.0j")]
    texts = [(CALLER.format(factor), ADDED.format(added)) for factor, added in numbers]
    for name, text in {"caller": texts[0][0], "middle": MIDDLE, "callee": CALLEE, "added": texts[0][1]}.items():
        (tmp_path / f"{name}.py").write_text(text)
    command = [sys.executable, "-B", "-c", PROCESSES, json.dumps(texts)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    shown = [f"{result}\nexit code 0\n" for result in ("4.0 0 2.0", "40.0 0 2.0", "40.0 1 2.0", "220.0 1 11.0")]
    assert done.stdout == "".join([*shown, "exit code 1\n"]), done.stderr
    assert "callee.plus returns complex128, but compiled code on disk expects float64" in done.stderr
