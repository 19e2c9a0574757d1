"""Laws in blocks against the dense arrays that they stand for."""

import numpy as np
import pytest
from scipy.stats import norm

from meanfield.ingredients.laws.coordinate import GaussianCoordinate
from meanfield.numerics.mixed_laws import Block, Mixture, distance
from meanfield.numerics.mixtures import resolved
from meanfield.numerics.normal_scores import normal_scores

EDGES = np.linspace(-9.0, 9.0, 901)


def test_laws_in_blocks_are_those_of_the_dense_array():
    weight = np.array([0.2, 0.3, 0.5])
    blocks = [Block(1, np.array([[0.1, 0.4], [0.0, 0.7]])), Block(2, np.array([[0.6]]))]
    mixture = Mixture(np.arange(3.0), weight, np.zeros(4), blocks)
    dense = np.array([[0.0, 0.1, 0.4, 1.0], [0.0, 0.0, 0.7, 1.0], [0.0, 0.0, 0.6, 1.0]])
    np.testing.assert_array_equal(mixture.F, dense)
    shifted = Mixture.of(mixture.u, weight, np.roll(dense, 1, axis=0))
    assert distance(Mixture.of(mixture.u, weight, dense), shifted) == pytest.approx(
        np.abs(np.diff(weight @ (dense - np.roll(dense, 1, axis=0)))).sum(),
        rel=1e-12,  # rounding
    )


@pytest.mark.parametrize("bend", [0.0, 0.3], ids=["by scores", "by curves"])
def test_narrow_laws_take_little_room_and_add_up_to_their_average(bend):
    """Of narrow laws at the nodes of a fine rule only the edges are kept that they do not have on one side."""
    u, weight = GaussianCoordinate().quadrature(60)
    F = norm.cdf(EDGES, (u + bend * np.sin(u))[:, None], 0.03 + 0.01 * bend * np.tanh(u)[:, None])
    F = (F - F[:, :1]) / (F[:, -1:] - F[:, :1])
    fine = resolved(GaussianCoordinate(), u, weight, EDGES, F, normal_scores(EDGES, np.diff(F)), 0.25)
    dense = fine.F
    np.testing.assert_allclose(fine.weight @ dense, fine.average, rtol=0, atol=1e-13)  # rounding of sums
    centre = fine.u + bend * np.sin(fine.u)
    exact = norm.cdf(EDGES, centre[:, None], 0.03 + 0.01 * bend * np.tanh(fine.u)[:, None])
    apart = np.abs(np.diff(dense - exact, axis=1)).sum(axis=1)
    assert fine.weight @ apart <= fine.error  # the estimate for the mixture, which holds for laws one by one, too
    kept = sum(block.F.size for block in fine.blocks)
    assert kept < 0.25 * dense.size  # six deviations and the width of 128 neighbours
