"""Ctrl-C keeps what was computed."""

from concurrent.futures import Future

import numpy as np

import meanfield
from meanfield.density.evolution import Evolution
from meanfield.problem_file import parse_problem

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


def test_interrupted_density_keeps_the_outputs_before(monkeypatch):
    whole = meanfield.solve_density(parse_problem(TEXT))
    advance, calls = Evolution.advance, []

    def interrupted(self, steps):
        calls.append(steps)
        if len(calls) == 3:
            raise KeyboardInterrupt
        advance(self, steps)

    monkeypatch.setattr(Evolution, "advance", interrupted)
    partial = meanfield.solve_density(parse_problem(TEXT))
    assert partial.attrs["status"] == "interrupted"
    for name in ("q", "r", "P"):
        assert np.array_equal(partial[name][:3], whole[name][:3])
        assert np.isnan(partial[name][3:]).all()


def test_interrupted_sgd_keeps_the_outputs_before(monkeypatch):
    whole = meanfield.simulate_sgd(parse_problem(TEXT))

    def interrupted(self, timeout=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupted)
    partial = meanfield.simulate_sgd(parse_problem(TEXT))
    assert partial.attrs["status"] == "interrupted"
    reached = np.isfinite(partial["q"].values)
    assert np.array_equal(partial["q"].values[reached], whole["q"].values[reached])
