"""What large functions cost a new installation: each is compiled once, and no other holds a copy of it."""

import subprocess
import sys

import pytest

from meanfield.families.contrastive.closures import averages, mixture
from meanfield.families.contrastive.closures.closure import drift_and_diffusion
from meanfield.families.contrastive.sgd.projected import _steps
from meanfield.mckean_vlasov.density.lagrangian import coupling, marching
from meanfield.numerics.quantile_frame.linearised import eliminate
from meanfield.numerics.quantile_frame.stages import solve_stage
from tests import ROOT

# that functions share what they call is in tests/process/own_numba/test_target.py
pytestmark = pytest.mark.slow

LARGE = (
    averages.averages,
    averages.refined,
    mixture.components_of_b,
    drift_and_diffusion,
    marching.average,
    coupling.fill_sensitivity,
    eliminate,
    solve_stage,
    _steps,
)


SOLVES = """
import sys
from numba.core.registry import CPUDispatcher
import meanfield
from tests.example_problems import make_problem

LINES = "time.stop = 0.1", "particles.method = 'projected'", "model.centering = 'population'"
FEATURE = "{ hidden = { law = 'rademacher' }, initial_overlap = 0.3 }"
meanfield.solve_density(make_problem(f"features = [{FEATURE}, {FEATURE}]", *LINES, "model.activation = 'tanh'"))
meanfield.simulate_sgd(make_problem(*LINES))
modules = [module for name, module in sys.modules.items() if name.startswith("meanfield.")]
functions = {f for module in modules for f in vars(module).values() if isinstance(f, CPUDispatcher)}
for function in functions:
    for overload in function.overloads.values():
        print(f"{function.py_func.__module__}.{function.py_func.__qualname__}")
        for f in overload.library._own_module().functions:
            if not f.is_declaration:
                print(f.name)
"""
"""Two solves in a process of their own, which prints the names of the functions that it has, once for each list of
types of arguments, and of those that compiled code defines, once for each library that does. To look through all
libraries of a process that runs tests takes many times as long."""


@pytest.fixture(scope="module")
def names():
    return subprocess.run(
        [sys.executable, "-c", SOLVES], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.splitlines()


def address(function):
    return f"{function.py_func.__module__}.{function.py_func.__qualname__}"


def mangled(function):
    """What the names of a function's machine code begin with."""
    path = address(function).split(".")
    return "_ZN" + "".join(f"{len(name)}{name}" for name in path) + "B"


@pytest.mark.parametrize("function", LARGE, ids=lambda function: function.__name__)
def test_a_large_function_is_compiled_once_for_each_type_of_arguments(names, function):
    copies = sum(name.startswith(mangled(function)) for name in names)
    assert 1 <= copies <= names.count(address(function))
