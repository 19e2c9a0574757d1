"""The kernel against FiPy: the same cells and steps must give the same numbers."""

import sys

import numpy as np
import pytest

from meanfield.families.contrastive.density import solve_density
from meanfield.families.contrastive.limit import limit_of
from meanfield.mckean_vlasov.density.evolution import Evolution
from meanfield.mckean_vlasov.density.plan import fixed_plan
from meanfield.mckean_vlasov.density.solver import BACKENDS
from tests.example_problems import feature, features, make_problem

SHORT = ("model.learning_rate = 0.1", "time = { stop = 0.5, outputs = 3 }")
PRIORS = {"l1": 'prior = { name = "l1", strength = 2.0 }', "quartic": 'prior = { name = "quartic", strength = 0.5 }'}


@pytest.mark.slow  # two features take the same steps, node by node
@pytest.mark.parametrize("prior", ["l1", "quartic"])
def test_backends_agree_with_one_feature(prior):
    """Of order two: what higher orders combine are solutions like this one."""
    settings = "density = { order = 2, cells = 80, half_width = 13.0, feature_nodes = 3, steps = 14 }"
    check_backends(make_problem(PRIORS[prior], *SHORT, settings))


def test_backends_agree_with_two_features():
    two = features(feature(0.5), feature(0.3, coordinate="rademacher"))
    settings = "density = { order = 2, cells = 60, half_width = 11.0, feature_nodes = 2, steps = 8 }"
    check_backends(make_problem(PRIORS["l1"], two, *SHORT, settings))


def check_backends(problem):
    ours, fipys = solve_density(problem), solve_density(problem, backend="fipy")
    assert ours.status == fipys.status == "complete"
    assert np.abs(ours.q[-1] - ours.q[0]).max() > 0.01  # there is something to agree on
    for name in ("q", "r", "norm", "P"):
        # FiPy takes the drift's weight as 1/2 where |z| < 1e-3 and is off by z/12 there; a face or two in each node
        assert fipys[name].values == pytest.approx(ours[name].values, abs=1e-9)  # z/12, z < 1e-3


def test_many_tiny_steps_move_as_far_as_the_kernel_does():
    """With FiPy's default tolerance the solver returns at once if a step changes little, and the density freezes."""
    problem = make_problem(
        "density = { cells = 40, half_width = 10.0, feature_nodes = 3, order = 2, steps = 10_000_000 }"
    )
    limit = limit_of(problem)
    plan = fixed_plan(limit, problem.density)
    moved = {}
    for backend, make_step in BACKENDS.items():
        evolution = Evolution(limit, plan.grid(limit), 0.05, make_step)
        start = evolution.moments.q[0]
        evolution.advance(plan.step_times.steps(0)[:10])
        moved[backend] = evolution.moments.q[0] - start
    assert moved["numba"] > 2e-7  # half of what dq/dt = 0.02 moves in 10 steps of 2e-6
    assert moved["fipy"] == pytest.approx(moved["numba"], abs=2e-12)  # twice 10 solves, each correct to 1e-13


def test_command_line_arguments_survive(monkeypatch):
    """FiPy reads them when it is imported, and must be shown none of ours."""
    arguments = ["prog", "--trilinos", "problem.toml"]
    monkeypatch.setattr(sys, "argv", arguments)
    problem = make_problem("time = { stop = 0.1, outputs = 2 }", "density = { order = 2, cells = 20, steps = 1 }")
    solve_density(problem, backend="fipy")
    assert sys.argv is arguments
    assert arguments == ["prog", "--trilinos", "problem.toml"]
