"""Equations that problems on images print, evaluated by SymPy, against networks, losses of batches, and steps."""

from typing import get_args

import numpy as np
import pytest

from meanfield.families.latent_tree.images.replicas import ImageReplicas
from meanfield.families.latent_tree.samples import batch_slope
from meanfield.networks.contrast import Kind
from meanfield.networks.dense import forward
from tests.families.latent_tree.images.problems import problem
from tests.printed_equations import counted, evaluate, lines_of, section, unsaid

ROUNDING = 1e-12
"""Largest error of a formula, relative to the largest value: sums of some ten terms in double precision."""


@pytest.mark.parametrize("kind", get_args(Kind))
def test_losses_of_batches_are_those_of_the_code(kind):
    H = 3 if kind in ("infonce", "exact") else 1
    numbers = f"kind = '{kind}'\ntemperature = 0.7\nnegatives = {H}"
    numbers += "\nmargin = 0.3" * (kind == "triplet") + "\nbeta = 0.4" * (kind in ("beta", "nt_xent"))
    given = problem(loss=numbers, training="batch_size = 4")
    y = np.random.default_rng(0).normal(size=(2 if kind == "nt_xent" else 2 + H + (1 + H) * (kind == "exact"), 4, 3))
    if kind == "nt_xent":
        y /= np.linalg.norm(y, axis=-1, keepdims=True)
        i = y.transpose(1, 0, 2).reshape(8, 3)
        known = {"c": counted(i @ i.T, "ik"), "p": counted(np.repeat((y[0] * y[1]).sum(axis=-1), 2), "i")}
        found = evaluate(section(given, "Loss"), known)
    else:
        known = {"y": np.pad(y[: 2 + H].transpose(2, 0, 1), ((1, 0), (0, 0), (1, 0))), "n_out": 3}
        if kind == "exact":
            apart = 0.5 * ((y[2 + H] - y[3 + H :]) ** 2).sum(axis=-1)
            known["D"] = np.pad(apart, ((2, 0), (1, 0)))
        for line in lines_of(section(given, "Loss"), "r[v, b]", "xi[v, b]"):
            name = str(line.left.base)
            known[name] = np.zeros((2 + H, 5))
            for v, b in np.ndindex(2 + H, 4):
                ((known[name][v, b + 1],),) = evaluate([line], known | {"v": v, "b": b + 1}).values()
        found = evaluate(lines_of(section(given, "Loss"), r"\mathcal L"), known)
    assert found[r"\mathcal L"][0] == pytest.approx(batch_slope(given.loss.contrast, y)[0], rel=ROUNDING)
    assert not unsaid(given)


@pytest.mark.parametrize("kind", ["simple", "nt_xent"])
def test_layers_and_outputs_are_those_of_the_code(kind):
    given = problem(network="widths = [6, 3]\noutput_normalisation = true\nbias = true", loss=f"kind = '{kind}'")
    weights, x = given.initial_weights, np.random.default_rng(0).normal(size=(100, 16))
    weights.b[0][...], weights.b[1][...] = 0.3, -0.2
    lines, f = section(given, "Network"), x.T
    for W, b, n in zip(weights.W, weights.b, given.network.widths, strict=True):
        W = W.reshape(n, -1)
        known = {"W": counted(W, "jk"), "f": counted(f, "k"), "b": counted(b.ravel(), "j"), "n_in": W.shape[1]}
        (u, f) = (each[0] for each in evaluate(lines_of(lines, "u[j]", "f[j]"), known, None, {"j": n}).values())
    (y,) = evaluate(lines_of(lines, "y[j]"), {"u": counted(u, "j"), "n_out": 3}, None, {"j": 3})["y"]
    right = given.network.normalisation.value(forward(weights, x).last)
    right = right / np.linalg.norm(right, axis=1, keepdims=True) if kind == "nt_xent" else right
    assert np.abs(y.T - right).max() <= ROUNDING


@pytest.mark.parametrize("more", ["", "momentum = 0.6", "momentum_rate = 2.0", "optimiser = 'adam'"])
def test_steps_are_those_of_the_code(more):
    given = problem(training=f"learning_rate = 0.1\nweight_decay = 0.3\nbatch_size = 8\n{more}")
    stepper, rng, lines = ImageReplicas(given, range(1)), np.random.default_rng(0), section(given, "Step")
    known = {"theta": stepper.w.copy(), "p": 0.0, "s": 0.0}
    for k in range(3):
        gradient = rng.normal(size=stepper.w.shape)
        stepper.slopes = lambda gradient=gradient: gradient
        stepper.step(k)
        found = evaluate(lines_of(lines, "p", "s", "theta"), known | {r"\nabla\mathcal L": gradient, "k": k + 1})
        known |= {name: value for name, (value,) in found.items()}
        assert np.abs(known["theta"] - stepper.w).max() <= ROUNDING
    assert not unsaid(given)


def test_noise_and_averages_have_their_lines():
    given = problem(training="weight_noise = 0.1\naverage_rate = 0.5\nlearning_rate = 0.1\nbatch_size = 8")
    found = evaluate(
        lines_of(section(given, "Step"), "W", "thetaprime"),
        {"W": 1.0, r"\tilde W": 2.0, "theta": 3.0, "thetaprime": 1.0},
    )
    assert (found["W"][0], found["thetaprime"][0]) == pytest.approx((1.1, 1.1))
    assert not unsaid(given)
