"""Results do not depend on what the program around the library does with floating-point exceptions."""

import inspect
import pickle

import numpy as np

import meanfield
from meanfield.problems.known_families import family_of
from tests.example_problems import make_problem


def test_an_underflow_is_none_in_a_program_that_raises_on_all():
    problem = make_problem(
        'prior = { name = "l1", strength = 1.0 }', "time = { stop = 0.5, outputs = 2 }", "density.tolerance = 1e-3"
    )
    right = meanfield.solve_density(problem)
    with np.errstate(all="raise"):
        assert np.array_equal(meanfield.solve_density(problem)["q"], right["q"])
        assert np.array_equal(meanfield.solve(problem, "density")["q"], right["q"])
        method = family_of(problem).method("density")
        assert np.array_equal(method(problem)["q"], right["q"])  # as workers of a sweep call it
        assert np.geterr()["under"] == "raise"  # and it is the caller's again


def test_every_public_function_has_the_errstate_of_the_library():
    modules = [meanfield, *(getattr(meanfield, name) for name in (*meanfield.NAMESPACES, "extend"))]
    public = [getattr(module, name) for module in modules for name in module.__all__]
    functions = [found for found in public if inspect.isfunction(found)]
    assert len(functions) > 25
    for function in functions:
        assert hasattr(function, "__wrapped__"), f"{function.__name__} is not wrapped by with_own_errstate"
        assert pickle.loads(pickle.dumps(function)) is function  # for pools of processes
