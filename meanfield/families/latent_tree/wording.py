"""Wording of latent-tree problems: sentences about tree, network, loss, training and time, and warnings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from meanfield.ensembles.averages import average_in_words
from meanfield.ensembles.momentum import momentum_in_words
from meanfield.explanation.explanation import Statement
from meanfield.explanation.prediction import Prediction
from meanfield.families.latent_tree.problem import Loss, Problem
from meanfield.families.latent_tree.settings import RingObjects, SphereStart, Start, UniformStart
from meanfield.families.latent_tree.tree import PolarityLaw, RegularLaw, Tree
from meanfield.ingredients.schedules.shapes import Schedule, in_words_of

LOSSES = {
    "simple": "r+ - r-, with r = |y - y'|^2/2",
    "triplet": "soft triplet",
    "infonce": "InfoNCE",
    "exact": "r+ - r-, weighted by the distance of the samples themselves",
    "beta": "(1 + beta) r+ - r-",
    "nt_xent": "NT-Xent, negatives are all other views of the batch",
    "batch_ratio": "ratio of exponentials of mean distances in a batch, without a logarithm",
}


def in_words(problem: Problem, look_up: bool = True) -> list[Statement]:
    """Sentences about a problem, in the order of its file; see `meanfield.explanation.explanation.in_words`."""
    return [
        ("tree", _tree(problem)) if problem.data is None else ("data", ring_in_words(problem.data)),
        ("network", _network(problem)),
        ("loss", loss_in_words(problem.loss)),
        ("training", _training(problem)),
        ("time", problem.time.in_words),
    ]


def _tree(problem: Problem) -> str:
    tree, latents = problem.tree, problem.shape.latents
    *inner, leaf = reversed(tree.values_at)
    several = "" if set(inner) == {2} else f" with {' or '.join(map(str, sorted(set(inner))))} values"
    if tree.leaves == "one_hot":
        leaves = f"with {leaf} values, an input for each"
    elif tree.inputs.shape[1] > 1:
        leaves = f"with {leaf} values, each of {tree.inputs.shape[1]} inputs"
    else:
        *first, last = (f"{x:g}" for x in tree.inputs[:, 0])
        leaves = f"with the values {', '.join(first)} and {last}"
    if len(tree.root) == 2:
        root = f"is 1 with probability {tree.root[1]:g}"
    else:
        root = f"has its values with the probabilities {', '.join(f'{p:.4g}' for p in tree.root)}"
    return (
        f"{tree.depth} level(s), {sum(latents[1:])} latent(s){several} above {latents[0]} leaves {leaves}; "
        f"{edges_in_words(tree)}; the root {root}"
    )


def edges_in_words(tree: Tree) -> str:
    """Law of the edges."""
    law = tree.polarity
    if isinstance(law, PolarityLaw):
        signs = "of random sign" if law.random_sign else "positive"
        return f"polarities drawn from {law.low:g} to {law.high:g}, {signs}"
    if law is not None:
        sizes = [abs(x) for row in law for x in row]
        return f"polarities of size {min(sizes):g} to {max(sizes):g}"
    if isinstance(tree.transitions, RegularLaw):
        drawn = tree.transitions
        return f"random transitions of strength {drawn.low:g} to {drawn.high:g} whose rows and columns are even"
    return "transitions as given"


def ring_in_words(data: RingObjects) -> str:
    """Objects on a ring."""
    return (
        f"two objects on a ring of {data.sites} pixels, two pixels side by side or with one between them; "
        "nodes see two neighbouring pixels and are the outputs"
    )


def _network(problem: Problem) -> str:
    network = problem.network
    numbers = problem.weight_count
    bias = "with biases" if network.bias else "without biases"
    start = _start(network.initial) if problem.initial is None else f"which start {problem.initial.in_words}"
    outputs = f"f/(|f| + {network.epsilon:g})" if network.output_normalisation else "the last layer itself"
    return (
        f"{network.nodes_per_latent} ReLU node(s) for each latent, {bias}, {numbers:,} weights in all, {start}; "
        f"outputs are {outputs}"
    )


def _start(start: Start) -> str:
    if isinstance(start, UniformStart):
        return "uniform within 1/sqrt(inputs)"
    if isinstance(start, SphereStart):
        held = "where they stay" if start.fixed_lengths else "from where all are trained"
        dealt = f", latents dealt to {start.outputs} outputs in turns" if start.outputs > 1 else ""
        share = f"of which {start.positive:.4g} count positively"
        return f"on the unit sphere, {held}, with averages over nodes, {share}{dealt}"
    return "as given"


def loss_in_words(loss: Loss) -> str:
    """Sentence about a loss."""
    parts = [LOSSES[loss.kind]]
    if loss.kind == "beta" or loss.beta != 0.0:
        parts.append(f"beta = {in_words_of(loss.beta)}")
    elif loss.kind != "simple":
        parts.append(f"temperature {in_words_of(loss.temperature)}")
    if loss.kind == "triplet":
        parts.append(f"margin {in_words_of(loss.margin)}")
    if loss.kind in ("infonce", "exact"):
        parts.append(f"{loss.negatives} negative(s)")
    return ", ".join(parts)


def _training(problem: Problem) -> str:
    training = problem.training
    changes = isinstance(training.learning_rate, Schedule)
    steps = "" if changes else f", {problem.time.stop * problem.steps_per_time:,.0f} steps to the end"
    return (
        f"SGD with the learning rate {in_words_of(training.learning_rate)} and {in_words_of(training.batch_size)} "
        f"anchors per step{steps}; in the population, the flow W' = -grad L{average_in_words(training.average_rate)}"
        f"{momentum_in_words(training, 'a flow of speed 1')}"
    )


def warnings_of(problem: Problem, predicted: list[Prediction]) -> list[str]:
    """Warnings about a problem, each a sentence with a remedy; see `meanfield.problems.family.Family.warnings`."""
    return list(_warnings(problem))


def _warnings(problem: Problem) -> Iterator[str]:
    network, loss = problem.network, problem.loss
    bounded = loss.kind in ("triplet", "infonce", "nt_xent", "batch_ratio")
    bounded = bounded or (isinstance(network.initial, SphereStart) and network.initial.fixed_lengths)
    if not network.output_normalisation and not bounded:
        yield (
            "network.output_normalisation = false: nothing bounds the weights under this loss, and they become "
            "infinite in finite time if the tree has two levels or more; set it to true, or take a short time.stop"
        )
    if network.output_normalisation and 0.0 < network.epsilon < 1e-2:  # below it the flow is stiff
        yield (
            f"network.epsilon = {network.epsilon:g}: outputs that pass through 0 turn round at once, which makes the "
            "gradient flow slow to solve; raise epsilon, or use the method 'particles'"
        )
    if problem.data is None and any((np.ptp(edge, axis=1) == 0.0).all(axis=1).any() for edge in problem.tree.edges):
        key, edge = ("polarity", "with polarity 0") if problem.tree.polarity else ("transitions", "with equal rows")
        yield f"tree.{key}: an edge {edge} tells nothing of the root; what is below it cannot be learnt"
    if loss.kind == "batch_ratio":
        yield (
            "loss.kind = 'batch_ratio' is no mean over a batch: exact methods take the limit of large batches, from "
            "which SGD differs by O(1/batch_size)"
        )
