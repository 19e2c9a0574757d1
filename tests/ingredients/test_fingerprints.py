"""Fingerprints of functions, values and files."""

import functools
import math
import os
import subprocess
import sys
import types
from dataclasses import dataclass

import numba
import numpy as np
import pytest
import xarray as xr

from meanfield import Activation
from meanfield.ingredients.fingerprints import fingerprint, fingerprint_of, fingerprint_of_file
from tests import ROOT

OTHER_HASH_SEED = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": str(ROOT)}
"""Environment of a process whose hashes have a seed that is not ours, which Python draws at random."""

SOURCE = """
import functools, math, numba
import numpy as np
import xarray as xr
from meanfield import Activation, Prior

SCALE = 2.0
WORDS = {"three": 3.0, "one": 1.0}
SET = frozenset(["b", "a", "c"])

class Base:
    power = 2.0
    def raised(self, x):
        return x ** self.power

class Callable_(Base):
    def __init__(self, width=1.0):
        self.width = width
    def __call__(self, x):
        return self.width * self.raised(x)

@numba.njit(fastmath=True)
def compiled(x):
    return SCALE * x

def helper(x):
    return math.tanh(x) + WORDS["one"]

def smooth(x, shift=0.5, *, factor=1.0):
    return factor * helper(x) + compiled(x) + shift + sum(x for _ in range(3) if "a" in SET)

def circle(n):
    return circle(n - 1) if n else smooth(0.0)

def around(width):
    def inner(x):
        return width * x
    return inner

def late(x):
    return later(x)

partial = functools.partial(smooth, shift=2.0)
activation = Activation(smooth, compiled, kinks=(1.0,))
objects = [smooth, compiled, circle, around(2.0), late, partial, activation, Prior(helper), Callable_(), Callable_,
           Callable_().raised, np.arange(3.0), {1, 2}, {"b": (1, 2.5), "a": None}, xr.Dataset({"x": ("t", [1.0, 2.0])}),
           np.float32(2.0), math.erf, np.tanh, functools.lru_cache(helper), b"bytes", -0.0, 1j, np.linalg.norm]
"""


def built(source=SOURCE):
    """Module from a source, which stands in no file."""
    module = types.ModuleType("own_fingerprints")
    exec(source, vars(module))
    return module


def test_the_order_of_a_set_does_not_matter():
    """0 and 8 have the same place in a table of eight: the first to come is the first of the set."""
    one, two = {0, 8}, {8, 0}
    assert list(one) != list(two)
    assert fingerprint(one) == fingerprint(two)


@pytest.mark.slow  # the order of a set, which alone depends on the process, is varied by the test above
def test_every_process_finds_the_same():
    """Whatever the seed of its hashes, which decides the order of a set: of 20 words no two seeds have the same."""
    source = SOURCE.replace("{1, 2}", "set('abcdefghijklmnopqrst')")
    code = "import sys; from tests.ingredients.test_fingerprints import found_in; print(*found_in(sys.stdin.read()))"
    elsewhere = subprocess.run(
        [sys.executable, "-c", code], input=source, env=OTHER_HASH_SEED, capture_output=True, check=True, text=True
    )
    words = found_in(source)
    assert elsewhere.stdout.split() == words
    assert len(set(words)) == len(words) == len(built().objects)


def found_in(source):
    """Fingerprints of the objects of a source."""
    return list(map(fingerprint, built(source).objects))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def helper", "# a comment\n\ndef helper"),
        ("def helper(x):", "def helper(x):\n    'A docstring.'\n    # and a comment"),
        ("    return SCALE * x", "    return (\n        SCALE\n        * x\n    )"),
        ("SCALE = 2.0", "OTHER = 7.0\nSCALE = 2.0"),
        ("(x, shift=0.5", "(x: float, shift: float=0.5"),
    ],
    ids=["comment", "docstring", "lines", "what nobody names", "annotations"],
)
def test_what_changes_no_number(before, after):
    assert before in SOURCE
    assert fingerprint(built(SOURCE.replace(before, after)).smooth) == fingerprint(built().smooth)


CHANGES = {
    "instruction": ("factor * helper(x)", "factor / helper(x)"),
    "constant": ("range(3)", "range(4)"),
    "global": ("SCALE = 2.0", "SCALE = 2.5"),
    "sign of zero": ("SCALE = 2.0", "SCALE = -0.0"),
    "kind of number": ("SCALE = 2.0", "SCALE = 2"),
    "entry": ('"one": 1.0', '"one": 1.5'),
    "member": ('"c"])', '"d"])'),
    "default": ("shift=0.5", "shift=0.6"),
    "keyword default": ("*, factor=1.0", "*, factor=2.0"),
    "function of a package": ("math.tanh", "math.sin"),
    "helper": ('+ WORDS["one"]', '- WORDS["one"]'),
    "compiled helper": ("SCALE * x", "SCALE + x"),
    "options of the compiler": ("fastmath=True", "fastmath=False"),
    "inner function": ("sum(x for", "sum(2 * x for"),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("name", ["smooth", "activation", "circle", "partial"])
def test_what_changes_numbers(what, name):
    before, after = CHANGES[what]
    assert before in SOURCE
    assert fingerprint(getattr(built(SOURCE.replace(before, after)), name)) != fingerprint(getattr(built(), name))


def test_classes_and_what_they_inherit():
    for before, after in (("power = 2.0", "power = 3.0"), ("width=1.0", "width=2.0"), ("self.width *", "self.width +")):
        assert fingerprint(built(SOURCE.replace(before, after)).Callable_()) != fingerprint(built().Callable_())


def test_values_that_functions_close_over():
    module = built()
    assert fingerprint(module.around(2.0)) == fingerprint(module.around(2.0)) != fingerprint(module.around(3.0))


def test_names_that_get_a_value_later():
    module = built()
    before = fingerprint(module.late)
    module.later = math.sin
    assert fingerprint(module.late) != before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.zeros(2), np.zeros(3)),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2), np.zeros(2, dtype=np.float32)),
        (np.arange(4), np.arange(4)[::-1]),
        ([1, 2], (1, 2)),
        ([1, [2]], [[1], 2]),
        ("ab", b"ab"),
        (["a", "bc"], ["ab", "c"]),
        (xr.DataArray([1.0], dims="x"), xr.DataArray([1.0], dims="y")),
        (xr.DataArray([1.0], dims="x", coords={"x": [1]}), xr.DataArray([1.0], dims="x", coords={"x": [2]})),
        (xr.Dataset({"a": 1.0}), xr.Dataset({"b": 1.0})),
        (xr.Dataset({"a": 1.0}), xr.Dataset({"a": 1.0}, attrs={"unit": "m"})),
        (functools.partial(max, 1), functools.partial(max, 2)),
        (np.tanh, np.sin),
        ([].append, [1].append),
    ],
)
def test_other_values(one, other):
    assert fingerprint(one) == fingerprint(one) != fingerprint(other)


def test_values_that_are_the_same():
    array = np.arange(12.0).reshape(3, 4)
    assert fingerprint(array.T) == fingerprint(array.T.copy())
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint([array, array]) == fingerprint([array, array.copy()])


def test_lists_that_hold_themselves():
    def looped(*values):
        made = list(values)
        made.append(made)
        return made

    assert fingerprint(looped(1)) == fingerprint(looped(1)) != fingerprint(looped(2))


def test_what_an_object_has_computed_is_not_part_of_it():
    activation = Activation(built().compiled)
    before = fingerprint(activation)
    assert activation.growth == 1.0
    assert fingerprint(activation) == before


def test_versions_of_packages_are_part(monkeypatch):
    before = fingerprint_of(built().smooth, "own:smooth")
    assert before["version"].startswith("python 3.")
    module = built("import numpy as np\ndef f(x):\n    return np.tanh(x)\n")
    first = fingerprint_of(module.f, "f")
    monkeypatch.setattr(np, "__version__", "99.0")
    second = fingerprint_of(module.f, "f")
    assert second["version"].endswith("numpy 99.0")
    assert first["sha256"] != second["sha256"]
    assert fingerprint(built().smooth) == before["sha256"]  # which names none


def test_functions_of_packages_are_their_names_and_versions():
    assert fingerprint_of(np.linalg.norm, "numpy:norm")["version"].endswith(f"numpy {np.__version__}")
    assert fingerprint_of(math.erf, "math:erf")["version"] == ""


def test_files(tmp_path):
    path = tmp_path / "data.npy"
    path.write_bytes(b"one")
    os.utime(path, (1e9, 1e9))
    first = fingerprint_of_file(path)
    path.write_bytes(b"two")
    os.utime(path, (1e9, 1e9))
    second = fingerprint_of_file(path)
    assert first["what"] == second["what"] == str(path)
    assert first["sha256"] != second["sha256"]
    assert fingerprint_of_file(tmp_path / "none.npy")["sha256"] == ""


def test_callable_dataclasses_and_compiled_functions():
    @dataclass(frozen=True)
    class Power:
        exponent: float

        def __call__(self, x):
            return x**self.exponent

    assert fingerprint(Power(2.0)) != fingerprint(Power(3.0))
    assert fingerprint(Activation(abs)) != fingerprint(Activation(abs, kinks=(0.0,)))
    one, two = (numba.cfunc("float64(float64)")(built().around(width)) for width in (2.0, 3.0))
    assert fingerprint(one) != fingerprint(two)
