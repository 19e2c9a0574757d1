"""Covariance operators of layers: definitions, reference values, gradients, and the spectrum of the tangent kernel."""

import numpy as np
import pytest

from meanfield.families.latent_tree.images.operators import Population, layer_operators
from meanfield.networks.connections import Connections, pair_matrix
from meanfield.networks.contrast import Contrast
from meanfield.networks.dense import DenseWeights, forward, gradient, uniform_start
from meanfield.networks.normalisation import Normalisation
from meanfield.networks.population import evaluate
from tests.networks.test_contrast import DIGITS, REFERENCE, W1, W2, X0, X

CASE_A, PLAIN = Population(X, X0), Normalisation(False)
REFERENCE_NET = DenseWeights([W1, W2], [])

SUM_ERROR = 1e-12
"""Relative rounding of sums of some thousand terms."""


def quantities(kind, normalised=False, **parameters):
    contrast = Contrast(kind, temperature=0.5, **parameters)
    return layer_operators(contrast, Normalisation(normalised), REFERENCE_NET, CASE_A)


@pytest.mark.parametrize(("kind", "parameters", "normalised", "loss", "first", "second"), REFERENCE)
def test_losses_and_gradients_of_layers_have_the_reference_values(kind, parameters, normalised, loss, first, second):
    found = quantities(kind, normalised, **parameters)
    assert np.allclose([found["loss"], *found["gradient_norm"]], [loss, first, second], rtol=0, atol=DIGITS)


def test_variances_of_connections_have_the_reference_values():
    found = quantities("simple")
    assert np.allclose(found["between_trace"], [0.516549967239, 1.290975405251], rtol=0, atol=DIGITS)
    assert np.allclose(found["layer_operator_top"], [0.495183623769, 0.638661051031], rtol=0, atol=DIGITS)
    assert np.allclose(found["within_trace"], [0.067233507719, 0.030498081702], rtol=0, atol=DIGITS)
    assert np.allclose(found["residue"], 0.0, atol=SUM_ERROR)


@pytest.mark.parametrize(
    ("kind", "parameters", "wanted", "share"),
    [
        ("triplet", {"margin": 0.3}, (0.102146439021, 0.116631622189), (0.03, 0.05)),
        ("infonce", {}, (0.125119972915, 0.143177479434), (0.03, 0.05)),
    ],
)
def test_the_residue_is_what_the_operator_leaves(kind, parameters, wanted, share):
    """Norms of OP vec W as printed on the page, and a residue of 4 %."""
    contrast = Contrast(kind, temperature=0.5, **parameters)
    made, found = Connections(REFERENCE_NET, X, PLAIN), quantities(kind, **parameters)
    y, y0 = made.activity.last, forward(REFERENCE_NET, X0).last
    weight = contrast.weight(0.5 * ((y0[:, None] - y0) ** 2).sum(axis=-1))
    evaluation = evaluate(contrast, CASE_A.views, y[None])
    full = gradient(REFERENCE_NET, made.activity, evaluation.slope[0]).W
    B = np.diag(weight.sum(axis=1)) / 9 - weight / 9
    M = np.kron(B, np.full((2, 2), 0.25))
    for layer, W in enumerate(REFERENCE_NET.W):
        step = dense_operator(made, layer, M) @ W.ravel()
        assert np.linalg.norm(step) == pytest.approx(wanted[layer], abs=DIGITS)
        rest = np.linalg.norm(full[layer].ravel() + 2.0 * step) / np.linalg.norm(full[layer])
        assert found["residue"][layer] == pytest.approx(rest, rel=1e-10)  # a difference of nearly equal numbers
        assert share[0] < rest < share[1]


def dense_operator(made, layer, M, left=None):
    """OP from its definition, with connections written out: shape (weights, weights)."""
    weights, found = made.weights, made.activity
    K = []
    for x in range(len(found.last)):
        J = np.eye(found.last.shape[1]) if left is None else left[x]
        for W, inputs in zip(weights.W[:layer:-1], found.inputs[:layer:-1], strict=True):
            J = J @ W * (inputs[x] > 0.0)
        K.append(np.einsum("bi,j->ijb", J, found.inputs[layer][x]).reshape(-1, len(J)))
    K = np.array(K)
    return np.einsum("xy,xwb,yvb->wv", M, K, K)


LOSSES = [
    ("simple", {}),
    ("beta", {"beta": -0.4}),
    ("beta", {"beta": 0.7}),
    ("exact", {"negatives": 2}),
    ("batch_ratio", {}),
    ("triplet", {"margin": 0.2}),
    ("infonce", {}),
]


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize(("kind", "parameters"), LOSSES)
def test_operators_follow_their_definition_and_give_the_gradient(kind, parameters, depth):
    rng = np.random.default_rng(depth)
    weights = uniform_start((5, *(4, 6, 3)[: depth - 1], 2), False, rng)
    themselves = rng.normal(size=(4, 5))
    x = np.repeat(themselves, 3, axis=0) + 0.3 * rng.normal(size=(12, 5))
    contrast, population = Contrast(kind, temperature=0.4, **parameters), Population(x, themselves)
    made = Connections(weights, x, PLAIN)
    y = made.activity.last
    evaluation = evaluate(contrast, population.views, y[None], forward(weights, themselves).last)
    M = pair_matrix(evaluation, population.views)
    by_weights = gradient(weights, made.activity, evaluation.slope[0]).W
    for layer, W in enumerate(weights.W):
        OP = dense_operator(made, layer, M)
        largest = np.abs(by_weights[layer]).max()
        assert np.allclose(-2.0 * OP @ W.ravel(), by_weights[layer].ravel(), rtol=0, atol=SUM_ERROR * largest)
        operator = made.operator(layer, M)
        values = np.linalg.eigvalsh(OP)
        assert operator.norm == pytest.approx(np.linalg.norm(OP), rel=1e-9)  # M loses eigenvalues below 1e-13
        assert operator.top == pytest.approx(max(values[-1], 0.0), rel=1e-9, abs=1e-9 * operator.norm)  # likewise


def test_the_spectrum_is_that_of_the_centred_tangent_kernel():
    """For the simple loss: kernel of the gradients of mean outputs by the weights of a layer, from the complex step."""
    made, size = Connections(REFERENCE_NET, X, PLAIN), 3
    M = pair_matrix(evaluate(Contrast("simple"), CASE_A.views, made.activity.last[None]), CASE_A.views)
    for layer, W in enumerate(REFERENCE_NET.W):
        slopes = np.empty((W.size, size, 2))
        for k in range(W.size):
            moved = [part.astype(complex) for part in REFERENCE_NET.W]
            moved[layer].flat[k] += 1e-30j
            slopes[k] = forward(DenseWeights(moved, []), X).last.imag.reshape(size, 2, 2).mean(axis=1) / 1e-30
        slopes -= slopes.mean(axis=1, keepdims=True)
        kernel = np.einsum("kxb,kyc->xbyc", slopes, slopes).reshape(2 * size, 2 * size) / size
        wanted = np.linalg.eigvalsh(kernel)[::-1]
        found = np.linalg.eigvals(made.operator(layer, M).kernel).real
        assert np.allclose(np.sort(found)[::-1][:4], wanted[:4], rtol=1e-11)  # rounding of eigenvalues
        assert np.allclose(np.linalg.eigvalsh(dense_operator(made, layer, M))[::-1][:4], wanted[:4], rtol=1e-11)


def test_normalised_outputs_have_an_operator_that_is_not_symmetric():
    """-grad = 2 OP vec W with connections divided by |f|, and on the left also projected."""
    output, made = Normalisation(True), Connections(REFERENCE_NET, X, Normalisation(True))
    last = made.activity.last
    y = output.value(last)
    evaluation = evaluate(Contrast("simple"), CASE_A.views, y[None])
    M = pair_matrix(evaluation, CASE_A.views)
    by_weights = gradient(REFERENCE_NET, made.activity, output.back(last, evaluation.slope[0])).W
    for layer, W in enumerate(REFERENCE_NET.W):
        operator = made.operator(layer, M)
        OP = (operator.left.T * operator.sign) @ operator.right
        assert np.allclose(-2.0 * OP @ W.ravel(), by_weights[layer].ravel(), rtol=0, atol=SUM_ERROR)
        assert abs(np.vdot(W, by_weights[layer])) < SUM_ERROR  # the norm of W is conserved
        assert operator.norm == pytest.approx(np.linalg.norm(OP), rel=1e-10)  # rounding
        wanted = np.linalg.eigvals(OP).real.max()
        assert operator.top == pytest.approx(wanted, rel=1e-9)  # rounding of eigenvalues that are not symmetric
        assert np.linalg.norm(OP - OP.T) > 0.01 * operator.norm
