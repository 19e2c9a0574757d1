"""Times of steps of convolutional networks on made-up pictures."""

import pytest

from validation.latent_tree.convolution_times import CASES, problem_of, seconds_of_step


@pytest.mark.parametrize(("which", "row", "_"), CASES)
def test_pictures_have_the_size_of_the_real_ones(which, row, _):
    problem = problem_of(which, row, [64, 128, 256, 512], 128)
    side = {"CIFAR-10": 32, "STL-10": 96}[which]
    assert problem.convolutional.image == (side, side, 3)
    assert problem.convolutional.numbers > 11e6  # ResNet-18 has 11 million


@pytest.mark.torch
def test_a_step_takes_time():
    pytest.importorskip("torch")
    assert 0.0 < seconds_of_step("CIFAR-10", "exact, H = 2", [2, 2], 4, 0.0) < 100.0
