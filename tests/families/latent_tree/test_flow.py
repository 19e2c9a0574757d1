"""Gradient flow of the population: exact solutions, invariants, blow-up, and sliding along the kink of a node."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import meanfield
from meanfield.families.latent_tree.pieces import Pieces, Surface
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.tables import Tables
from tests.families.latent_tree.problems import case_b, drawn


def weights_of(result, problem):
    return [problem.initial_weights.like(row) for row in result["weights"].values]


def test_a_linear_network_grows_along_its_operator():
    """One level: W' = 2 p0 p1 (2 a)(2 a)^T W with the gaps 2 a = rho of the leaves, so that W.a grows exponentially."""
    rho = np.array([0.9, -0.4])
    data = {"tree": {"depth": 1, "root": [0.3, 0.7], "polarity": [rho.tolist()]}, "network": {"nodes_per_latent": 2}}
    problem = Problem.model_validate(data | {"time": {"stop": 1.5, "outputs": 4}})
    result = meanfield.solve(problem, "population")
    W = problem.initial_weights.W[0][0, :, :, 0]
    rate, along = 2 * 0.3 * 0.7 * rho @ rho, np.outer(rho, rho) / (rho @ rho)
    for t, weights in zip(result["time"].values, weights_of(result, problem), strict=True):
        expected = W + W @ along * np.expm1(rate * t)
        assert np.allclose(weights.W[0][0, :, :, 0], expected, rtol=1e-8)  # ten times the tolerance of a step
    expected = float(result["loss"][0]) * np.exp(2 * rate * result["time"])
    assert np.allclose(result["loss"], expected, rtol=2e-8)  # a square: twice the weights'


def test_a_node_moves_along_the_reference_path():
    """The path of (w, v) is that of one node among many, whatever the clock: (w, v) at the v of the reference."""
    data = {
        "tree": {"depth": 2, "children": [1, 2], "polarity": [[0.8], [0.9, 0.6]]},
        "network": {"initial": {"law": "explicit", "weights": [[[[0.7, -0.3]]], [[[0.5]]]]}, "nodes_per_latent": 1},
        "time": {"stop": 3.5, "outputs": 141},
        "population": {"tolerance": 1e-12},
    }
    problem = Problem.model_validate(data)
    path = weights_of(meanfield.solve(problem, "population"), problem)
    w, v = np.array([x.W[0].ravel() for x in path]), np.array([x.W[1].item() for x in path])
    found = CubicSpline(v, w)(0.642587773615)
    expected = [0.842688857268, -0.181092618943]
    assert np.allclose(found, expected, rtol=0, atol=1e-12)  # half a unit of the last digit of w, v, and rounding


def test_weights_become_infinite_at_the_reference_time():
    result = meanfield.solve(case_b(stop=2.0, outputs=5, population={"tolerance": 1e-7}), "population")
    assert result.attrs["status"].startswith("failed: at t = 1.277")
    assert "network.output_normalisation" in result.attrs["status"]
    assert np.isfinite(result["loss"][:3]).all()
    assert np.isnan(result["loss"][3:]).all()


def test_nodes_and_levels_keep_their_invariants():
    """|in|^2 - |out|^2 of each hidden node, and with normalised outputs also |W| of each level."""
    problem = case_b(normalised=True, stop=5.0)
    result = meanfield.solve(problem, "population")
    first, *_, last = weights_of(result, problem)

    def balance(weights):
        return (weights.W[1] ** 2).sum(axis=(0, 1)) - (weights.W[0] ** 2).sum(axis=(2, 3))

    assert np.abs(first.vector - last.vector).max() > 0.1
    assert np.allclose(balance(first), balance(last), rtol=0, atol=1e-7)  # a hundred times the tolerance of a step
    for before, after in zip(first.W, last.W, strict=True):
        assert np.linalg.norm(after) == pytest.approx(np.linalg.norm(before), abs=1e-7)  # the same


def small_steps(tables, weights, stop, dt):
    """Euler steps through all kinks: an oracle that knows nothing of them. It averages over them where it slides."""
    y = weights.vector
    for _ in range(round(stop / dt)):
        y = y - dt * tables.loss_and_gradient(weights.like(y))[1].vector
    return y


@pytest.mark.slow  # pieces of nodes that slide, beside small steps, are in test_ring.py
def test_the_flow_slides_where_both_sides_lead_to_a_kink():
    """Two nodes slide here, and one stops at once, when another node changes."""
    seed = {"law": "uniform", "seed": 13}
    data = {
        "tree": {"depth": 3, "children": [1, 2, 2], "polarity": seed | {"low": 0.5, "random_sign": True}},
        "network": {"nodes_per_latent": 4, "output_normalisation": True, "epsilon": 0.1, "initial": seed}
        | {"bias": True},
        "loss": {"kind": "exact", "temperature": 0.5},
        "time": {"stop": 4.0, "outputs": 2},
    }
    problem = Problem.model_validate(data)
    tables, weights = Tables(problem), problem.initial_weights
    pieces = Pieces(tables, weights, problem.time.outputs_at, 1e-8)
    while pieces.time < 4.0:
        pieces.follow()
    assert pieces.slides == 2, "another start is needed to test what happens"
    coarse, fine = (np.abs(small_steps(tables, weights, 4.0, dt) - pieces.states[-1]).max() for dt in (0.02, 0.005))
    assert coarse < 0.02 * np.abs(pieces.states[-1] - weights.vector).max()
    assert fine < 0.4 * coarse  # first order in the step: a quarter


def test_the_flow_is_interrupted_with_what_was_computed():
    from meanfield.process.progress import interrupted_after

    problem = drawn((2, 2), nodes=2, normalised=True, bias=True)
    with interrupted_after(0):
        result = meanfield.solve(problem, "population")
    assert result.attrs["status"] == "interrupted"
    assert np.isfinite(result["loss"][0])


def test_a_linear_neuron_grows_in_the_subspace_that_views_keep():
    """Section 5.1: x = s + n with n drawn anew by views: OP = Q V[x] Q, and W = W(0) exp(2 Q V[x] Q t)."""
    rng = np.random.default_rng(2)
    basis, _ = np.linalg.qr(rng.standard_normal((4, 4)))
    kept, lost = (
        rng.standard_normal((3, 2)) @ basis[:, :2].T,
        3.0 * np.concatenate([basis[:, 2:], -basis[:, 2:]], axis=1).T,
    )
    x = (kept[:, None] + lost).reshape(12, 4)
    transitions = [[np.kron(np.eye(3), np.full(4, 0.25)).tolist()]]
    root, data = np.array([0.5, 0.2, 0.3]), {"network": {"nodes_per_latent": 2}, "time": {"stop": 1.0, "outputs": 3}}
    tree = {"depth": 1, "children": 1, "values": [3, 12], "root": root.tolist(), "leaves": x.tolist()}
    problem = Problem.model_validate(data | {"tree": tree | {"transitions": transitions}})
    Q, p = basis[:, :2] @ basis[:, :2].T, np.repeat(root / 4, 4)
    V = (x - p @ x).T @ ((x - p @ x) * p[:, None])
    assert np.linalg.eigvalsh(V)[-1] > 2 * np.linalg.eigvalsh(Q @ V @ Q)[-1]  # else any method finds the subspace
    operator, flow = (meanfield.solve(problem, method) for method in ("operator", "population"))
    size, vectors = np.linalg.eigh(Q @ V @ Q)
    assert float(operator["operator_top"][0]) == pytest.approx(size[-1], rel=1e-12)  # rounding
    for t, w in zip(flow["time"].values, flow["weights"].values, strict=True):
        exact = problem.initial_weights.vector.reshape(2, 4) @ (vectors * np.exp(2 * size * t)) @ vectors.T
        assert np.allclose(w.reshape(2, 4), exact, rtol=0, atol=1e-8 * np.abs(exact).max())  # the tolerance of steps


@pytest.mark.slow  # the time at which weights become infinite is that of a reference above
def test_nodes_that_change_just_before_weights_become_infinite_are_no_reason_to_stop():
    """Four nodes of three levels reach 0 within the rounding of the time at which weights become infinite."""
    tree = {"depth": 3, "polarity": {"law": "uniform", "low": 0.7, "seed": 3}}
    data = {"tree": tree, "network": {"nodes_per_latent": 4}, "time": {"stop": 6.0, "outputs": 3}}
    result = meanfield.solve(Problem.model_validate(data), "population")
    assert result.attrs["status"].startswith("failed: at t = 3.65491: the largest weight is 468 and becomes infinite")


def test_nodes_above_others_have_the_slopes_with_which_all_of_them_stay():
    """Their speeds are of the second degree in the slopes of nodes below; secants led to others, or to none."""
    problem = meanfield.load_problem("data/problems/latent_tree.toml")
    start = meanfield.with_value(problem, "network.initial.seed", 2).initial_weights
    pieces = Pieces(Tables(problem), start, np.array([0.0, 1.0]), 1e-9)
    places = [(0, 2, 1, 1), (0, 3, 0, 2), (1, 1, 1, 9)]
    pieces._sliding = [Surface(a, b, c, np.arange((4, 16)[a]) == where) for a, b, c, where in places]
    pieces._slopes = np.full(3, 0.5)
    slopes = pieces._solved(start.vector)
    assert np.all((slopes > 0.0) & (slopes < 1.0))
    assert np.abs(pieces._speeds(start.vector, pieces._sliding)).max() < 1e-15  # rounding of speeds of 1e-4
