"""Pairs of methods whose verdicts `validation.verdicts` measures: order parameters and densities against SGD.

The mean over runs is off the limit by an amount of order 1/N: the more runs there are the more of it they see.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import meanfield
from meanfield.problems.base import Problem
from validation.verdicts import Pair, Study

STOP, OUTPUTS = 1.5, 4

ATOMS = {"law": "atoms", "eigenvalues": [0.4, 1.6]}
MIXTURE = [{"weight": 0.4, "scale": 0.8}, {"weight": 0.6, "scale": 1.2}]
CHAIN = {"nonlinearity": "linear", "spectrum": ATOMS}
LINES = {"method": "plain"}

PROBLEMS: dict[str, tuple[str, int, int, dict[str, Any], dict[str, Any]]] = {
    "chain": ("order_parameters", 1, 1000, CHAIN, {"method": "chain"}),
    "chain, two units": ("order_parameters", 2, 1000, CHAIN, {"method": "chain"}),
    "sign": ("order_parameters", 1, 300, {"nonlinearity": "sign"}, LINES),
    "tanh": ("order_parameters", 1, 400, {"nonlinearity": "tanh"}, LINES),
    "tanh, two units": ("order_parameters", 2, 300, {"nonlinearity": "tanh"}, LINES),
    "mixture, sign": ("order_parameters", 1, 300, {"nonlinearity": "sign", "components": MIXTURE}, LINES),
    "weights, sign": ("density", 1, 300, {"nonlinearity": "sign"}, LINES | {"snapshots": [STOP]}),
    "weights, atoms": (
        "density",
        2,
        600,
        {"nonlinearity": "sign", "spectrum": ATOMS},
        LINES | {"snapshots": [STOP]},
    ),
    "weights, tanh, two units": ("density", 2, 600, {"nonlinearity": "tanh"}, LINES | {"snapshots": [STOP]}),
}
"""Methods, units, dimensions, inputs and settings of SGD, by what is compared with SGD."""


def problem_of(name: str, seed: int) -> Problem:
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
        particles={"dimension": N} | particles,
    )


STUDY = Study(
    "Order parameters are judged by Q, R, the second layer v and the generalisation error, of chains and of runs line "
    "by line; densities besides by W1 and KS of the weights for each eigenvalue. What learns twice as fast has here "
    "twice the learning rate. Of two units Q is off by 0.15 of its scatter at N = 300, by order 1/N from the start on, "
    "and 10 % of 16 runs with weights differ there: that pair has N = 600.",
    {name: Pair(method, partial(problem_of, name)) for name, (method, *_) in PROBLEMS.items()},
)
