"""Ctrl-C keeps what was computed."""

from concurrent.futures import Future

import numpy as np

import meanfield
from meanfield.mckean_vlasov.density.evolution import Evolution
from meanfield.problems.file import parse_problem

TEXT = """
[model]
activation = "quadratic"
learning_rate = 0.05
batch_size = 4
[[features]]
hidden = { law = "gaussian", second_moment = 1.2 }
initial_overlap = 0.5
[time]
stop = 1.0
outputs = 5
[density]
cells = 100
feature_nodes = 15
order = 2
[particles]
method = "plain"
dimension = 100
replicas = 2
"""


def interrupt(monkeypatch, at):
    """Ctrl-C in the `at`-th call for another output time; the calls are returned."""
    advance, calls = Evolution.advance, []

    def interrupted(self, times):
        calls.append(times)
        if len(calls) == at:
            raise KeyboardInterrupt
        advance(self, times)

    monkeypatch.setattr(Evolution, "advance", interrupted)
    return calls


def test_interrupted_density_keeps_the_outputs_before(monkeypatch):
    whole = meanfield.solve_density(parse_problem(TEXT))
    interrupt(monkeypatch, at=3)
    partial = meanfield.solve_density(parse_problem(TEXT))
    assert partial.attrs["status"] == "interrupted"
    for name in ("q", "r", "P"):
        assert np.array_equal(partial[name][:3], whole[name][:3])
        assert np.isnan(partial[name][3:]).all()


def test_interrupted_search_for_an_accuracy_keeps_the_levels_before(monkeypatch):
    text = TEXT.replace(
        "cells = 100\nfeature_nodes = 15\norder = 2", 'tolerance = 1e-8\nscheme = "eulerian"\nfeature_nodes = 30'
    )
    problem = parse_problem(text + '[prior]\nname = "l1"\nstrength = 5.0\n')
    calls = interrupt(monkeypatch, at=-1)
    whole = meanfield.solve_density(problem)
    interrupt(monkeypatch, at=len(calls) - 1)  # in the last level, when the one before has given an estimate
    partial = meanfield.solve_density(problem)
    assert partial.attrs["status"] == "interrupted"
    assert np.isfinite(partial["P"]).all()
    difference = np.abs(partial["q"] - whole["q"]).values
    assert difference.max() > 0
    assert (difference <= 3 * partial["q_error"].values + 1e-12).all()  # an estimate; 1e-12 for rounding at t = 0


def test_a_search_may_be_interrupted_at_any_time(monkeypatch):
    problem = parse_problem(TEXT.replace("cells = 100\nfeature_nodes = 15\norder = 2", "tolerance = 1e-4"))
    calls = interrupt(monkeypatch, at=-1)
    whole = meanfield.solve_density(problem)
    for at in range(1, len(calls) + 1):
        interrupt(monkeypatch, at)
        partial = meanfield.solve_density(problem)
        assert partial.attrs["status"] == "interrupted"
        assert partial["P"].shape[:2] == whole["P"].shape[:2]
        monkeypatch.undo()


def test_interrupted_sgd_keeps_the_outputs_before(monkeypatch):
    whole = meanfield.simulate_sgd(parse_problem(TEXT))

    def interrupted(self, timeout=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupted)
    partial = meanfield.simulate_sgd(parse_problem(TEXT))
    assert partial.attrs["status"] == "interrupted"
    reached = np.isfinite(partial["q"].values)
    assert np.array_equal(partial["q"].values[reached], whole["q"].values[reached])
