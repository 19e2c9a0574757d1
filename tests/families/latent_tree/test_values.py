"""Latents with more than two values, against enumeration of all values of all latents."""

import numpy as np
import pytest

import meanfield
from meanfield.families.latent_tree import network
from meanfield.families.latent_tree.operators import operators
from meanfield.families.latent_tree.samples import Sampler
from meanfield.families.latent_tree.tables import Tables
from tests.families.latent_tree import enumeration
from tests.families.latent_tree.problems import REGULAR, several
from tests.families.latent_tree.test_exact import EVERY_CASE, evaluated
from validation.latent_tree.figures.many_values import polarised, train

STEPS_AWAY = 4.9
"""Standard errors that a mean of a fixed seed may be off: once in 1e6 seeds."""

GIVEN = {"transitions": [[[[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]]], [[[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]]]]}
"""Edges that are not regular, from a root with two values over latents with three."""

ONE_LEAF = {"polarity": [[0.8, -0.4], [0.9, 0.6]]}
"""Edges of two levels, of which the lower has one child each."""


@pytest.mark.parametrize(("loss", "normalised"), EVERY_CASE)
def test_losses_and_gradients_are_those_of_enumeration(loss, normalised):
    loss = {name: value for name, value in loss.items() if name != "batch_size"}
    for problem in (
        several(children=[2, 1], edges=ONE_LEAF, normalised=normalised, **loss),
        several([3, 3, 2], children=[1, 2], normalised=normalised, edges=REGULAR, leaves=[-1.0, 0.5], **loss),
        several([2, 3, 2], children=[2, 1], normalised=normalised, edges=GIVEN, **loss),
    ):
        problem = meanfield.with_value(problem, "training.batch_size", 2)
        _, found, evaluation, gradient = evaluated(problem)
        W, b = ([part.astype(complex) for part in parts] for parts in (found.weights.W, found.weights.b))
        value, slopes = enumeration.gradient(problem, W, b)
        assert evaluation.value == pytest.approx(value, rel=1e-12, abs=1e-16)  # rounding
        scale = np.abs(slopes).max()
        assert np.allclose(gradient.vector, slopes, rtol=0, atol=1e-12 * scale + 1e-16)  # rounding


@pytest.mark.parametrize(("loss", "normalised"), EVERY_CASE)
def test_operators_give_the_gradient_of_the_root(loss, normalised):
    loss = {name: value for name, value in loss.items() if name != "batch_size"}
    problem = meanfield.with_value(several(normalised=normalised, bias=False, **loss), "training.batch_size", 2)
    tables, found, evaluation, gradient = evaluated(problem)
    operator, *others = operators(tables, found, evaluation)
    expected = -gradient.W[-1].ravel()
    assert np.abs(expected).max() > 1e-8  # else nothing is tested
    product = 2.0 * operator.matrix @ found.weights.W[-1].ravel()
    assert np.allclose(product, expected, rtol=0, atol=1e-12 * np.abs(expected).max())  # rounding
    for each in (operator, *others):
        values = np.linalg.eigvals(each.matrix)
        assert each.norm == pytest.approx(np.linalg.norm(each.matrix), rel=1e-10)  # rounding
        assert each.top == pytest.approx(values.real.max(), rel=1e-6, abs=1e-9)  # defective eigenvalues


@pytest.mark.parametrize("problem", [several(), several([4, 3, 3], edges=REGULAR)], ids=["symmetric", "regular"])
def test_means_of_activations_vary_with_the_root_as_products_of_transitions_say(problem):
    """Lemmas 6 and 9: Var E[f|z0] = V^T (P0 - P0 1 1^T P0) V with V = P v, P = 11^T/m + C C' along the path."""
    tables, tree = Tables(problem), problem.tree
    passed = tables.forward(problem.initial_weights)
    P0 = np.diag(tree.root)
    middle = P0 - P0 @ np.ones((len(P0), len(P0))) @ P0
    V = np.concatenate(list(tree.edges[1] @ (tables.given_latent[1] @ passed.after[1])), axis=1)
    leaves, P = enumeration.leaf_law(problem)
    f = np.maximum(network.forward(problem.initial_weights, leaves).before[0], 0.0)
    means = P @ np.concatenate(list(f), axis=1)
    variance = sum(p * np.outer(row, row) for p, row in zip(tree.root, means - tree.root @ means, strict=True))
    assert np.allclose(V.T @ middle @ V, variance, rtol=0, atol=1e-14)  # rounding
    below = problem.shape.children[0]
    for k, edge in enumerate(tree.edges[0]):
        m, m0 = edge.shape[1], tree.edges[1].shape[2]
        C, C0 = edge - 1 / m, tree.edges[1][k // below] - 1 / m0
        path = np.stack(
            [P[:, np.argmax(leaves.reshape(len(leaves), -1, m)[:, k], axis=1) == v].sum(axis=1) for v in range(m)]
        )
        assert np.allclose(path.T, 1 / m + C0 @ C, rtol=0, atol=1e-14)  # rounding


def test_regular_binary_trees_are_symmetric():
    """Lemma 7: transitions with even rows and columns between binary latents are polarities."""
    matrices = [[[[0.9, 0.1], [0.1, 0.9]], [[0.2, 0.8], [0.8, 0.2]]]]
    tree = {"depth": 1, "root": [0.3, 0.7]}
    weights = {"nodes_per_latent": 3, "bias": True}
    results = [
        meanfield.solve(
            type(several()).model_validate({"tree": tree | edges, "network": weights, "time": {"stop": 1.0}}),
            "operator",
        )
        for edges in ({"transitions": matrices}, {"polarity": [[0.8, -0.6]]})
    ]
    for name in ("loss", "operator_norm", "growth_rate", "selectivity", "correlation", "correlation_limit"):
        assert np.allclose(results[0][name], results[1][name], rtol=1e-12, equal_nan=True)  # rounding


def test_moments_are_those_of_enumeration():
    problem = several(4, edges=REGULAR)
    moments = Tables(problem).moments(Tables(problem).forward(problem.initial_weights))
    leaves, P = enumeration.leaf_law(problem)
    u, p = network.forward(problem.initial_weights, leaves).last, np.array(problem.tree.root)
    means, mean = P @ u, p @ P @ u
    between = p @ (means - mean) ** 2
    assert np.allclose(moments.selectivity[0], np.sqrt(between), rtol=1e-12)  # rounding
    ratio = between / (p @ P @ (u * u) - mean**2)
    assert np.allclose(moments.correlation[0], np.sqrt(ratio), rtol=1e-12)  # rounding


@pytest.mark.parametrize("problem", [several(), several([2, 3, 2], edges=GIVEN), several([3, 2, 4], edges=REGULAR)])
def test_leaves_have_the_law_of_the_tree(problem):
    leaves, P = enumeration.leaf_law(problem)
    sampler, rng, count = Sampler(problem), np.random.default_rng(0), 40_000
    roots = sampler.roots(rng, count)
    for z, p in enumerate(problem.tree.root):
        assert abs((roots == z).mean() - p) < STEPS_AWAY * np.sqrt(p * (1 - p) / count)
        found = sampler.views(rng, np.full(count, z, dtype=roots.dtype))
        share = (found @ (code := np.arange(1, leaves.shape[1] + 1) ** 2.5)[:, None] == (leaves @ code)).mean(axis=0)
        assert share.sum() == pytest.approx(1.0)
        assert np.all(np.abs(share - P[z]) <= STEPS_AWAY * np.sqrt(P[z] * (1 - P[z]) / count))


def test_plain_sgd_follows_the_flow():
    edges = {"polarity": [[0.9, 0.7], [0.9, 0.8, 0.7, 0.8]]}
    problem = several(edges=edges, nodes=2, bias=False, normalised=True)
    settings = {"network.epsilon": 0.3, "training.learning_rate": 0.02, "training.batch_size": 16, "time.outputs": 3}
    problem = meanfield.with_value(problem, "time.stop", 2.0)
    for key, value in settings.items():
        problem = meanfield.with_value(problem, key, value)
    chances = [[polarised(3, rho) for rho in part] for part in edges["polarity"]]
    weights = train(problem, chances, np.random.default_rng(3), 100, 16, 0.02, 100)
    flow, own = meanfield.solve(problem, "population"), meanfield.solve(problem, "particles")
    error = weights.std(axis=0, ddof=1) / np.sqrt(100) + 1e-12  # rounding where nothing moves
    off = np.abs(weights.mean(axis=0) - flow["weights"].values) / error
    assert off[-1].max() < STEPS_AWAY  # the bias is of the order of the step
    assert off[1].max() > 2 * STEPS_AWAY  # at half the time, that of half the learning rate
    assert str(meanfield.compare(flow, own)["verdict"].values[0]) == "AGREES"
