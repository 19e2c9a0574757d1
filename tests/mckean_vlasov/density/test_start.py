"""Cells, nodes and the initial density on them; averages at t = 0, against quadrature between kinks of priors."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from meanfield.extend import Limit, PriorSettings
from meanfield.families.contrastive.limit import limit_of
from meanfield.ingredients.laws.coordinate import (
    GaussianCoordinate,
    LaplaceCoordinate,
    RademacherCoordinate,
    ThreePointCoordinate,
    UniformCoordinate,
)
from meanfield.ingredients.laws.residual import GaussianResidual, UniformResidual
from meanfield.mckean_vlasov.cells import feature_quadrature
from meanfield.mckean_vlasov.density import start
from meanfield.mckean_vlasov.density.plan import CELL_WIDTH, fixed_plan
from meanfield.mckean_vlasov.density.start import initial_density, initial_work
from meanfield.numerics.finite_volumes.grid import Grid
from tests.example_problems import feature, features, make_problem

FORCES = {
    "l1": (np.sign, [0.0]),
    "smooth_l1": (lambda w: np.clip(2.0 * w, -1.0, 1.0), [-0.5, 0.5]),
    "quartic": (lambda w: w**3, []),
    "cauchy": (lambda w: w / (1.0 + w * w), []),
}

LAWS = {
    "one, with a kink": ((LaplaceCoordinate(),), (0.5,)),
    "one, narrow laws": ((UniformCoordinate(),), (-0.95,)),
    "discrete beside": ((GaussianCoordinate(), RademacherCoordinate()), (0.5, -0.3)),
    "two": ((UniformCoordinate(), LaplaceCoordinate()), (0.1, 0.8)),
    "three": ((RademacherCoordinate(), ThreePointCoordinate(fourth_moment=5.0), UniformCoordinate()), (0.1, 0.2, 0.3)),
}


def limit_with(name, coordinates, q, residual=None):
    prior, residual = PriorSettings(name=name, strength=0.7), residual or GaussianResidual()
    return Limit(lambda q: (0.0 * q, 0.1), 0.1, prior, coordinates, np.array(q), residual, np.array([0.0, 1.0]))


def fine_rule(law):
    """Twelve Legendre nodes on each of some short panels of a law."""
    if not hasattr(law, "density"):
        return law.quadrature(3)
    ends = np.unique([np.linspace(a, b, 7) for a, b in itertools.pairwise(law.support)])
    u, weight = pieces(ends[None])
    weight = weight[0] * law.density(u[0])
    return u[0], weight / weight.sum()


def pieces(ends):
    """Nodes and weights between increasing ends, shape (rows, nodes)."""
    x, weight = np.polynomial.legendre.leggauss(12)
    left, half = ends[:, :-1, None], 0.5 * np.diff(ends, axis=1)[:, :, None]
    return (left + half * (x + 1)).reshape(len(ends), -1), (half * weight).reshape(len(ends), -1)


@pytest.mark.parametrize("laws", LAWS)
@pytest.mark.parametrize("name", FORCES)
def test_work_at_the_start_is_that_of_the_law_of_weights(name, laws):
    coordinates, q = LAWS[laws]
    force, kinks = FORCES[name]
    deviation = math.sqrt(1 - np.dot(q, q))
    means, weight = np.zeros(1), np.ones(1)
    for law, q_k in zip(coordinates, q, strict=True):
        u, probability = fine_rule(law)
        means, weight = np.add.outer(means, q_k * u).ravel(), np.multiply.outer(weight, probability).ravel()
    even = np.broadcast_to(np.linspace(-9, 9, 13), (len(means), 13))
    between = np.clip(np.subtract.outer(-means, -np.array(kinks)) / deviation, -9, 9)
    z, density = pieces(np.sort(np.concatenate([even, between], axis=1)))
    w = means[:, None] + deviation * z
    expected = weight @ (0.7 * w * force(w) * density * np.exp(-0.5 * z * z)).sum(axis=1) / math.sqrt(2 * math.pi)
    found = initial_work(limit_with(name, coordinates, q))
    assert found == pytest.approx(expected, rel=1e-8)  # jumps of phi are read off from differences


def test_work_at_the_start_is_left_to_the_levels_where_rules_would_be_too_large():
    assert math.isnan(initial_work(limit_with("l1", (LaplaceCoordinate(),) * 2, (0.7, 0.714))))
    assert math.isnan(initial_work(limit_with("l1", (LaplaceCoordinate(),), (0.5,), UniformResidual())))
    assert math.isnan(initial_work(limit_with("l1", (LaplaceCoordinate(),), (1.0,))))


TWO_FEATURES = features(feature(0.5), feature(0.3, coordinate="rademacher"))


def plan_of(*lines):
    problem = make_problem(*lines)
    return fixed_plan(limit_of(problem), problem.density)


def test_cell_averages_of_a_gaussian():
    edges, mean = np.linspace(-8, 8, 161), np.array([-1.0, 0.0, 2.5])
    averages = GaussianResidual().cell_average(edges, mean, 0.7)
    centres = 0.5 * (edges[1:] + edges[:-1])
    x, weight = np.polynomial.legendre.leggauss(12)
    points = centres[:, None] + 0.05 * x
    for row, m in zip(averages, mean, strict=True):
        exact = norm.pdf(points, m, 0.7) @ weight / 2
        assert row == pytest.approx(exact, rel=1e-11, abs=1e-300)  # exact quadrature; ndtr loses a digit in far tails


def test_cell_averages_keep_their_accuracy_in_both_tails():
    edges = np.linspace(-12, 12, 241)
    row = GaussianResidual().cell_average(edges, np.zeros(1), 1.0)[0]
    assert row[0] == pytest.approx((norm.sf(11.9) - norm.sf(12.0)) / 0.1, rel=1e-10)  # rounding of ndtr and of edges
    assert row == pytest.approx(row[::-1], rel=1e-12)  # symmetric up to rounding of the edges
    assert row[0] > 0


def test_cells_are_even_in_number_and_zero_is_an_edge():
    edges = plan_of("density.cells = 10", "density.half_width = 7.3").grid(limit_of(make_problem())).edges
    assert len(edges) == 11
    assert edges[5] == 0.0
    assert np.diff(edges) == pytest.approx(1.46, rel=1e-14)  # rounding


def test_refining_divides_cells():
    coarse = plan_of().grid(limit_of(make_problem()))
    fine = coarse.refined(3)
    assert fine.edges[::3] == pytest.approx(coarse.edges, abs=1e-14)  # rounding
    assert fine.edges[fine.shape[1] // 2] == 0.0


@pytest.mark.parametrize(("stop", "outputs", "steps"), [(1.0, 2, 7), (3.0, 8, 10), (0.1, 41, 1)])
def test_every_output_time_is_a_whole_number_of_steps(stop, outputs, steps):
    plan = plan_of(f"time.stop = {stop}", f"time.outputs = {outputs}", f"density.steps = {steps}")
    assert steps <= plan.step_times.total < steps + outputs - 1
    assert len(set(plan.step_times.counts)) == 1


def test_default_cells_reach_the_tails_with_the_default_width():
    plan = plan_of()
    grid = plan.grid(limit_of(make_problem()))
    assert grid.h <= CELL_WIDTH
    assert len(grid.u) == GaussianCoordinate.default_nodes[0]
    for q in np.linspace(0, 0.9999, 50):
        mean, deviation = grid.u[:, 0].max() * q, np.sqrt(1 - q**2)
        assert norm.sf((plan.half_width - mean) / deviation) < 1e-10  # the plan promises 6.5 standard deviations


def test_faster_dynamics_gets_more_steps():
    slow, fast = plan_of(), plan_of("model.learning_rate = 0.2")
    assert fast.step_times.total > 5 * slow.step_times.total  # ten times the drift, a hundred times the diffusion


def test_initial_density_has_unit_mass_and_the_overlap_asked_for():
    limit = limit_of(make_problem(TWO_FEATURES))
    u, weight = feature_quadrature(limit.coordinates, 15)
    grid = Grid(np.linspace(-11, 11, 401), u, weight)
    P = initial_density(limit, grid)
    assert P.shape == grid.shape == (30, 400)
    assert P.sum(axis=1) * grid.h == pytest.approx(1.0, abs=1e-13)  # normalised: rounding
    mean = (P @ grid.centres) * grid.h
    # cell centres instead of integrals leave an error far below h^2 for a Gaussian of width >> h
    assert (weight * mean) @ u == pytest.approx([0.5, 0.3], abs=1e-10)  # midpoint rule for a Gaussian
    second = weight @ (P @ grid.centres**2) * grid.h
    assert second == pytest.approx(1 + grid.h**2 / 12, abs=1e-10)  # the centre of a cell misses h^2/12 of its variance


def test_nodes_are_the_product_of_the_rules_of_the_features():
    u, weight = feature_quadrature((GaussianCoordinate(), RademacherCoordinate()), 9)
    assert u.shape == (18, 2)
    assert set(u[:, 1]) == {-1.0, 1.0}
    assert weight.sum() == pytest.approx(1, abs=1e-15)  # rounding
    assert weight @ u == pytest.approx([0, 0], abs=1e-15)  # symmetric: rounding
    assert (u.T * weight) @ u == pytest.approx(np.eye(2), abs=1e-14)  # unit variances by construction: rounding


@pytest.mark.parametrize("nodes", range(2, 10))
def test_few_nodes_still_have_the_moments_that_q_needs(nodes):
    u, weight = feature_quadrature((GaussianCoordinate(),), nodes)
    assert len(u) == nodes
    assert weight @ u[:, 0] == pytest.approx(0, abs=1e-15)  # symmetric: rounding
    assert weight @ u[:, 0] ** 2 == pytest.approx(1, abs=1e-14)  # scaled to be exact: rounding


def test_averages_over_weights_of_narrow_laws_are_taken_in_blocks(monkeypatch):
    """All at once they took a quarter of a gigabyte at q = 0.999999."""
    blocks, average = [], start._work_given_means
    monkeypatch.setattr(start, "_work_given_means", lambda *given: (blocks.append(given[1].size), average(*given))[1])
    narrow = initial_work(limit_with("l1", (LaplaceCoordinate(),), (0.9999,)))
    assert np.isfinite(narrow)
    assert len(blocks) > 1
    assert max(blocks) <= 4096
