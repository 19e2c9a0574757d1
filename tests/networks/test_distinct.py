"""Different outputs, counted block by block, against the same of all outputs at once."""

import numpy as np
import pytest

from meanfield.networks.distinct import count_different, merged, reach_of


@pytest.mark.parametrize(
    "outputs",
    [
        np.random.default_rng(0).standard_normal((200, 3))[np.random.default_rng(1).integers(200, size=1000)],
        np.random.default_rng(2).integers(-3, 3, (1000, 3)).astype(float),  # round numbers, and -0.0 below
        -1.0 * np.random.default_rng(3).integers(0, 2, (1000, 8)),
        np.full((5, 2), np.pi) * (1.0 + np.arange(5)[:, None] * 2.0**-52),  # last bits alone
        np.zeros((4, 1)),
        np.random.default_rng(4).standard_normal((300, 4)).astype(np.float32),
        np.asfortranarray(np.random.default_rng(5).standard_normal((300, 7)))[::3, ::-2],
    ],
)
def test_outputs_in_blocks_are_those_of_all_at_once(outputs):
    blocks = np.array_split(outputs, 3)
    assert count_different(blocks) == len(merged(outputs)[0])
    assert reach_of(lambda: blocks) == reach_of(lambda: [outputs])


def test_outputs_that_differ_in_signs_alone_are_told_apart():
    draw = np.random.default_rng(0)
    blocks = (1.0 - 2.0 * draw.integers(0, 2, (1 << 15, 64)) for _ in range(8))  # equal rows: a chance of 2e-9
    assert count_different(blocks) == 1 << 18


def test_the_reach_bounds_all_distances():
    outputs = np.random.default_rng(0).standard_normal((50, 4))
    largest = max(0.5 * np.sum((a - b) ** 2) for a in outputs for b in outputs)
    assert largest <= reach_of(lambda: [outputs]) <= 4.0 * largest  # the box: none of 4 sides is longer
