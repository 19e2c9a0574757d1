"""Operators of NT-Xent: the loss and its gradient from their definition, what OP leaves of it, and torch."""

from itertools import combinations

import numpy as np
import pytest

from meanfield.families.latent_tree.images.operators import Population, layer_operators
from meanfield.networks.connections import Connections, pair_matrix, weighted
from meanfield.networks.contrast import Contrast
from meanfield.networks.dense import DenseWeights, forward, uniform_start
from meanfield.networks.normalisation import Normalisation
from meanfield.networks.population import Evaluation, batch_weights
from tests.networks.test_connections import REFERENCE_NET
from tests.networks.test_contrast import DIGITS, X0, X

TAU = 0.4
NT_XENT = Contrast("nt_xent", temperature=TAU)


def data(views, strength=0.3, bias=True):
    rng = np.random.default_rng(views)
    weights, themselves = uniform_start((5, 6, 3), bias, rng), rng.normal(size=(4, 5))
    x = np.repeat(themselves, views, axis=0) + strength * rng.normal(size=(4 * views, 5))
    return weights, Population(x, themselves)


def directions(weights, x):
    f = forward(weights, x).last
    return f / np.sqrt((f * f).sum(axis=1, keepdims=True))


def defined(weights, x, views):
    """Mean over pairs of views of the mean over anchors, term by term."""
    y = directions(weights, x).reshape(-1, views, 3)
    total, batches = 0.0, list(combinations(range(views), 2))
    for a, b in batches:
        batch = [(i, v) for i in range(len(y)) for v in (a, b)]
        for i, v in batch:
            e = {place: np.exp((y[i, v] * y[place]).sum() / TAU) for place in batch if place != (i, v)}
            total = total - np.log(e[i, a + b - v] / sum(e.values()))
    return total / (2 * len(y) * len(batches))


def frozen(weights, x, views, weight):
    """The loss with weights of pairs of samples that are held, a sum over mean directions."""
    m = directions(weights, x).reshape(-1, views, 3).mean(axis=1)
    gaps = m[:, None] - m
    return -0.5 * (weight * (gaps * gaps).sum(axis=-1)).sum() / len(m) ** 2


def slopes(function, weights):
    """Derivatives by the weights of each layer, by an imaginary step."""
    found = []
    for layer, W in enumerate(weights.W):
        slope = np.zeros_like(W)
        for place in np.ndindex(W.shape):
            moved = [part.astype(complex) for part in weights.W]
            moved[layer][place] += 1e-30j
            slope[place] = function(DenseWeights(moved, weights.b)).imag / 1e-30
        found.append(slope)
    return found


@pytest.mark.parametrize("views", [2, 3])
def test_gradients_and_residues_are_those_of_the_definition(views):
    weights, population = data(views)
    found = layer_operators(NT_XENT, Normalisation(False), weights, population)
    assert found["loss"] == pytest.approx(defined(weights, population.x, views), rel=1e-12)  # rounding
    full = slopes(lambda w: defined(w, population.x, views), weights)
    weight = batch_weights(directions(weights, population.unaugmented), TAU)
    main = slopes(lambda w: frozen(w, population.x, views, weight), weights)
    norms = [np.linalg.norm(W) for W in full]
    assert np.allclose(found["gradient_norm"], norms, rtol=1e-12)  # rounding
    rest = [np.linalg.norm(a - b) / size for a, b, size in zip(full, main, norms, strict=True)]
    assert np.allclose(found["residue"], rest, rtol=1e-10)  # a difference
    assert np.all(np.array(rest) > 0.01)


def test_the_residue_vanishes_with_the_strength_of_views():
    """Views that are the samples themselves leave none: weights are then the derivatives of the loss."""
    residues = []
    for strength in (0.0, 1e-3):
        weights, population = data(2, strength)
        residues.append(layer_operators(NT_XENT, Normalisation(False), weights, population)["residue"])
    assert np.all(residues[0] < 1e-12)  # rounding
    assert np.all(residues[1] > 1e-6)
    assert np.all(residues[1] < 1e-2)  # ten times the strength


def test_the_operator_gives_the_gradient_of_the_part_that_it_stands_for():
    weights, population = data(3, bias=False)
    weight = batch_weights(directions(weights, population.unaugmented), TAU)
    made = Connections(weights, population.x, Normalisation(True))
    M = pair_matrix(Evaluation(np.nan, np.empty(0), between=weight), population.views)
    assert np.allclose(M, np.kron(weighted(population.views.p, weight), np.full((3, 3), 1 / 9)), atol=1e-15)  # rounding
    main = slopes(lambda w: frozen(w, population.x, 3, weight), weights)
    for layer, expected in enumerate(main):
        operator = made.operator(layer, M)
        product = -2.0 * operator.left.T @ (operator.sign * (operator.right @ weights.W[layer].ravel()))
        assert np.allclose(product, expected.ravel(), rtol=0, atol=1e-12 * np.abs(expected).max())  # rounding


def test_the_reference_batch_has_the_reference_values():
    found = layer_operators(
        Contrast("nt_xent", temperature=0.5), Normalisation(False), REFERENCE_NET, Population(X, X0)
    )
    expected = [0.764317797454, 0.000352438238, 0.014125050493]
    assert np.allclose([found["loss"], *found["gradient_norm"]], expected, rtol=0, atol=DIGITS)  # half the last one


@pytest.mark.torch
def test_gradients_and_residues_are_those_of_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    weights, themselves = uniform_start((20, 30, 12, 8), True, rng), rng.normal(size=(16, 20))
    population = Population(np.repeat(themselves, 4, axis=0) + 0.3 * rng.normal(size=(64, 20)), themselves)
    found = layer_operators(NT_XENT, Normalisation(True, 0.1), weights, population)
    W, b = ([torch.tensor(part, requires_grad=True) for part in parts] for parts in (weights.W, weights.b))

    def unit(x):
        f = torch.tensor(x)
        for layer in range(3):
            f = (torch.relu(f) if layer else f) @ W[layer].T + b[layer]
        return torch.nn.functional.normalize(f, dim=1)

    y = unit(population.x).reshape(16, 4, -1)
    losses = []
    for pair in combinations(range(4), 2):
        z = y[:, list(pair)].reshape(32, -1)
        s = (z @ z.T / TAU).masked_fill(torch.eye(32, dtype=torch.bool), -torch.inf)
        losses.append(torch.nn.functional.cross_entropy(s, torch.arange(32) ^ 1))
    loss = torch.stack(losses).mean()
    full = torch.autograd.grad(loss, W, retain_graph=True)
    with torch.no_grad():
        near = torch.exp((unit(themselves) @ unit(themselves).T - 1.0) / TAU).fill_diagonal_(0.0)
        share = near / (TAU * (1.0 + 2.0 * near.sum(dim=1, keepdim=True)))
    gaps = y.mean(dim=1)[:, None] - y.mean(dim=1)
    main = torch.autograd.grad(-(share * (gaps**2).sum(dim=-1)).sum() / 16, W)
    assert found["loss"] == pytest.approx(loss.item(), rel=1e-12)  # rounding
    for layer in range(3):
        size = float(full[layer].norm())
        assert found["gradient_norm"][layer] == pytest.approx(size, rel=1e-12)  # rounding
        rest = float((full[layer] - main[layer]).norm()) / size
        assert found["residue"][layer] == pytest.approx(rest, rel=1e-12)  # rounding
