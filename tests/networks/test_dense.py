"""Dense networks: gradients against the complex step and, for every loss and depth, against torch."""

import numpy as np
import pytest

from meanfield.networks.dense import forward, gradient, uniform_start
from meanfield.networks.normalisation import Normalisation

H = 1e-30


def network(depth, bias, seed=0):
    rng = np.random.default_rng(seed)
    widths = (6, *(5, 7, 4)[: depth - 1], 3)
    return uniform_start(widths, bias, rng), rng.normal(size=(9, 6)), rng.normal(size=(9, 3))


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("normalised", [False, True])
def test_gradients_are_those_of_the_complex_step(depth, bias, normalised):
    weights, x, slope = network(depth, bias)
    output, found = Normalisation(normalised, 0.1), forward(weights, x)
    by_weights = gradient(weights, found, output.back(found.last, slope)).vector
    for k in range(by_weights.size):
        moved = weights.vector.astype(complex)
        moved[k] += 1j * H
        f = forward(weights.like(moved), x).last
        y = f / (np.sqrt((f * f).sum(axis=1, keepdims=True)) + 0.1) if normalised else f
        wanted = float((slope * y.imag).sum()) / H
        assert abs(by_weights[k] - wanted) < 1e-12 * np.abs(by_weights).max()  # rounding of some hundred terms


def test_several_networks_are_taken_together():
    starts = [network(3, True, seed)[0] for seed in range(2)]
    x = np.random.default_rng(5).normal(size=(2, 9, 6))
    both = starts[0].like(np.stack([start.vector for start in starts]))
    for i, start in enumerate(starts):
        assert np.allclose(forward(both, x).last[i], forward(start, x[i]).last, rtol=1e-13)  # rounding


def test_weights_are_uniform_within_the_bound():
    weights = uniform_start((400, 300), True, np.random.default_rng(0))
    bound = 400**-0.5
    assert 0.999 < np.abs(weights.W[0]).max() / bound <= 1.0
    assert weights.W[0].std() == pytest.approx(bound / np.sqrt(3), rel=0.01)  # 1/sqrt(2 * 120 000) * 5
