"""What large functions cost a new installation: each is compiled once, and no other holds a copy of it."""

import sys

import pytest
from numba.core.registry import CPUDispatcher

import meanfield
from meanfield.families.contrastive.closures import averages, mixture
from meanfield.families.contrastive.closures.closure import drift_and_diffusion
from meanfield.families.contrastive.sgd.projected import _steps
from meanfield.mckean_vlasov.density.lagrangian import marching
from meanfield.numerics.quantile_frame.linearised import eliminate
from meanfield.numerics.quantile_frame.stages import solve_stage
from tests.example_problems import make_problem

LARGE = (
    averages.averages,
    averages.refined,
    mixture.components_of_b,
    drift_and_diffusion,
    marching.average,
    marching._sensitivity,
    eliminate,
    solve_stage,
    _steps,
)


LINES = "time.stop = 0.1", "particles.method = 'projected'", "model.centering = 'population'"
FEATURE = "{ hidden = { law = 'rademacher' }, initial_overlap = 0.3 }"


@pytest.fixture(scope="module")
def definitions():
    """Names of all functions that compiled code of this package defines, once for each library that does."""
    two = make_problem(f"features = [{FEATURE}, {FEATURE}]", *LINES, "model.activation = 'tanh'")
    meanfield.solve_density(two)
    meanfield.simulate_sgd(make_problem(*LINES))
    modules = [module for name, module in sys.modules.items() if name.startswith("meanfield.")]
    functions = {f for module in modules for f in vars(module).values() if isinstance(f, CPUDispatcher)}
    compiled = [overload.library for function in functions for overload in function.overloads.values()]
    return [f.name for library in compiled for f in library._own_module().functions if not f.is_declaration]


def mangled(function):
    """What the names of a function's machine code begin with."""
    path = f"{function.py_func.__module__}.{function.py_func.__qualname__}".split(".")
    return "_ZN" + "".join(f"{len(name)}{name}" for name in path) + "B"


@pytest.mark.parametrize("function", LARGE, ids=lambda function: function.__name__)
def test_a_large_function_is_compiled_once_for_each_type_of_arguments(definitions, function):
    copies = sum(name.startswith(mangled(function)) for name in definitions)
    assert 1 <= copies <= len(function.overloads)
