"""Equations that problems on images print, evaluated by SymPy, against networks, losses of batches, and steps."""

from copy import deepcopy
from typing import get_args

import numpy as np
import pytest
import sympy as sp

from meanfield.ensembles.averages import AVERAGE, clocked
from meanfield.explanation.equations import Equation, equations_of
from meanfield.families.latent_tree.images.replicas import ImageReplicas, _fresh
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
        known = {"c": counted(i @ i.T, "ik"), "q": counted(np.repeat((y[0] * y[1]).sum(axis=-1), 2), "i")}
        found = evaluate(section(given, "Loss"), known)
    else:
        known = {"y": np.pad(y[: 2 + H].transpose(2, 0, 1), ((1, 0), (0, 0), (1, 0))), "n_out": 3}
        if kind == "exact":
            apart = 0.5 * ((y[2 + H] - y[3 + H :]) ** 2).sum(axis=-1)
            known["D"] = np.pad(apart, ((2, 0), (1, 0)))
        for line in lines_of(section(given, "Loss"), "r[v, a]", "xi[v, a]"):
            name = str(line.left.base)
            known[name] = np.zeros((2 + H, 5))
            for v, a in np.ndindex(2 + H, 4):
                ((known[name][v, a + 1],),) = evaluate([line], known | {"v": v, "a": a + 1}).values()
        found = evaluate(lines_of(section(given, "Loss"), r"\mathcal L"), known)
    wanted = batch_slope(given.loss.contrast, y)[0]
    assert found[r"\mathcal L"][0] == pytest.approx(wanted, rel=ROUNDING)  # of sums of some ten terms
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


def test_noise_and_averages_are_those_of_the_code():
    given = problem(
        training="weight_noise = 0.1\naverage_rate = 0.5\nlearning_rate = 0.1\nbatch_size = 8",
        network="widths = [6, 3]\nbias = true",
    )
    stepper, averaged = ImageReplicas(given, range(1)), clocked(given, ImageReplicas)(range(1))
    lines = section(given, "Step")
    weights = given.initial_weights.like(stepper.w[0].copy())
    fresh = _fresh(weights.W[0], deepcopy(stepper.rngs[0]))
    bound = np.sqrt(6 / (6 + 16))  # of 16 pixels and 6 nodes
    assert any(r"\sqrt{6/(n_{in} + n)}" in line for line in lines if isinstance(line, str))
    assert 0.9 * bound < np.abs(fresh).max() < bound  # one of 96 numbers is in the tenth, but once in 25,000
    stepper._blend()
    blended = given.initial_weights.like(stepper.w[0])
    (W,) = evaluate(lines_of(lines, "W"), {"W": weights.W[0], r"\tilde W": fresh})["W"]
    assert np.abs(W - blended.W[0]).max() <= ROUNDING
    assert all((mine == before).all() for mine, before in zip(blended.b, weights.b, strict=True))
    before = averaged.state[AVERAGE].copy()
    averaged.advance(0, 1)
    known = {"theta": averaged.state["w"], "thetaprime": before}
    (average,) = evaluate(lines_of(lines, "thetaprime"), known)["thetaprime"]
    assert np.abs(average - averaged.state[AVERAGE]).max() <= ROUNDING
    assert np.abs(average - before).max() > ROUNDING
    assert not unsaid(given)


@pytest.mark.parametrize("kind", ["simple", "nt_xent"])
def test_no_letter_has_two_meanings(kind):
    given = problem(
        network="widths = [6, 3]\noutput_normalisation = true\nbias = true",
        loss=f"kind = '{kind}'",
        training="learning_rate = 0.1\nbatch_size = 8\nmomentum_rate = 2.0",
    )
    found = equations_of(given, symbols=True)
    lines = [line for part in found.sections for line in part.lines if isinstance(line, Equation)]
    sides = [side for line in lines for side in (line.left, line.right) if isinstance(side, sp.Basic)]
    entries = set().union(*(side.atoms(sp.Indexed) for side in sides))
    bases, indices = {str(each.base) for each in entries}, {str(place) for each in entries for place in each.indices}
    lefts, rows = {str(line.left) for line in lines}, {symbol for symbol, _, _ in found.symbols}
    assert not bases & indices
    assert not (bases | indices) & rows
    assert (bases | indices) & lefts == {"W"}  # of a layer, and of all
    assert ("network.epsilon" in {key for _, key, _ in found.symbols}) == (kind == "simple")
