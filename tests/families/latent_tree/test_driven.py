"""The limit of many nodes where outputs are normalised, or the loss is another, against plain SGD and exact paths."""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.latent_tree.costs import density as cost_of_density
from meanfield.families.latent_tree.many_nodes import driven, particle_density, solver
from meanfield.families.latent_tree.many_nodes.carried import Paths
from meanfield.families.latent_tree.many_nodes.gates import Gates
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.tables import Tables
from meanfield.families.latent_tree.weights import ManyNodes
from tests.families.latent_tree.test_many_nodes import on_the_circle
from tests.families.latent_tree.test_more_weights import drawn_nodes, inputs_of

ROOT = (0.8, 0.5)

LEAVES = ((0.9, 0.6), (0.8, 0.7))


def problem_of(outputs=2, fixed=True, loss=None, normalised=True, epsilon=0.3, nodes=400, replicas=8, **more):
    """Two latents with two leaves each."""
    initial = {"law": "sphere", "positive": 0.8, "fixed_lengths": fixed, "outputs": outputs}
    network = {"nodes_per_latent": nodes, "initial": initial, "output_normalisation": normalised}
    data = {
        "tree": {"depth": 2, "polarity": [ROOT, [*LEAVES[0], *LEAVES[1]]]},
        "network": network | ({"epsilon": epsilon} if normalised else {}),
        "loss": loss or {},
        "training": {"learning_rate": 0.05, "batch_size": 128},
        "time": {"stop": 3.0, "outputs": 3},
        "particles": {"common_start": False, "replicas": replicas, "seed": 1},
    }
    return Problem.model_validate(data | more)


def views_given_root():
    """Probabilities of the inputs of both latents given the root, shape (2, 2, 4), written out."""
    found = np.zeros((2, 2, 4))
    for latent, root, value, first, second in np.ndindex(2, 2, 2, 2, 2):
        chance = (1 + ROOT[latent] * (1 if value == root else -1)) / 2
        for leaf, rho in zip((first, second), LEAVES[latent], strict=True):
            chance *= (1 + rho * (1 if leaf == value else -1)) / 2
        found[latent, root, 2 * first + second] += chance
    return found


def plain_sgd(n, outputs, fixed, runs, seed, epsilon=0.3, rate=0.05, batch=512, stop=3.0):
    """Delta at the end of runs of SGD with the loss r+ - r-, of nodes drawn anew, in NumPy alone."""
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
    chance = views_given_root()
    full = [np.outer(chance[0, z], chance[1, z]).ravel() for z in (0, 1)]
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(runs):
        w = rng.standard_normal((2, n, 2))
        w /= np.linalg.norm(w, axis=-1, keepdims=True)
        v = np.zeros((2, n, outputs))
        v[0, :, 0] = v[1, :, outputs - 1] = np.where(np.arange(n) < 0.8 * n, 1.0, -1.0)
        for _ in range(round(stop / rate)):
            a = np.maximum(w @ x.T, 0.0)
            parts = np.einsum("mjk,mjc->mck", v, a) / n
            f = (parts[0][:, None] + parts[1][None]).reshape(16, outputs)
            length = np.linalg.norm(f, axis=1, keepdims=True)
            y = f / (length + epsilon)
            roots = rng.random((2, batch)) < 0.5
            drawn = [np.array([rng.choice(16, batch, p=full[z]) for z in (0, 1)]) for _ in range(3)]
            first, positive = (np.where(roots[0], d[1], d[0]) for d in drawn[:2])
            negative = np.where(roots[1], drawn[2][1], drawn[2][0])
            by_y = np.zeros((16, outputs))
            np.add.at(by_y, first, (y[negative] - y[positive]) / batch)
            np.add.at(by_y, positive, (y[positive] - y[first]) / batch)
            np.add.at(by_y, negative, (y[first] - y[negative]) / batch)
            by_f = np.zeros((16, outputs))
            for c in range(16):
                if length[c] > 0:
                    J = np.eye(outputs) / (length[c] + epsilon)
                    J -= np.outer(f[c], f[c]) / (length[c] * (length[c] + epsilon) ** 2)
                    by_f[c] = J @ by_y[c]
            table = by_f.reshape(4, 4, outputs)
            pull = np.stack([table.sum(axis=1), table.sum(axis=0)])
            gw = np.einsum("mck,mjk,mjc,ci->mji", pull, v, w @ x.T > 0, x)
            if not fixed:
                v = v - rate * np.einsum("mck,mjc->mjk", pull, a)
            w = w - rate * gw
            if fixed:
                w /= np.linalg.norm(w, axis=-1, keepdims=True)
        a = np.maximum(w @ x.T, 0.0)
        parts = np.einsum("mjk,mjc->mck", v, a) / n
        f = (parts[0][:, None] + parts[1][None]).reshape(16, outputs)
        y = f / (np.linalg.norm(f, axis=1, keepdims=True) + epsilon)
        found.append(np.linalg.norm((full[1] - full[0]) @ y))
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize(("outputs", "fixed"), [(2, True), (1, False)])
def test_plain_sgd_comes_to_it_with_the_root_of_the_number_of_nodes(outputs, fixed):
    limit = float(meanfield.solve(problem_of(outputs, fixed), "density")["Delta"][-1])
    few, many = (plain_sgd(n, outputs, fixed, 24, seed=n) - limit for n in (20, 320))
    # Starts scatter by 1/sqrt(n), a fourth; 24 runs each are off by a seventh of it: six standard errors.
    assert 2.2 < np.sqrt((few**2).mean() / (many**2).mean()) < 7.0
    # Four standard errors, and the bias of a mean over starts, which is less than that of 20 nodes by 16.
    assert abs(many.mean()) < 4.0 * many.std() / np.sqrt(24) + abs(few.mean()) / 16


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["simple", "infonce"])
def test_sgd_agrees_unless_it_is_twice_as_fast(loss, monkeypatch):
    problem = problem_of(loss={"kind": loss} | ({"temperature": 0.5} if loss == "infonce" else {}))
    density = meanfield.solve(problem, "density")
    assert meanfield.compare(density, meanfield.simulate_sgd(problem))["verdict"].values[0] == "AGREES"
    velocity = ManyNodes.velocity
    monkeypatch.setattr(ManyNodes, "velocity", lambda *arguments: 2.0 * velocity(*arguments))
    assert meanfield.compare(density, meanfield.simulate_sgd(problem))["verdict"].values[0] == "DIFFERS"


@pytest.mark.parametrize("fixed", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_steps_come_to_exact_paths(fixed, monkeypatch):
    """With the loss `simple` of the output itself there is a time in which nodes do not see each other."""
    problem = on_the_circle(fixed, positive=0.7, outputs=5, density={"cells": 24})
    exact = meanfield.solve(problem, "density")
    for module in (driven, particle_density, solver):
        monkeypatch.setattr(module, "has_inner_time", lambda problem: False)
    found = meanfield.solve(problem, "density")
    for name in ("Delta", "loss"):
        assert (abs(found[name] - exact[name]) <= found[f"{name}_error"] + 1e-12).all()  # rounding
    assert float(found["Delta_error"].max()) < 1e-3  # a fifth of the tolerance
    assert np.allclose(found["square"], exact["square"], rtol=1e-3)  # steps of second order
    assert np.allclose(found["atom"], exact["atom"], atol=1 / 256)  # a piece of the circle
    width = np.diff(found["angle_bnds"])[:, 0]
    total = (found["rho"] * width).sum(["angle", "sign"]) + found["atom"].sum(["gate", "sign"])
    assert np.allclose(total, 1.0, rtol=0, atol=1e-6)  # ends of pieces that are the same place
    assert np.allclose(found["rho"] * width, exact["rho"] * width, atol=1 / 256)  # a piece of the circle
    if fixed:
        return
    particles = meanfield.solve(meanfield.with_value(problem, "density.scheme", "particles"), "density")
    assert (abs(particles["Delta"] - exact["Delta"]) <= particles["Delta_error"] + 1e-3).all()


@pytest.mark.slow
def test_a_density_on_the_sphere_is_that_of_sgd():
    """Three weights, with a bias at the root, which moves where outputs are normalised."""
    network = {"nodes_per_latent": 400, "bias": True, "output_normalisation": True, "epsilon": 0.3}
    initial = {"law": "sphere", "positive": 0.8, "fixed_lengths": True, "outputs": 2}
    problem = problem_of(network=network | {"initial": initial}, time={"stop": 1.0, "outputs": 3})
    sphere = meanfield.solve(problem, "density")
    assert sphere.attrs["method"] == "sphere_density"
    sgd = meanfield.simulate_sgd(problem)
    assert meanfield.compare(sphere, sgd)["verdict"].values[0] == "AGREES"


LOSSES = [
    {"kind": "simple"},
    {"kind": "beta", "beta": 0.3},
    {"kind": "infonce", "temperature": 0.4, "negatives": 2},
    {"kind": "exact", "temperature": 0.4},
    {"kind": "batch_ratio", "temperature": 0.4},
]


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_slopes_by_what_latents_add_are_finite_differences(loss, normalised):
    tables = Tables(problem_of(loss=loss, normalised=normalised, epsilon=0.1))
    parts = np.random.default_rng(0).standard_normal((2, 4, 2))
    value, _, slope = tables.of_children(parts)
    wanted = np.zeros_like(parts)
    weight = tables.of_children if loss["kind"] != "exact" else None
    for place in np.ndindex(*parts.shape):
        moved = [parts.copy() for _ in range(2)]
        moved[0][place] += 1e-6
        moved[1][place] -= 1e-6
        if weight is not None:
            wanted[place] = (weight(moved[0])[0] - weight(moved[1])[0]) / 2e-6
        else:  # weights of pairs are held
            wanted[place] = (_held(tables, parts, moved[0]) - _held(tables, parts, moved[1])) / 2e-6
    assert np.allclose(slope, wanted, rtol=0, atol=1e-8)  # rounding over the step
    assert np.isfinite(value)


def _held(tables, first, parts):
    """Loss `exact` with the weights of other outputs, over all pairs of views."""
    p, P = tables.views.p, np.einsum("zc,zd->zcd", *tables.given_parent[-1]).reshape(2, -1)
    y = [tables.problem.normalisation.value((a[0][:, None] + a[1]).reshape(16, 2)) for a in (first, parts)]
    weight = tables.problem.contrast.weight(0.5 * ((y[0][:, None] - y[0]) ** 2).sum(axis=-1))
    mean = P @ y[1]
    total = 0.0
    for z, z_ in np.ndindex(2, 2):
        kappa = P[z] @ weight @ P[z_]
        spread = P[z] @ (y[1] ** 2).sum(axis=1) - (mean[z] ** 2).sum()
        apart = 0.5 * (P[z] @ (y[1] ** 2).sum(axis=1) + P[z_] @ (y[1] ** 2).sum(axis=1)) - mean[z] @ mean[z_]
        total += p[z] * p[z_] * kappa * (spread - apart)
    return total


def test_nodes_on_gates_go_on_as_by_the_rule_for_many_gates():
    rng = np.random.default_rng(2)
    inputs = inputs_of((0, 1), 3)
    gates = Gates(inputs, rng.standard_normal((4, 8)))
    nodes = Paths(gates).start(rng.integers(0, 4, 200), drawn_nodes(rng, 200, 3))
    gate = rng.integers(0, len(gates.normal), 200)
    nodes.side[np.arange(200), gate] = 0
    found = Paths(gates).taken_up(nodes)
    outcomes = set()
    for i in range(200):
        side, slope = gates.onward(int(nodes.row[i]), nodes.side[i], np.zeros(len(gates.normal), dtype=bool))
        assert (found.side[i] == side).all()
        assert np.allclose(found.slope[i], slope, rtol=0, atol=1e-12)  # rounding
        outcomes.add(int(side[gate[i]]))
    assert outcomes == {-1, 0, 1}


def test_what_does_not_move_or_has_no_paths_is_refused_and_the_remedy_works():
    sign = problem_of(outputs=1, epsilon=0.0)
    with pytest.raises(InputError, match=r"normalised to its sign.*network\.epsilon to more than 0"):
        meanfield.solve(sign, "density")
    meanfield.solve(meanfield.with_value(sign, "network.epsilon", 0.1), "density")
    with pytest.raises(InputError, match=r"loss\.kind = 'nt_xent'"):
        meanfield.solve(problem_of(outputs=1, normalised=False, loss={"kind": "nt_xent"}), "density")
    turning = problem_of(fixed=False)
    with pytest.raises(InputError, match=r"outputs = 2 with fixed_lengths = false"):
        meanfield.solve(turning, "density")
    with pytest.raises(InputError, match=r"never move"):
        meanfield.solve(meanfield.with_value(problem_of(), "network.initial.positive", 0.5), "density")
    with pytest.raises(InputError, match=r"network\.initial\.outputs = 3"):
        problem_of(outputs=3)


def test_costs_of_steps_are_predicted():
    for changes in ({}, {"density": {"scheme": "particles"}}):
        assert cost_of_density(problem_of(**changes)).seconds > 0.0
