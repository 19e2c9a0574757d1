"""Norms of covariance operators while networks are trained: 30 seeds for each setting, in both readings.

    python -m validation.latent_tree.figures.norms

writes data/runs/latent_tree/norms.nc, which figures 13 and 14 show. Depth, least polarity and number of nodes vary one
at a time. As in the public code, connections are those of the last layer before its normalisation. The paper's operator
contracts the outputs of two connections; its code contracts the nodes of the latent instead, and keeps the outputs.
Where weights of a level, with its biases and those above, become c times as large, operators of latents at other levels
become c^2 times as large: the product of squared norms of the weights of other levels is saved, too.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield.cli import DONE, parser, run
from meanfield.families.latent_tree.operators import Operator, operators
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.weights import Weights
from meanfield.process.progress import progress_bar
from meanfield.results.files import save
from meanfield.results.provenance import provenance
from validation import OUTPUT
from validation.latent_tree.figures.trees import READINGS, problem_of, train, unnormalised

SEEDS = range(1, 31)
EPOCHS = (0, 1, 2, 5)

LATENTS = {"s0": (1, 0), "s1": (1, 1), "s010": (3, 2), "s1100": (4, 12)}
"""Latents of the figures: their number of levels below the root, and their place among the latents of their level."""

NUMBERS = OUTPUT / "latent_tree" / "norms.nc"


class Setting(NamedTuple):
    """Setting of a network whose norms are compared."""

    depth: int
    low: float
    nodes: int


BASE = Setting(4, 0.8, 4)
SETTINGS = (
    BASE,
    BASE._replace(depth=3),
    BASE._replace(depth=5),
    BASE._replace(low=0.7),
    BASE._replace(low=0.9),
    BASE._replace(nodes=2),
    BASE._replace(nodes=10),
)


def norms(operator: Operator, nodes: int) -> tuple[float, float]:
    """Frobenius norms of an operator by the paper's contraction, and by that of its code."""
    assert operator.right is not None
    K = operator.right.reshape(nodes, -1)  # all but the nodes of the latent in one row
    scale = np.linalg.norm(operator.left) / max(np.linalg.norm(operator.right), 1e-300)
    return operator.norm, float(scale * np.linalg.norm(K @ K.T))


def of_network(problem: Problem, weights: Weights) -> list[tuple[float, float, float]]:
    """Both norms, and the scale of the other weights, of the latents that are shown; NaN where there is none."""
    tables = unnormalised(problem)
    found = tables.forward(weights)
    made = operators(tables, found, tables.evaluate(found))
    depth, nodes = problem.shape.depth, problem.shape.nodes
    squares = np.array([np.sum(W**2) for W in weights.W])
    rows = []
    for below, place in LATENTS.values():
        if below < depth:
            others = float(np.prod(np.delete(squares, depth - 1 - below)))
            rows.append((*norms(made[2**below - 1 + place], nodes), others))
        else:
            rows.append((float("nan"),) * 3)
    return rows


def main() -> int:
    """Train, and measure."""
    parser(__doc__ or "").parse_args()
    began, processor = time.perf_counter(), time.process_time()
    found = np.empty((len(READINGS), len(SETTINGS), len(SEEDS), len(EPOCHS), len(LATENTS), 3))
    with progress_bar(found[..., 0, 0, 0].size, "networks") as bar:
        for place in np.ndindex(found.shape[:3]):
            reading, (depth, low, nodes), seed = list(READINGS.values())[place[0]], SETTINGS[place[1]], SEEDS[place[2]]
            problem = problem_of(reading, low, nodes, seed, depth)
            found[place] = [of_network(problem, weights) for weights in train(problem, (seed, 0), EPOCHS)]
            bar.update(1)
    over = ("reading", "setting", "seed", "epoch", "latent")
    variables = {
        "norm": ((*over, "contraction"), found[..., :2], {"long_name": "Frobenius norm of the covariance operator"}),
        "others": (over, found[..., 2], {"long_name": "product of squared norms of the weights of other levels"}),
        "seconds": ((), time.process_time() - processor, {"long_name": "processor time"}),
    }
    coordinates = {"reading": list(READINGS), "epoch": list(EPOCHS), "latent": list(LATENTS)}
    index = {name: ("setting", [getattr(setting, name) for setting in SETTINGS]) for name in Setting._fields}
    data = xr.Dataset(variables, coordinates | {"contraction": ["paper", "code"]} | index)
    data.attrs = {"Conventions": "CF-1.11", "title": "covariance operators in training"}
    data.attrs["provenance"] = provenance(time.perf_counter() - began)
    save(data, NUMBERS)
    print(f"{found[..., 0, 0, 0].size} networks, {float(data.seconds) / 60:.0f} min of processor time")
    return DONE


if __name__ == "__main__":
    run(main)
