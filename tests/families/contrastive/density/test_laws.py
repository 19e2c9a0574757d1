"""The density under every law of coordinates and of the initial residual, with three features, and within memory."""

from types import SimpleNamespace

import numpy as np
import pytest

from meanfield.errors import InputError
from meanfield.families.contrastive.density import solve_density
from meanfield.families.contrastive.limit import limit_of
from meanfield.families.contrastive.order_parameters import solve_order_parameters
from meanfield.mckean_vlasov.density.plan import CELL_WIDTH, fixed_plan
from meanfield.problems.problem_keys import with_value
from tests.example_problems import THREE_POINT, feature, features, gaussian, make_problem

SHORT = ("time = { stop = 4.0, outputs = 3 }",)
COARSE = "density = { cells = 700, steps = 200 }"
JOINT = (
    'hidden = { law = "discrete", values = [[2.0, 1.0], [-1.0, 1.0], [-1.0, -2.0]], probabilities = [0.4, 0.2, 0.4] }'
)


def assert_follows_the_ode(*lines, accuracy):
    problem = make_problem(*SHORT, *lines)
    run, ode = solve_density(problem), solve_order_parameters(problem)
    assert run.status == "complete"
    moved = np.abs(ode.q.values[-1] - ode.q.values[0]).max()
    assert moved > 1e3 * accuracy
    np.testing.assert_allclose(run.q.values, ode.q.values, rtol=0, atol=accuracy)  # given by the test


@pytest.mark.parametrize("law", ['"uniform"', '"laplace"', '"rademacher"', '"three_point", fourth_moment = 4.0'])
def test_every_law_of_the_coordinates(law):
    """The overlaps do not depend on it without a prior."""
    table = f"{{ hidden = {THREE_POINT}, coordinate = {{ law = {law} }}, initial_overlap = 0.5 }}"
    # Order 4 at a width of 0.02 to 0.05, on the wide range of the Laplace law: 1e-5.
    assert_follows_the_ode(features(table), COARSE, accuracy=2e-5)  # see the line above


@pytest.mark.parametrize("law", ['"uniform"', '"rademacher"', '"three_point", fourth_moment = 3.0'])
def test_every_law_of_the_initial_residual(law):
    """Without a prior q and E[w^2] do not depend on it; the density at the start does."""
    lines = (f"initial_residual = {{ law = {law} }}", "density.cells = 800")
    assert_follows_the_ode(*lines, features(feature(0.5)), accuracy=1e-5)  # order 4 from a start 7 cells wide
    problem = make_problem(*SHORT, *lines)
    run = solve_density(problem)
    kurtosis = (run.P[0] * run.w**4).sum("w").values * float(run.w[1] - run.w[0])
    centre = np.abs(run.u.values).argmin()
    xi4 = {"u": 1.8, "r": 1.0, "t": 3.0}[law[1]]
    exact = (1 - 0.04) ** 2 * xi4 + 6 * 0.04 * 0.96 + 3 * 0.04**2  # E[xi^4] with smoothing 0.2
    assert kurtosis[centre] == pytest.approx(0.75**2 * exact, rel=1e-3)  # cell averages: 6 h^2/12 of the variance


def test_three_features():
    table = features(
        feature(0.4, THREE_POINT, "rademacher"),
        feature(0.3, gaussian(1.5)),
        feature(0.2, '{ law = "uniform", second_moment = 1.6 }', "uniform"),
    )
    assert_follows_the_ode(table, "density = { cells = 260, steps = 80, feature_nodes = 11 }", accuracy=2e-5)  # order 4


def test_dependent_features():
    lines = ("features = [{ initial_overlap = 0.5 }, { initial_overlap = 0.2 }]", JOINT)
    assert_follows_the_ode(
        *lines, "density = { cells = 500, steps = 120, feature_nodes = 15 }", accuracy=2e-5
    )  # order 4


def test_kinks_of_the_prior_lie_on_cell_edges():
    for width in (0.3, 0.5, 1.0):
        prior = f'prior = {{ name = "smooth_l1", parameters = {{ width = {width} }} }}'
        for settings in ("density.order = 4", "density.cells = 500"):
            problem = make_problem(prior, settings)
            limit = limit_of(problem)
            plan = fixed_plan(limit, problem.density)
            edges = plan.grid(limit).edges
            for kink in (-width, 0.0, width):
                assert np.abs(edges - kink).min() < 1e-12  # rounding
            assert plan.cells == 500 or np.diff(edges).max() <= CELL_WIDTH * (1 + 1e-12)  # rounding


def test_a_run_that_does_not_fit_is_refused_before_it_starts(monkeypatch):
    """Naming the keys to change."""
    memory = SimpleNamespace(available=2**30)
    monkeypatch.setattr("meanfield.mckean_vlasov.density.plan.psutil.virtual_memory", lambda: memory)
    problem = make_problem(
        features(*[feature(0.3)] * 3), "time = { stop = 1.0, outputs = 200 }", 'prior = { name = "l1", strength = 1.0 }'
    )
    for scheme, pieces in (("lagrangian", "points"), ("eulerian", "cells")):
        takes = rf"outputs of \d+ nodes x \d+ {pieces} take .* GiB.* 1 GiB .*lower time.outputs"
        with pytest.raises(InputError, match=takes):
            solve_density(with_value(problem, "density.scheme", scheme))
    assert solve_density(make_problem(*SHORT, COARSE)).status == "complete"
