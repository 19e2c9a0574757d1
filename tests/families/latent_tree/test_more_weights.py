"""The limit of many nodes with more than two weights: exact paths, triangles on the sphere, and particles."""

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield.errors import InputError
from meanfield.families.latent_tree.costs import density as cost_of_density
from meanfield.families.latent_tree.many_nodes import carried_density, sphere_density
from meanfield.families.latent_tree.many_nodes.carried import Carried, Paths
from meanfield.families.latent_tree.many_nodes.circle import Circle
from meanfield.families.latent_tree.many_nodes.gates import Gates
from meanfield.families.latent_tree.many_nodes.latents import parts_of
from meanfield.families.latent_tree.many_nodes.particle_density import carried_sample
from meanfield.families.latent_tree.many_nodes.sphere_density import carried_triangles
from meanfield.families.latent_tree.problem import Problem
from meanfield.numerics.sphere_cells import SphereCells

RHO = (0.9, 0.6, 0.8, 0.7, 0.8, 0.5, 0.7, 0.6, 0.9, 0.8)


def with_leaves(leaves=3, fixed=True, positive=0.7, nodes=40, stop=3.0, outputs=3, bias=False, rho=RHO, **more):
    """Two latents with some leaves each."""
    initial = {"law": "sphere", "fixed_lengths": fixed, "positive": positive, "seed": 3}
    data = {
        "tree": {"depth": 2, "children": [2, leaves], "polarity": [[0.8, 0.5], rho[: 2 * leaves]]},
        "network": {"nodes_per_latent": nodes, "bias": bias, "initial": initial},
        "time": {"stop": stop, "outputs": outputs},
    }
    return Problem.model_validate(data | more)


def inputs_of(leaves, count):
    return np.array(leaves, dtype=float)[np.indices((2,) * count).reshape(count, -1).T]


def drawn_nodes(rng, count, weights):
    w = rng.standard_normal((count, weights))
    return w / np.linalg.norm(w, axis=1, keepdims=True)


@pytest.mark.parametrize("leaves", [(0, 1), (-1, 1), (0.5, 1)])
def test_paths_in_the_plane_are_those_of_angles(leaves):
    """Of random slopes; angles know nothing of gates as planes."""
    rng = np.random.default_rng(0)
    inputs, factor = inputs_of(leaves, 2), 0.3 * rng.standard_normal((6, 4))
    circle, paths = Circle(inputs), Paths(Gates(inputs, factor))
    row, angle = rng.integers(0, 6, 400), circle.gates[0] + 2 * np.pi * rng.random(400)
    arc = np.searchsorted(circle.gates, angle, side="right") - 1
    for time in (0.3, 3.0, 300.0):
        expected = circle.flows(factor).push(row, angle, arc, np.full(400, time))
        nodes = paths.start(row, np.stack([np.cos(angle), np.sin(angle)], axis=1))
        found = paths.push(nodes, np.full(400, time))
        w = np.stack([np.cos(expected.angle), np.sin(expected.angle)], axis=1)
        assert np.allclose(found.w, w, rtol=0, atol=1e-10)  # rounding, which grows by e^(|g| t) from a point of rest
        assert np.allclose(found.growth, expected.growth, rtol=0, atol=1e-10)  # the same


@pytest.mark.parametrize("weights", [3, 4])
def test_paths_in_space_are_those_of_small_steps(weights):
    """Steps that do not look at gates go to and fro across those on which nodes stay; their error is of first order."""
    inputs = inputs_of((0, 1), weights)
    chance = [np.prod(np.where(inputs == z, 0.9 - 0.1 * np.arange(weights), 0.1 + 0.1 * np.arange(weights)), axis=1)
              for z in (1, 0)]  # fmt: skip
    factor = chance[0] - chance[1]
    start, time = drawn_nodes(np.random.default_rng(weights), 200, weights), 8.0
    paths = Paths(Gates(inputs, factor[None]))
    exact = paths.push(paths.start(np.zeros(200, dtype=int), start), np.full(200, time))
    assert (exact.side == 0).any(axis=1).sum() > 20  # many come to a gate and stay
    errors = []
    for steps in (1000, 4000):
        w = start.copy()
        for _ in range(steps):
            g = ((w @ inputs.T > 0) * factor) @ inputs
            w += time / steps * (g - np.sum(g * w, axis=1, keepdims=True) * w)
            w /= np.linalg.norm(w, axis=1, keepdims=True)
        errors.append(np.sort(np.linalg.norm(w - exact.w, axis=1))[:-4])  # steps may throw some across a gate
    assert errors[0].max() < 20.0 / 1000  # of first order
    assert errors[1].mean() < 0.35 * errors[0].mean()  # a fourth, of first order


SAME = [
    (3, False, True),
    (2, True, False),
    pytest.param(4, False, False, marks=pytest.mark.slow),  # paths of four weights are followed in the test above
]


@pytest.mark.parametrize(("leaves", "bias", "fixed"), SAME)
def test_the_same_nodes_move_as_in_the_population(leaves, bias, fixed, monkeypatch):
    """A network of a few nodes, solved by tables and events in all its weights together."""
    monkeypatch.setattr(carried_density, "STEP_OF_FASTEST", 0.005)
    problem = with_leaves(leaves, fixed, 1.0, nodes=6, stop=1.5, bias=bias)
    start = problem.initial_weights
    w = np.concatenate([start.W[0].reshape(2, 6, leaves), *([start.b[0][..., None]] if bias else [])], axis=-1)
    parts = parts_of(problem)
    both = [Carried(*_one_latent(parts, k), w[k], np.full(6, 1 / 6), np.full(6, 1 / 6)) for k in (0, 1)]
    Delta = meanfield.solve(problem, "population")["selectivity"].isel(latent=0, node=0).values * 2.0
    flow = _Together(both)
    at, status = carried_density.marched_times(flow, problem.time.outputs_at, "test")
    assert status == "complete"
    assert np.allclose([flow.Delta(T) for T in at], Delta, rtol=2e-6)  # splines over kinks of six nodes, in short steps


def _one_latent(parts, k):
    return parts[0], parts[1][k : k + 1], parts[2][k : k + 1], *parts[3:]


class _Together:
    """Latents whose nodes start elsewhere."""

    def __init__(self, parts):
        self.parts, self.o, self.sign, self.grows = parts, parts[0].o, parts[0].sign, parts[0].grows
        self.fastest = max(part.fastest for part in parts)

    def Delta(self, T):
        return sum(part.Delta(T) for part in self.parts)


def test_triangles_cover_the_sphere_and_cross_no_gate():
    triangles, nodes = carried_triangles(with_leaves(), 16)
    assert triangles.mass.sum() == pytest.approx(1.0, abs=1e-13)  # rounding
    assert np.allclose(triangles.moment.sum(axis=0), 0.0, atol=1e-13)  # the same
    side = (triangles.w @ nodes.paths.gates.normal.T > 0.0)[triangles.corners]
    assert (side == side[:, :1]).all()
    whole_sphere = 2.0 * nodes.polarity @ np.sum(nodes.difference * nodes.first_activity, axis=1)
    assert nodes.Delta(0.0) == pytest.approx(whole_sphere, rel=1e-12)  # slopes are linear in triangles; rounding
    some = carried_sample(with_leaves(), 12, 0)
    assert some.Delta(0.0) == pytest.approx(whole_sphere, rel=5e-3)  # a few times 1/nodes


# With trained lengths, the same triangles are held against many more of them in a test below.
@pytest.mark.parametrize("fixed", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_averages_over_triangles_converge_faster_than_at_first_order(fixed):
    """Paths that pass a corner of gates on one side or the other jump, so that the order is between 1 and 2."""
    problem = with_leaves(fixed=fixed, rho=(0.9, -0.6, 0.3, 0.7, 0.8, -0.5))
    found = []
    for count in (6, 12, 24, 48):
        nodes = carried_triangles(problem, count)[1]
        found.append([nodes.Delta(nodes.sign * T) for T in (0.5, 1.0, 2.0, 4.0)])
    differences = np.abs(np.diff(found, axis=0)).mean(axis=1)
    assert differences[2] < 0.25**1.2 * differences[0]  # order 1.2 in two halvings
    assert differences[0] < 0.05 * np.abs(found).max()  # sides are a sixth of pi, squared over a few


def test_a_density_on_the_sphere_has_its_mass_and_the_mean_outputs_of_particles():
    problem = with_leaves(stop=1.5)
    cells = meanfield.solve(problem, "density")
    assert cells.attrs["method"] == "sphere_density"
    area = xr.DataArray(SphereCells(cells.sizes["polar"]).area, dims=("polar", "azimuth"))
    total = (cells["rho_on_sphere"] * area).sum(["sign", "polar", "azimuth"])
    assert np.allclose(total, 1.0, rtol=0, atol=1e-12)  # rounding
    assert np.allclose(cells["idle"][0].sum("sign"), 1 / 8, atol=1 / 16**2)  # an octant, but for triangles on its edge
    particles = meanfield.solve(with_leaves(stop=1.5, density={"scheme": "particles"}), "density")
    assert "warning" not in particles.attrs
    allowed = cells["Delta_error"] + particles["Delta_error"]
    # chance exceeds the errors of particles once in 100 times
    assert (abs(cells["Delta"] - particles["Delta"]) <= allowed + 1e-12).all()
    assert float(allowed.max()) < 0.01  # twice the tolerance
    for name in ("held", "idle"):
        assert np.allclose(cells[name], particles[name], atol=0.01)  # a few times the root of 1/(8 128) of shares < 1/8
    assert np.allclose((particles["w_sample"].sel(sign=1.0) ** 2).sum("input"), 1.0)  # lengths that stay; rounding
    limit = cells["square"].values
    assert np.allclose(limit, 1.0, rtol=0, atol=1e-12)  # the same


def test_errors_of_the_sphere_bound_the_difference_to_many_triangles(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sphere_density, "FEWEST", sphere_density.FEWEST // 2)  # as many are enough for most tolerances
        coarse = meanfield.solve(with_leaves(fixed=False, stop=1.5), "density")
    fine = meanfield.solve(with_leaves(fixed=False, stop=1.5, density={"tolerance": 2e-4}), "density")
    assert (abs(coarse["Delta"] - fine["Delta"]) <= coarse["Delta_error"] + fine["Delta_error"] + 1e-12).all()
    assert float(abs(coarse["Delta"] - fine["Delta"]).max()) > 0.3 * float(coarse["Delta_error"].max())
    assert float(fine["Delta_error"].max()) < 2e-4  # the tolerance
    assert np.allclose(coarse["loss"], -0.25 * coarse["Delta"] ** 2)  # rounding


def test_more_weights_are_particles_by_themselves():
    result = meanfield.solve(with_leaves(bias=True, stop=1.0, density={"tolerance": 0.05}), "density")
    assert result.attrs["method"] == "node_particles"
    assert "because nodes have 3 weight(s) and a bias" in result.attrs["warning"]
    assert result["w_sample"].sizes["input"] == 4
    endless = meanfield.solve(
        with_leaves(stop=1e3, outputs=2, fixed=False, density={"scheme": "particles", "tolerance": 0.1}), "density"
    )
    assert endless.attrs["status"].startswith("failed: at t = ")


def test_what_cannot_be_followed_is_refused():
    for problem, words in (
        (with_leaves(5, density={"scheme": "finite_volumes"}), "cells are for two or three"),
        (with_leaves(9, rho=RHO + RHO), "paths of nodes are followed with 8 at most"),
        (with_leaves(positive=0.5), "infinitely many nodes never move"),
    ):
        with pytest.raises(InputError) as error:
            meanfield.solve(problem, "density")
        assert words in str(error.value)


@pytest.mark.parametrize("leaves", [3, 4])
def test_costs_are_predicted(leaves):
    predicted = cost_of_density(with_leaves(leaves))
    assert 0.05 < predicted.seconds < 60.0  # a second, on machines that differ
    assert predicted.memory > 1e6


@pytest.mark.slow
@pytest.mark.parametrize(("leaves", "bias"), [(3, False), (2, True), (4, False)])
def test_populations_of_many_nodes_come_to_the_limit(leaves, bias):
    """Networks of K nodes are off by K^(-1/2), and their mean by less."""
    limit = meanfield.solve(with_leaves(leaves, bias=bias, density={"tolerance": 1e-3}), "density")
    spread = []
    for nodes in (10, 40):
        found = []
        for seed in range(16):
            problem = with_leaves(leaves, nodes=nodes, bias=bias)
            result = meanfield.solve(meanfield.with_value(problem, "network.initial.seed", seed), "population")
            found.append(2.0 * float(result["selectivity"][-1, 0, 0]))
        spread.append(np.std(found, ddof=1))
        error = 4.0 * spread[-1] / np.sqrt(16) + float(limit["Delta_error"][-1])
        # 4 standard errors are exceeded once in 9e2 times by 16 runs; the mean of K nodes is off by 1/K
        assert abs(np.mean(found) - float(limit["Delta"][-1])) < error + 1.0 / nodes * abs(np.mean(found))
    assert 1.0 < spread[0] / spread[1] < 4.0  # 2, with an error of a quarter


@pytest.mark.slow
@pytest.mark.parametrize("fixed", [True, False])
def test_sgd_follows_the_sphere(fixed):
    training, particles = {"learning_rate": 0.05, "batch_size": 32}, {"replicas": 8, "score_samples": 2}
    problem = with_leaves(fixed=fixed, nodes=400, stop=1.0, outputs=2, training=training, particles=particles)
    density, sgd = meanfield.solve(problem, "density"), meanfield.solve(problem, "particles")
    Delta = 2.0 * sgd["selectivity"].isel(latent=0, node=0, time=-1)
    error = float(Delta.std("replica", ddof=1)) / np.sqrt(8)
    # 4.5 standard errors leave a false alarm once in 1e3 seeds of 8 runs; nodes vary by 1/sqrt(nodes) of s, 0.35
    assert abs(float(Delta.mean() - density["Delta"][-1])) < 4.5 * error + 4.5 * 0.35 / np.sqrt(400)
