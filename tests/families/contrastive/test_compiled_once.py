"""What large functions cost a new installation: each is compiled once, and no other holds a copy of it."""

import sys

import pytest
from numba.core.registry import CPUDispatcher

import meanfield
from meanfield.families.contrastive.closures import averages, expectation, hidden_moments, mixture
from meanfield.families.contrastive.closures.closure import drift_and_diffusion
from meanfield.families.contrastive.sgd.projected import _steps
from meanfield.mckean_vlasov.density.lagrangian import marching
from meanfield.numerics.quantile_frame.linearised import eliminate
from meanfield.numerics.quantile_frame.stages import solve_stage
from tests.example_problems import make_problem

LARGE = (
    averages.averages,
    averages.refined,
    expectation.mean_outputs,
    mixture.components_of_b,
    hidden_moments.averages_with_hidden,
    drift_and_diffusion,
    marching.average,
    marching._sensitivity,
    eliminate,
    solve_stage,
    _steps,
)


@pytest.fixture(scope="module")
def definitions():
    """Names of all functions that compiled code of this package defines, once for each library that does."""
    problem = make_problem("time.stop = 0.1", "particles.method = 'projected'")
    for solve in (meanfield.solve_density, meanfield.solve_order_parameters, meanfield.simulate_sgd):
        solve(problem)
    modules = [module for name, module in sys.modules.items() if name.startswith("meanfield.")]
    functions = {f for module in modules for f in vars(module).values() if isinstance(f, CPUDispatcher)}
    compiled = [overload.library for function in functions for overload in function.overloads.values()]
    return [f.name for library in compiled for f in library._get_module_for_linking().functions if not f.is_declaration]


def mangled(function):
    """What the names of a function's machine code begin with."""
    path = f"{function.py_func.__module__}.{function.py_func.__qualname__}".split(".")
    return "_ZN" + "".join(f"{len(name)}{name}" for name in path) + "B"


@pytest.mark.parametrize("function", LARGE, ids=lambda function: function.__name__)
def test_a_large_function_is_compiled_once_for_each_type_of_arguments(definitions, function):
    copies = sum(name.startswith(mangled(function)) for name in definitions)
    assert 1 <= copies <= len(function.overloads)
