"""After an import of this package, and after solvers ran, numba and llvmlite are what they were."""

import json
import os
import subprocess
import sys

import pytest

from tests import ROOT

COMPARES = """
import gc, json, sys
import llvmlite.binding.ffi as ffi
import numba
import numpy as np
from numba.core import event

def is_theirs(name):
    return (name or "").partition(".")[0] in ("numba", "llvmlite")

def attributes():
    found = {}
    for name, module in list(sys.modules.items()):
        if is_theirs(name):
            for key, value in vars(module).items():
                found[name, key] = value
                if isinstance(value, type) and is_theirs(value.__module__):
                    place = value.__module__, value.__qualname__
                    found |= {(*place, inner): part for inner, part in vars(value).items()}
    return found

def changed(before, after):
    return {key for key in before if key not in after or before[key] is not after[key]}

def settings():
    return {
        "listeners": [kind for kind, listeners in event._registered.items() if listeners],
        "lock": list(map(str, ffi.lib._lock._cblist)),
        "garbage": (gc.isenabled(), gc.get_threshold()),
        "finders": [str(finder) for finder in sys.meta_path if "meanfield" in str(finder)],
        "context": [type(part).__module__ for part in vars(numba.core.registry.cpu_target.target_context).values()],
        "libraries": numba.core.registry.cpu_target.target_context.codegen()._library_class.__module__,
    }

def compile_plain():
    numba.njit(lambda x: np.zeros(3).sum() + x[0])(np.ones(2))
    numba.cfunc("float64(float64)")(lambda x: x + 1.0)

compile_plain()
start = attributes()
compile_plain()
before, before_settings = attributes(), settings()
by_numba = changed(start, before)  # counts what it compiles

import meanfield
import xarray  # our finder waits for it
from tests.example_problems import make_problem
imported = changed(before, attributes())
problem = make_problem("time.stop = 0.1", "particles.dimension = 20", "particles.replicas = 2")
for solve in sys.argv[1:]:
    getattr(meanfield, solve)(problem)
from meanfield.numerics.compiled.scalar_functions import compile_loop, compile_scalar
compile_scalar(lambda x: np.exp(x)), compile_loop(lambda x: np.exp(x))
after = attributes()

def is_ours(value):
    value = getattr(value, "__func__", getattr(value, "fget", value))
    return (getattr(value, "__module__", None) or "").startswith("meanfield")

print(json.dumps({
    "imported": sorted(map(str, imported - by_numba)),
    "changed": sorted(map(str, changed(before, after) - by_numba)),
    "ours": sorted(str(key) for key, value in after.items() if is_ours(value)),
    "settings": [[name, str(value), str(settings()[name])] for name, value in before_settings.items()
                 if settings()[name] != value],
    "attributes": len(before),
    "replaced": len(changed(before, after)),
}))
"""


# Whatever the function, the library compiles it in one way, which the first case has too.
@pytest.mark.parametrize(
    "solvers",
    [
        (),
        pytest.param(("solve_density", "solve_order_parameters", "simulate_sgd"), marks=pytest.mark.slow),
    ],
)
def test_every_attribute_of_numba_and_llvmlite_is_the_object_that_it_was(solvers):
    """Those of modules and of classes, but for what numba itself changes whenever it compiles."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", COMPARES, *solvers], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("attributes") > 10_000  # 28,000 when this was written
    assert found.pop("replaced") < 10
    assert found == {"imported": [], "changed": [], "ours": [], "settings": []}
