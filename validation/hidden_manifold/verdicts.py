"""Verdicts on pairs of methods: how often true pairs differ, and how often one with twice the learning rate is found.

Runs of SGD are grouped by 4, 8 and 16 and held against their limit, on random problems: order parameters against chains
and against runs line by line, of one Gaussian and of mixtures, and densities against runs with their weights. Of true
pairs 5 % should differ.

The mean over runs is off the limit by an amount of order 1/N: the more runs there are the more of it they see. Problems
are drawn with fixed seeds.

Writes a section of docs/verdicts.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import meanfield
from meanfield.cli import DONE, FAILED, run
from validation.verdicts import Pair, Rates, rates, study

REPLICAS = (4, 8, 16)

PROBLEMS_OF_EACH = 4

COMPARISONS = 15
"""Number of comparisons of sixteen runs, for each problem; of fewer runs there are more."""

STOP, OUTPUTS = 3.0, 4

ATOMS = {"law": "atoms", "eigenvalues": [0.4, 1.6]}
MIXTURE = [{"weight": 0.4, "scale": 0.8}, {"weight": 0.6, "scale": 1.2}]
CHAIN = {"nonlinearity": "linear", "spectrum": ATOMS}
LINES = {"method": "plain"}

PROBLEMS: dict[str, tuple[str, int, int, dict[str, Any], dict[str, Any]]] = {
    "chain": ("order_parameters", 1, 1000, CHAIN, {"method": "chain"}),
    "chain, two units": ("order_parameters", 2, 1000, CHAIN, {"method": "chain"}),
    "sign": ("order_parameters", 1, 300, {"nonlinearity": "sign"}, LINES),
    "tanh": ("order_parameters", 1, 600, {"nonlinearity": "tanh"}, LINES),
    "tanh, two units": ("order_parameters", 2, 300, {"nonlinearity": "tanh"}, LINES),
    "mixture, sign": ("order_parameters", 1, 300, {"nonlinearity": "sign", "components": MIXTURE}, LINES),
    "weights, sign": ("density", 1, 300, {"nonlinearity": "sign"}, LINES | {"snapshots": [STOP]}),
    "weights, atoms": (
        "density",
        2,
        300,
        {"nonlinearity": "sign", "spectrum": ATOMS},
        LINES | {"snapshots": [STOP]},
    ),
}
"""Methods, units, dimensions, inputs and settings of SGD, by what is compared with SGD."""


def problem_of(name: str, seed: int) -> meanfield.Problem:
    """Random problem."""
    _, units, N, inputs, particles = PROBLEMS[name]
    rng = np.random.default_rng(seed)
    along = np.round(np.diag(rng.uniform(0.2, 0.5, units)) + 0.1 * rng.uniform(-1.0, 1.0, (units, units)), 2)
    return meanfield.Problem(
        family="hidden_manifold",
        inputs={"aspect_ratio": 0.5} | inputs,
        teacher={"output_weights": np.round(rng.uniform(0.5, 1.0, units), 2).tolist(), "overlap": np.eye(units)},
        student={
            "output_weights": np.round(rng.uniform(0.5, 1.0, units), 2).tolist(),
            "on_teacher": along.tolist(),
            "elsewhere": (0.5 * np.eye(units)).tolist(),
        },
        training={"learning_rate": round(float(rng.uniform(0.1, 0.4)), 2)},
        time={"stop": STOP, "outputs": OUTPUTS},
        particles={"dimension": N, "replicas": max(REPLICAS) * COMPARISONS, "seed": seed} | particles,
    )


def pairs(name: str) -> Iterator[Pair]:
    """Predictions, others with twice the learning rate of the first layer, and runs of some random problems."""
    method = PROBLEMS[name][0]
    for number in range(PROBLEMS_OF_EACH):
        problem = problem_of(name, 100 * list(PROBLEMS).index(name) + number)
        runs = meanfield.simulate_sgd(problem, workers=1)
        training = problem.training
        changes = {"training.learning_rate": 2.0 * training.learning_rate}
        changes["training.output_learning_rate"] = training.second_layer
        right, wrong = (meanfield.solve(p, method) for p in (problem, meanfield.with_values(problem, changes)))
        attributes = {key: right.attrs[key] for key in ("problem", "learning_rate")}
        yield Pair(right, wrong.assign(eta=right["eta"]).assign_attrs(attributes), runs)


def measured() -> Iterator[Rates]:
    """Shares of true pairs and of wrong ones that differ."""
    for name, (method, _, N, _, _) in PROBLEMS.items():
        yield from rates(name, method, N, pairs(name), REPLICAS)


ABOUT = (
    "Order parameters are judged by Q, R, the second layer v and the generalisation error, of chains and of runs line "
    "by line; densities besides by W1 and KS of the weights for each eigenvalue. What is twice as fast has here twice "
    "the learning rate of the first layer."
)


def main() -> int:
    """Measure, write the section, and say whether the rates are as claimed."""
    return DONE if study("hidden_manifold", measured(), "N", ABOUT) else FAILED


if __name__ == "__main__":
    run(main)
