"""Results do not depend on what the program around the library does with floating-point exceptions."""

import inspect

import numpy as np

import meanfield
from tests.example_problems import make_problem


def test_an_underflow_is_none_in_a_program_that_raises_on_all():
    problem = make_problem(
        'prior = { name = "l1", strength = 1.0 }', "time = { stop = 0.5, outputs = 2 }", "density.tolerance = 1e-3"
    )
    right = meanfield.solve_density(problem)
    with np.errstate(all="raise"):
        assert np.array_equal(meanfield.solve_density(problem)["q"], right["q"])
        assert np.array_equal(meanfield.solve(problem, "density")["q"], right["q"])
        assert np.geterr()["under"] == "raise"  # and it is the caller's again


def test_every_door_has_the_errstate_of_the_library():
    doors = [getattr(meanfield, name) for name in meanfield.__all__]
    solvers = [f for f in doors if inspect.isfunction(f) and f.__module__.startswith("meanfield.families")]
    assert len(solvers) > 15
    for function in [*solvers, meanfield.compare, meanfield.explain, meanfield.run_sweep]:
        assert hasattr(function, "__wrapped__"), f"{function.__name__} is not decorated by own_errstate"
