"""What a batch adds to the weights, by the formulas of theory.md from the same draws, for batches of all lengths."""

import numba
import numpy as np
import pytest

from meanfield.contrastive import Problem
from meanfield.ensembles.streams import stream_key
from meanfield.families.contrastive.sgd.batch import add_batch, numbers_for, room_for
from meanfield.families.contrastive.sgd.training import draw_numbers, training_of

Q = np.array([0.6, -0.3])
S = np.sqrt(1 - Q @ Q)
PLACE = 2
"""Index of the step whose numbers are used; those of other steps are before and behind it."""
LAWS = [{"law": "three_point", "second_moment": 1.1, "fourth_moment": 6.05}, {"law": "gaussian"}]
NOISE = {"variance": [0.3, 0.5], "correlation": 0.5}


@numba.njit(cache=True, error_model="numpy")
def take(training, key, means, numbers, room, inside):
    draw_numbers(training, key, 0, 0, PLACE + 1, numbers)
    return add_batch(training, key, 0, PLACE, PLACE, Q, S, means, numbers, room, inside)


def training(m, noisy, centering):
    description = {
        "model": {"activation": "tanh", "learning_rate": 0.1, "batch_size": m, "centering": centering},
        "features": [{"hidden": law, "initial_overlap": 0.1} for law in LAWS],
        "time": {"stop": 1.0},
        "particles": {"method": "chain", "dimension": 100},
    }
    return training_of(Problem.model_validate(description | ({"augmentation": NOISE} if noisy else {})))


@pytest.mark.parametrize("centering", ["population", "batch"])
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("m", [2, 7, 16, 45])
def test_sums_over_a_batch(m, noisy, centering):
    what, key = training(m, noisy, centering), stream_key(41)
    means = (0.2, -0.1 if noisy else 0.2)  # equal views have equal means
    numbers, room, inside = numbers_for(what, PLACE + 1), room_for(what), np.empty(3)
    variance = take(what, key, means, numbers, room, inside)
    _, c, zeta, *_ = room
    zeta = zeta if noisy else np.zeros((2, m))
    e = numbers[0][PLACE * what.normals + m :][:m]  # behind the normals of the Gaussian feature
    z = Q @ c + S * e + zeta
    y, slope = np.tanh(z), 1 - np.tanh(z) ** 2
    y -= y.mean(axis=1)[:, None] if centering == "batch" else np.array(means)[:, None]
    alpha, beta = y[1] * slope[0], y[0] * slope[1]
    gains, v = np.array([alpha, beta]), what.noise
    close = {"rel": 1e-12, "abs": 1e-12}  # rounding of sums of 45 numbers of order 1
    assert variance == pytest.approx(np.einsum("ib,jb,ij->", gains, gains, 1 + v), **close)
    assert Q @ inside[:2] + S * inside[2] == pytest.approx(np.sum(gains * z), **close)  # along the weights
    if noisy:
        normals = numbers[0][PLACE * what.normals + 2 * m :][: 2 * m].reshape(2, m)  # and those of zeta behind e
        assert zeta == pytest.approx(what.noise_factor @ normals, **close)
    else:
        assert inside == pytest.approx(np.append(c, [e], axis=0) @ (alpha + beta), **close)
