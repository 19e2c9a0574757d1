"""Products with Jacobians of dense networks, and estimates of operators against the operators themselves."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from meanfield.families.latent_tree.images.operators import Population, layer_operators
from meanfield.networks.connections import Connections
from meanfield.networks.contrast import Contrast
from meanfield.networks.dense import DenseWeights, forward, uniform_start
from meanfield.networks.jacobians import DenseJacobians, LayerProducts, error_of_trace, estimate
from meanfield.networks.normalisation import Normalisation

ESTIMATED = ("layer_operator_norm", "layer_operator_top", "between_trace", "within_trace")


def population(rng, inputs=6, images=5, each=3):
    themselves = rng.normal(size=(images, inputs))
    return Population(np.repeat(themselves, each, axis=0) + 0.3 * rng.normal(size=(images * each, inputs)), themselves)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_push_is_a_difference_quotient_and_pull_its_adjoint(layer):
    rng = np.random.default_rng(layer)
    weights, x = uniform_start((6, 8, 7, 3), True, rng), population(rng).x
    jacobians = DenseJacobians(weights, x)
    step, by_last = rng.normal(size=weights.W[layer].size), rng.normal(size=(15, 3))

    def last(t):
        W = list(weights.W)
        W[layer] = W[layer] + t * step.reshape(W[layer].shape)
        return forward(DenseWeights(W, weights.b), x).last.ravel()

    pushed = jacobians.push(layer, step)
    assert np.allclose(approx_fprime([0.0], last, 1e-7).ravel(), pushed.ravel(), atol=1e-6)  # linear between kinks
    assert np.vdot(by_last, pushed) == pytest.approx(jacobians.pull(layer, by_last) @ step, rel=1e-12)  # rounding


@pytest.mark.parametrize("normalised", [False, True])
def test_products_are_those_with_the_operator(normalised):
    rng = np.random.default_rng(1)
    weights, x, normalisation = uniform_start((6, 8, 4), False, rng), population(rng).x, Normalisation(normalised, 0.1)
    made, M = Connections(weights, x, normalisation), rng.normal(size=(15, 15))
    M = M + M.T
    for layer in range(2):
        products = LayerProducts(DenseJacobians(weights, x), layer, M, normalisation)
        operator, step = made.operator(layer, M), rng.normal(size=weights.W[layer].size)
        wanted = operator.left.T @ (operator.sign * (operator.right @ step))
        assert np.allclose(products.apply(step), wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())  # M loses 1e-13


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("kind", ["simple", "beta", "infonce"])
def test_errors_of_estimates_bound_them(kind, normalised):
    """A bound of a trace fails twice in a thousand times, those of norms less often; seeds are fixed."""
    rng = np.random.default_rng(2)
    weights, views = uniform_start((40, 24, 10), False, rng), population(rng, 40, 8)
    contrast = Contrast(kind, temperature=0.5, beta=0.4)
    given = contrast, Normalisation(normalised), weights, views
    exact, found = layer_operators(*given), layer_operators(*given, np.random.default_rng(7))
    for name in ESTIMATED:
        error = found[f"{name}_error"]
        assert np.all(np.abs(found[name] - exact[name]) <= error + 1e-10 * exact[name]), name  # M loses 1e-13
        assert np.all(error < (0.25 if name.startswith("layer") else 0.6) * exact[name]), name  # they say something
    for name in ("loss", "residue", "bypass"):
        assert np.array_equal(found[name], exact[name])


def test_outputs_without_biases_are_carried_by_every_layer_and_biases_go_around():
    rng = np.random.default_rng(3)
    views = population(rng)
    for bias in (False, True):
        weights = uniform_start((6, 8, 7, 3), bias, rng)
        found = layer_operators(Contrast("simple"), Normalisation(False), weights, views)
        *below, last = found["bypass"]
        assert all((share > 1e-3) if bias else (share < 1e-12) for share in below)  # rounding
        assert last < 1e-12  # rounding: the bias of outputs is the same for all, of which differences are taken
        made = Connections(weights, views.x, Normalisation(False))
        # -grad L = 2 OP vec W + what goes around, with the simple loss, whose M is written out here
        P = np.repeat(np.eye(5), 3, axis=1) / 3.0
        M = P.T @ (np.eye(5) / 5.0 - 1.0 / 25.0) @ P
        for layer, W in enumerate(weights.W):
            operator, J = made.operator(layer, M), DenseJacobians(weights, views.x)
            left = -J.pull(layer, -2.0 * M @ J.last) - 2.0 * operator.left.T @ (
                operator.sign * (operator.right @ W.ravel())
            )
            share = np.linalg.norm(left) / found["gradient_norm"][layer]
            assert share == pytest.approx(found["bypass"][layer], rel=1e-9, abs=1e-12)  # M loses 1e-13


def test_an_operator_that_is_0_has_a_norm_of_0():
    """All views are the same."""
    weights = uniform_start((4, 5, 2), False, np.random.default_rng(4))
    jacobians = DenseJacobians(weights, np.ones((6, 4)))
    found = estimate(LayerProducts(jacobians, 0, np.zeros((6, 6)), Normalisation(False)), np.random.default_rng(0))
    assert found == (0.0, 0.0, 0.0, 0.0)


def test_means_of_few_large_squares_are_trusted_less():
    rng = np.random.default_rng(5)
    single, many = rng.normal(size=64) ** 2, (rng.normal(size=(64, 50)) ** 2).mean(axis=1)
    # 64 squares fall to 0.51 of their mean in 0.05 % of all cases, and so does the sum of as many with their spread.
    assert 0.7 < error_of_trace(single) / single.mean() <= 0.95
    assert error_of_trace(many) / many.mean() < 0.1
