"""Densities of nodes against weights of SGD: distances of directions, verdicts, and what is not judged."""

import numpy as np
import pytest

import meanfield
from meanfield.comparison import format_comparison
from meanfield.families.latent_tree.many_nodes.ensemble import ensemble_of
from meanfield.families.latent_tree.many_nodes.latents import inner_times
from meanfield.families.latent_tree.problem import Problem
from meanfield.problems.problem_keys import with_values

LEAVES = {2: [[0.8, 0.5], [0.9, 0.6, 0.8, 0.7]], 3: [[0.8, 0.5], [0.9, 0.6, 0.8, 0.7, 0.8, 0.5]]}


def problem_of(leaves=2, nodes=200, fixed=True, positive=0.75, **more):
    data = {
        "tree": {"depth": 2, "children": [2, leaves], "polarity": LEAVES[leaves]},
        "network": {
            "nodes_per_latent": nodes,
            "initial": {"law": "sphere", "positive": positive, "fixed_lengths": fixed},
        },
        "training": {"learning_rate": 0.1, "batch_size": 64},
        "time": {"stop": 4.0, "outputs": 3},
        "density": {"scheme": "automatic" if leaves == 2 else "particles"},
        "particles": {"replicas": 16, "score_samples": 2, "common_start": False},
    }
    return Problem.model_validate(data | more)


def twice_as_fast(problem, runs):
    """Runs with twice the learning rate, whose steps are counted as those of the problem."""
    rate, stop = problem.training.learning_rate, problem.time.stop
    fast = with_values(problem, {"training.learning_rate": 2 * rate, "time.stop": 2 * stop})
    found = meanfield.solve(fast, "particles")
    return found.assign_coords(time=runs["time"], eta=runs["eta"]).assign_attrs(runs.attrs)


# Projections are judged as angles are, and their own test holds them against exact laws.
@pytest.mark.parametrize("leaves", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_runs_agree_with_their_density_and_differ_at_twice_the_learning_rate(leaves):
    problem = problem_of(leaves)
    density, runs = meanfield.solve(problem, "density"), meanfield.solve(problem, "particles")
    found = meanfield.compare(density, runs)
    assert found.attrs["verdict"] == "AGREES"
    assert np.isfinite(found["W1_chance"]).any()
    assert found["left_out"].values[0] == "selectivity, which only particles holds"
    apart = meanfield.compare(density, twice_as_fast(problem, runs))
    assert apart.attrs["verdict"] == "DIFFERS"
    assert np.all(apart["W1"].isel(time=-1) > found["W1"].isel(time=-1))
    assert "W1 distance of w" in format_comparison(apart)


def test_nodes_that_follow_the_density_are_at_no_distance():
    """Nodes that start evenly spread are pushed to the last time, where some of them are at gates."""
    few_steps = {"learning_rate": 0.5, "batch_size": 4}  # of runs whose weights are replaced below
    problem = problem_of(nodes=100, positive=1.0, time={"stop": 20.0, "outputs": 3}, training=few_steps)
    density, runs = meanfield.solve(problem, "density"), meanfield.solve(problem, "particles")
    nodes = ensemble_of(problem)
    at, _ = inner_times(nodes, problem.time.outputs_at)
    angle = nodes.flows.circle.gates[0] + 2 * np.pi * (np.arange(1600) + 0.5) / 1600
    arc = np.searchsorted(nodes.flows.circle.gates, angle, side="right") - 1
    weights = runs["weights"].values.copy()
    spread = weights[:, :, :400].reshape(16, 3, 2, 100, 2)
    for child, k in np.ndindex(2, 3):
        row = np.full(len(angle), 2 * child + 1)
        end = nodes.flows.push(row, angle, arc, at[k] * nodes.pull[row]).angle.reshape(100, 16).T
        spread[:, k, child] = np.stack([np.cos(end), np.sin(end)], axis=-1)
    weights[:, :, :400] = spread.reshape(16, 3, 400)
    found = meanfield.compare(density, runs.assign(weights=(runs["weights"].dims, weights)))
    # a quarter of the spacing of midpoints, and of a cell within which the density is constant
    assert float(found["W1"].max()) < 0.25 * 2 * np.pi * (1 / 1600 + 1 / 240)
    assert float(density["atom"].isel(time=-1).sum(["sign", "gate"]).min()) > 0.02


@pytest.mark.parametrize(("leaves", "bias"), [(3, False), (3, True)])
def test_projections_of_the_start_are_those_of_a_sphere(leaves, bias):
    """Uniform on the sphere of three weights, and of four with density (2/pi) sqrt(1 - x^2)."""
    problem = with_values(problem_of(leaves), {"network.bias": bias, "time.stop": 0.1, "density.scheme": "automatic"})
    density = meanfield.solve(problem, "density").isel(time=0)
    x = density["projection"]
    exact = (x * np.sqrt(1 - x**2) + np.arcsin(x)) / np.pi + 0.5 if bias else 0.5 * (1 + x)
    # points in triangles are as dense as a tenth of the projections; of particles by 3.5 standard errors, and the
    # largest of many
    allowed = 2.0 * float(density["projected_error"])
    assert float(abs(density["projected"] - exact).max()) < allowed < 0.05


def test_what_is_not_judged_is_said():
    problem = with_values(
        problem_of(nodes=2),
        {"time.stop": 1.0, "time.outputs": 21, "training.batch_size": 2, "training.learning_rate": 0.05},
    )
    density, runs = meanfield.solve(problem, "density"), meanfield.solve(problem, "particles")
    said = str(meanfield.compare(density, runs)["left_out"].values[0])
    assert "directions of weights but for 16 of 21 times that are evenly spread" in said
    assert "shares of the signs, 1 positive of 2 nodes in place of 0.75" in said
    statistics = meanfield.solve(with_values(problem, {"particles.record": "statistics"}), "particles")
    said = str(meanfield.compare(density, statistics)["left_out"].values[0])
    assert "directions of weights, which statistics do not keep" in said
    sphere = meanfield.solve(with_values(problem, {"density.scheme": "particles", "density.tolerance": 0.1}), "density")
    old = sphere.drop_vars(["projected", "projected_error", "axis", "projection"])
    said = str(meanfield.compare(old, runs)["left_out"].values[0])
    assert "directions of weights, because an older version solved the density: solve it again" in said
