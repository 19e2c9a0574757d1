"""Averages over batches: against enumeration of all batches, and at the reference numbers of the theory."""

from itertools import product

import numpy as np
import pytest

from meanfield.families.contrastive.channels.averages import exact_averages
from meanfield.families.contrastive.channels.one_sample import BatchLaw, OneSample, Rule, fill_nodes
from meanfield.families.contrastive.channels.polynomials import batch_terms
from meanfield.families.contrastive.channels.randomised import Batches, randomised_averages
from meanfield.ingredients.activations import make_activation
from meanfield.ingredients.penalties import make_penalty
from tests.oracles.batches import batch_averages

NO_NOISE = np.zeros((2, 2))
NOISE = np.array([[0.3, -0.1], [-0.1, 0.2]])
SIGMA = {
    "quadratic": (np.square, lambda x: 2 * x),
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
}
Q = np.array([[0.5, 0.3, 0.1], [0.2, 0.4, -0.3]])
M = np.array([[1.0, 0.25, 0.1], [0.25, 1.0, -0.2], [0.1, -0.2, 1.0]])


def two_points(channels, V, features=1, atoms=2):
    """A law of one sample with two values in each Gaussian direction, and its overlaps."""
    views = 2 if V.any() else 1
    values = np.array(list(product(*([-0.7, 1.3], [0.4, -1.1])[:features])))[:atoms]
    probability = np.array([0.3, 0.7, 0.45, 0.55])[: len(values)]
    law = OneSample(probability / probability.sum(), values, np.full_like(values, 0.1), V, views, views * channels)
    nodes = np.array(list(product([-1.0, 1.0], repeat=law.directions)))
    count = len(nodes)
    rule = Rule(np.ascontiguousarray(nodes.T), np.full(count, 1.0 / count), np.array([0, count]))
    return law, rule, np.ascontiguousarray(Q[:features, :channels]), np.ascontiguousarray(M[:channels, :channels])


def both_views(scalars, d):
    """Scalars of both views, which are the same without noise."""
    return np.stack([scalars[:d], scalars[-d:]])


def split(result, d1, d2):
    P, D, noise = np.split(result, [d1 * d2, d1 * d2 + d2 * d2])
    return P.reshape(d1, d2), D.reshape(d2, d2), noise.reshape(d2, d2)


CASES = [
    ("quadratic", "none", 1, 2, NO_NOISE, 2),
    ("quadratic", "none", 2, 2, NO_NOISE, 2),
    ("quadratic", "none", 3, 2, NO_NOISE, 2),
    ("quadratic", "population", 3, 2, NO_NOISE, 2),
    ("quadratic", "batch", 2, 2, NO_NOISE, 2),
    ("quadratic", "batch", 3, 2, NO_NOISE, 2),
    ("tanh", "population", 2, 3, NO_NOISE, 2),
    ("tanh", "batch", 3, 3, NO_NOISE, 1),
    ("tanh", "none", 1, 3, NOISE, 1),
    ("tanh", "none", 2, 2, NOISE, 1),
    ("quadratic", "population", 2, 2, NOISE, 2),
    ("tanh", "batch", 3, 2, NOISE, 1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("activation", "centering", "m", "channels", "V", "atoms"), CASES,
    ids=[f"{a}-{c}-m{m}-d{d}-{'noise' if V.any() else 'clean'}" for a, c, m, d, V, _ in CASES],
)  # fmt: skip
def test_square_penalty_against_all_batches(activation, centering, m, channels, V, atoms):
    law, rule, q, overlaps = two_points(channels, V, features=2 if channels == 2 and not V.any() else 1, atoms=atoms)
    d1, strength = len(q), 0.3
    addresses = make_activation(activation).addresses
    factors = np.array([1 + V[0, 0], 1 + V[1, 1], 1 + V[0, 1]]) / m
    terms = batch_terms(channels, law.views, m, centering == "batch", strength)
    batch = BatchLaw(law, addresses, m, centering != "none", centering == "batch", factors)
    found = split(exact_averages(batch, terms, rule, q, overlaps), d1, channels)
    weight, theta, x = fill_nodes(law, rule, q, overlaps)
    right = batch_averages(
        weight, both_views(theta, channels), both_views(x, d1), *SIGMA[activation], lambda C: 2 * C, strength,
        centering, m, V,
    )  # fmt: skip
    for one, other in zip(found, right, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)  # rounding of some 1e4 batches


@pytest.mark.parametrize("centering", ["none", "batch"])
@pytest.mark.parametrize("V", [NO_NOISE, NOISE], ids=["clean", "noise"])
def test_random_batches_that_are_all_batches(centering, V):
    """With one component and all pairs of nodes the average over random batches is an enumeration."""
    m, channels, strength = 2, 2, 0.4
    law, rule, q, overlaps = two_points(channels, V, atoms=1)
    activation, penalty = make_activation("tanh"), make_penalty("smooth_absolute")
    pairs = np.array(list(product(range(rule.weights.size), repeat=m)))
    batches = Batches(np.zeros(pairs.shape, dtype=np.int64), np.ascontiguousarray(rule.nodes.T[pairs]))
    factors = np.array([1 + V[0, 0], 1 + V[1, 1], 1 + V[0, 1]]) / m
    means = np.zeros(law.views * channels)
    batch = BatchLaw(law, activation.addresses, m, False, centering == "batch", factors)
    extra = randomised_averages(batch, batches, penalty.address, strength, means, q, overlaps)
    terms = batch_terms(channels, law.views, m, centering == "batch", 0.0)
    free = exact_averages(batch, terms, rule, q, overlaps)
    weight, theta, x = fill_nodes(law, rule, q, overlaps)
    right = batch_averages(
        weight, both_views(theta, channels), both_views(x, len(q)), *SIGMA["tanh"],
        lambda C: C / np.hypot(C, 0.1), strength, centering, m, V,
    )  # fmt: skip
    for one, other in zip(split(free + extra, len(q), channels), right, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)  # rounding
