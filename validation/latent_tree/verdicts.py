"""Verdicts on pairs of methods: how often true pairs differ, and how often one that learns twice as fast is found.

Runs of SGD are grouped by 4, 8 and 16 and held against their limit, on random trees: the density of nodes with two
weights, on the circle, and of nodes with three, by particles, against runs that each draw their start; and the exact
flow of four nodes, on several trees of two values and of three, against runs that share it. Of true pairs 5 % should
differ.

The mean over starts is off the density by the inverse of the number of nodes, and the mean over batches by the learning
rate: the more runs there are the more of it they see. Problems are drawn with fixed seeds.

Writes a section of docs/verdicts.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import meanfield
from meanfield.cli import DONE, FAILED, run
from validation.verdicts import Pair, Rates, rates, right_and_twice_as_fast, study

REPLICAS = (4, 8, 16)

COMPARISONS = 15
"""Number of comparisons of sixteen runs, for each tree; of fewer runs there are more."""

STOP, OUTPUTS = 3.0, 3

PROBLEMS: dict[str, dict[str, Any]] = {
    "circle, lengths stay": {"leaves": 2, "nodes": 100, "fixed": True},
    "circle, lengths are trained": {"leaves": 2, "nodes": 100, "fixed": False},
    "circle, few nodes": {"leaves": 2, "nodes": 8, "fixed": True},
    "three weights": {"leaves": 3, "nodes": 100, "fixed": True},
}
"""Random trees, by densities that are compared with SGD."""

FLOWS: dict[str, dict[str, Any]] = {
    "flow, lengths stay": {"fixed": True},
    "flow, lengths are trained": {"fixed": False},
    "flow, three values": {"fixed": True, "values": 3},
}
"""Trees and starts, by exact flows that are compared with SGD."""

TREES = range(101, 105)
"""Seeds of the trees."""

TREES_OF_FLOWS = range(101, 111)
"""Seeds of the trees of flows: which nodes slide at their gates differs from one to the next."""


def problem_of(seed: int, leaves: int, nodes: int, fixed: bool, values: int = 2) -> meanfield.Problem:
    """Random tree with two latents below the root; a leaf of more than two values is an input for each of them."""
    rng = np.random.default_rng(seed)
    polarity = [np.round(rng.uniform(0.5, 0.95, count), 2).tolist() for count in (2, 2 * leaves)]
    return meanfield.Problem(
        family="latent_tree",
        tree={"depth": 2, "children": [2, leaves], "values": values, "polarity": polarity},
        network={
            "nodes_per_latent": nodes,
            "initial": {"law": "sphere", "positive": 0.75, "fixed_lengths": fixed, "seed": seed},
        },
        training={"learning_rate": 0.05, "batch_size": 16},
        density={"scheme": "automatic" if leaves == 2 else "particles", "tolerance": 2e-3},
        time={"stop": STOP if fixed else 0.3 * STOP, "outputs": OUTPUTS},
        particles={
            "replicas": max(REPLICAS) * COMPARISONS * (4 if nodes == 8 else 1),  # few nodes take little time
            "score_samples": 2,
            "seed": seed,
            "common_start": False,
        },
    )


def pairs(drawn: dict[str, Any]) -> Iterator[Pair]:
    """Densities and runs of some trees."""
    for seed in TREES:
        problem = problem_of(seed, **drawn)
        runs = meanfield.simulate_sgd(problem, workers=1)
        yield Pair(*right_and_twice_as_fast(problem, "density", runs), runs)


def flow_pairs(fixed: bool, values: int = 2) -> Iterator[Pair]:
    """Exact flows of four nodes, and runs that start with the same ones."""
    for seed in TREES_OF_FLOWS:
        problem = meanfield.with_values(
            problem_of(seed, 2, 4, fixed, values),
            {
                "particles.common_start": True,
                "particles.replicas": max(REPLICAS) * COMPARISONS // 2,
                "time.stop": STOP if fixed else 0.2 * STOP,  # weights of no fixed length become infinite in finite time
            },
        )
        runs = meanfield.simulate_sgd(problem, workers=1)
        yield Pair(*right_and_twice_as_fast(problem, "population", runs), runs)


def measured() -> Iterator[Rates]:
    """Shares of true pairs and of wrong ones that differ."""
    for name, drawn in PROBLEMS.items():
        yield from rates(name, "density", drawn["nodes"], pairs(drawn), REPLICAS)
    for name, drawn in FLOWS.items():
        yield from rates(name, "population", 4, flow_pairs(**drawn), REPLICAS)


ABOUT = (
    "Densities are judged by the loss, Delta, mean squares, W1 and, of three weights, KS at once, with runs that "
    "each draw their start; exact flows by loss, selectivity and Delta, with runs that share it, also where latents "
    "have three values, and leaves an input for each of them. A node that slides along the surface where its gate "
    "opens is missed by SGD by a part of a step that does not shrink relative to the scatter: half a step is allowed "
    "for all that a learning rate moves, so that fewer differ where runs scatter by little more. The test takes runs "
    "for Gaussian, which those of eight nodes are not: the skewness of their loss is -1.3, and Student's test of one "
    "number of a Gamma law of that skewness differs in 8.0, 7.7 and 6.7 % of 4, 8 and 16 runs."
)


def main() -> int:
    """Measure, write the section, and say whether the rates are as claimed."""
    return DONE if study("latent_tree", measured(), "nodes", ABOUT) else FAILED


if __name__ == "__main__":
    run(main)
