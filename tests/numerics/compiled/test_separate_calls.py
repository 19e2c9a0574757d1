"""Calls of compiled functions that are not linked into their callers."""

import sys

import numba as numba_of_others
import numpy as np
import pytest

from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba
from meanfield.process.own_numba import cache
from meanfield.process.own_numba.versions import is_numba_known
from tests.forks import forks, printed_by

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


OURS = ("callee", "middle", "first", "second")
"""Modules that the digest of sources knows; those of others are not ours."""


@pytest.fixture
def printed(monkeypatch, tmp_path):
    """What new processes print that import modules of these texts, one after the other.

    In none of them anything of the modules is compiled or loaded before.
    """

    def run(texts, *modules):
        monkeypatch.setattr(numba_of_others.config, "CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setattr(cache, "versioned_sources", lambda: OURS)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        monkeypatch.syspath_prepend(str(tmp_path))
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)
        return [printed_by(f"import {module}") for module in modules]

    return run


@known
@forks
def test_callers_from_the_disk_call_functions_of_their_process(printed):
    """Else LLVM ends the process when it takes a new caller from the disk, whose symbols nobody has loaded."""
    texts = {"callee": CALLEE, "middle": MIDDLE}
    texts |= {name: CALLER.format(name=name, factor=factor) for name, factor in (("first", 1.0), ("second", 10.0))}
    shown = printed(texts, "middle", "first", "first", "second", "second")
    assert shown == ["", "4.0 0\n", "4.0 1\n", "40.0 0\n", "40.0 1\n"]


@known
@forks
def test_callers_of_others_hold_what_they_call(printed):
    """numba forgets what has to be loaded for a function that it takes from the disk and links into another one."""
    theirs = CALLER.replace("from meanfield.process import own_numba as numba", "import numba")
    around = theirs.replace("from middle import twice", "from near import near as twice")
    texts = {"callee": CALLEE, "middle": MIDDLE, "near": theirs.format(name="near", factor=1.0).partition("print")[0]}
    texts |= {"far": around.format(name="far", factor=10.0), "begin": "from near import near\nprint(near(1.0))"}
    shown = printed(texts, "begin", "far", "far")
    assert shown == ["4.0\n", "40.0 0\n", "40.0 1\n"]
