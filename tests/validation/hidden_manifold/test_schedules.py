"""The study of schedules of a student: its closed equations are those of the library, and better tables are found."""

import numpy as np
import pytest

import meanfield
from validation.hidden_manifold import schedules
from validation.rate_search import Search


def test_closed_equations_and_schedules_are_those_of_the_library():
    search = Search(schedules.velocity, schedules.START, schedules.STOP, lambda y: 0.0, 0.5)
    x = np.log([0.9, 0.1])
    solved = meanfield.solve_order_parameters(schedules.problem_of(search.schedule("cosine", x)))
    Q, R = search.end("cosine", x)
    assert float(solved["Q"][-1, 0, 0]) == pytest.approx(Q, abs=1e-7)  # of steps of 1e-8 in seven stretches
    assert float(solved["R"][-1, 0, 0]) == pytest.approx(R, abs=1e-7)  # as above
    assert float(solved["generalisation_error"][-1]) == pytest.approx(float(schedules.error([Q, R])), abs=1e-7)


def test_a_search_finds_the_rates_that_are_known_to_be_best():
    """Of dy/dt = -eta y + eta^2, y(0) = 1, the best rate is eta = y/2, which leaves 1/(1 + t/4)."""
    search = Search(lambda rate, y: -rate * y + rate**2, np.ones(1), 6.0, lambda y: float(y[0]), 0.1)
    found = {kind: search.end(kind, x)[0] for kind, x in search.best().items()}
    best = 1.0 / (1.0 + 6.0 / 4.0)
    assert found["table"] == pytest.approx(best, rel=1e-3)  # eight rates, linear in between
    assert best < found["table"] < found["cosine"] < found["constant"]
