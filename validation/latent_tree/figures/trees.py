"""Problems of the paper's trials in the readings that print leaves open, and networks that SGD trains on them.

What the paper prints is InfoNCE with one negative at the temperature 0.1, and positive polarities. Its public code has
another loss and random signs, and its configuration file the temperature 0.01. All have biases, normalised outputs, the
usual initial weights, and fresh samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.sizes import without_root
from meanfield.families.latent_tree.tables import Pass, Tables
from meanfield.families.latent_tree.weights import Weights
from validation.latent_tree.figures.seeds import initial_weights, polarities
from validation.latent_tree.figures.sgd import FloatArray, Net, Training, advance, moves_of

BATCH, EPOCH = 128, 500
"""Anchors per step, and steps of an epoch: 64000 samples."""

DEPTH = 5


class Reading(NamedTuple):
    """Reading of what print leaves open: the loss, its temperature, and the signs of polarities."""

    kind: str
    temperature: float
    random_sign: bool


READINGS = {
    "as printed": Reading("infonce", 0.1, False),
    "public code": Reading("batch_ratio", 0.1, True),
}
"""Reading as it is printed, and that of the public code with the printed temperature."""

CROSSED = {
    Reading(kind, temperature, random_sign): f"{said}, {temperature:g}, {'random signs' if random_sign else 'positive'}"
    for kind, said in (("infonce", "InfoNCE"), ("batch_ratio", "batch ratio"))
    for temperature in (0.1, 0.01)
    for random_sign in (False, True)
}
"""Losses, temperatures and signs, each with each, and what they are called."""


def problem_of(reading: Reading, low: float, nodes: int, seed: int, depth: int = DEPTH) -> Problem:
    """Tree and network of one trial; its seed decides sizes of polarities, their signs, and the initial weights."""
    W, b = initial_weights(seed, depth, nodes)
    initial = {"law": "explicit", "weights": [w.tolist() for w in W], "biases": [part.tolist() for part in b]}
    data: dict[str, Any] = {
        "tree": {"depth": depth, "polarity": polarities(seed, depth, low, reading.random_sign)},
        "network": {
            "nodes_per_latent": nodes,
            "bias": True,
            "initial": initial,
            "output_normalisation": True,
            "epsilon": 1e-4,
        },
        "loss": {"kind": reading.kind, "temperature": reading.temperature},
        "training": {"learning_rate": 0.1, "batch_size": BATCH},
        "time": {"stop": 50.0},
    }
    return Problem.model_validate(data)


def start_of(problem: Problem) -> tuple[Net, FloatArray, Training]:
    """Network before training, chances of its tree, and the training; outputs are normalised, nodes have biases."""
    start, loss, network, training = problem.initial_weights, problem.loss, problem.network, problem.training
    W = tuple(W.reshape(*W.shape[:2], -1).astype(np.float32) for W in start.W)
    net = Net(W, tuple(b.astype(np.float32) for b in start.b))
    ratio = loss.kind == "batch_ratio"
    settings = Training(ratio, loss.temperature, network.epsilon, training.learning_rate, training.batch_size)
    return net, moves_of(problem.tree.polarities), settings


def train(problem: Problem, seed: tuple[int, ...], epochs: Sequence[int]) -> list[Weights]:
    """Weights after numbers of epochs, in increasing order, with samples that the seed decides."""
    net, moves, training = start_of(problem)
    found, done = [], 0
    for epoch in epochs:
        advance(net, moves, training, (*seed, epoch), (epoch - done) * EPOCH)
        done = epoch
        W, b = ([part.astype(float) for part in parts] for parts in net)
        found.append(Weights.nested(problem.shape, W, b))
    return found


def unnormalised(problem: Problem) -> Tables:
    """Tables of the network with the last layer itself as its output, and the simple loss, which fit at depth 5."""
    return Tables(without_root(problem))


def scores(tables: Tables, found: Pass) -> FloatArray:
    """Largest exact |correlation| of each latent with its pre-activations, 0 where all are constant."""
    return np.nan_to_num(np.abs(tables.moments(found).correlation)).max(axis=1)


def law_of_leaves(tables: Tables) -> FloatArray:
    """Probabilities of all configurations of the leaves given the root, where that has two children."""
    left, right = tables.given_parent[-1]
    return (left[:, :, None] * right[:, None, :]).reshape(2, -1)
