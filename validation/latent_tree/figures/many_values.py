"""Latents with many values: exact flows of two levels against plain SGD, with equal and with general transitions.

The flow of a network on a tree whose latents have three to five values is held against SGD in NumPy that draws leaves,
differentiates by hand, and shares no code with the library; one that is a quarter faster has to be refused. Means over
runs are continued to steps of 0. A flow that is right is refused in 1 % of seeds at most, for each case: Student's law
and Bonferroni's bound over all weights.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from meanfield.families.latent_tree.problem import Problem
from validation.flows import Case, study_of

Array = np.ndarray


def polarised(m: int, rho: float) -> Array:
    """Transitions to the same value with the chance rho, else to any value, that one included."""
    return np.asarray(rho * np.eye(m) + (1.0 - rho) / m)


def train(
    problem: Problem, edges: list[list[Array]], rng: np.random.Generator, runs: int, N: int, eta: float, steps: int
) -> Array:
    """Weights of runs of SGD on two levels of latents with transitions to each child, from the root down.

    Of the loss 'simple', or 'infonce' with one negative; outputs are divided by their length and epsilon.
    """
    n, eps, root = problem.network.nodes_per_latent, problem.network.epsilon, problem.tree.root
    above, m = len(edges[0]), edges[1][0].shape[1]
    inputs, cut = m * len(edges[1]) // above, above * n * m * len(edges[1]) // above
    start = problem.initial_weights.vector
    V = np.tile(start[:cut].reshape(above, n, inputs), (runs, 1, 1, 1))
    U = np.tile(start[cut:].reshape(n, above * n), (runs, 1, 1))

    def child(parent: Array, chances: Array) -> Array:
        return np.asarray((rng.random(parent.shape)[..., None] > np.cumsum(chances, axis=1)[parent, :-1]).sum(axis=-1))

    for _ in range(steps):
        own, other = rng.choice(len(root), (2, runs, N), p=root)
        below = [child(np.stack([own, own, other]), chances) for chances in edges[0]]
        leaves = [child(below[k * above // len(edges[1])], chances) for k, chances in enumerate(edges[1])]
        x = np.eye(m)[np.stack(leaves, axis=-1)].reshape(3, runs, N, above, inputs)
        before = np.einsum("vrbli,rlni->vrbln", x, V, optimize=True)
        h = np.maximum(before, 0.0).reshape(3, runs, N, above * n)
        f = h @ U.mT
        size = np.sqrt((f * f).sum(axis=-1, keepdims=True))
        y = f / (size + eps)
        by_y = np.stack([y[2] - y[1], y[1] - y[0], y[0] - y[2]]) / N
        if problem.loss.kind == "infonce":
            gap = ((y[0] - y[1]) ** 2 - (y[0] - y[2]) ** 2).sum(axis=-1, keepdims=True) / (2 * problem.loss.temperature)
            by_y = by_y / (1.0 + np.exp(-gap)) / problem.loss.temperature
        along = (f * by_y).sum(axis=-1, keepdims=True) / np.where(size > 0.0, size, 1.0)
        by_f = by_y / (size + eps) - f * along / (size + eps) ** 2
        by_before = (by_f @ U).reshape(before.shape) * (before > 0.0)
        U = U - eta * (by_f.mT @ h).sum(axis=0)
        V = V - eta * np.einsum("vrbln,vrbli->rlni", by_before, x, optimize=True)
    return np.concatenate([V.reshape(runs, -1), U.reshape(runs, -1)], axis=1)


def cases() -> dict[str, Case]:
    """All cases, with random transitions."""
    rng = np.random.default_rng(3)
    rho = rng.uniform(0.6, 0.95, 6).round(2).tolist()
    equal = [[polarised(4, each) for each in part] for part in (rho[:2], rho[2:])]
    general = [
        [rng.multinomial(20, rng.dirichlet(np.full(into, 0.5), size=of)) / 20 for _ in range(count)]
        for of, into, count in ((3, 5, 2), (5, 4, 4))
    ]
    trees: dict[str, tuple[dict[str, Any], list[list[Array]], list[float]]] = {
        "equal": ({"values": 4, "polarity": [rho[:2], rho[2:]]}, equal, [0.4, 0.3, 0.2, 0.1]),
        "general": (
            {"values": [3, 5, 4], "transitions": [[edge.tolist() for edge in part] for part in general]},
            general,
            [0.5, 0.3, 0.2],
        ),
    }
    found = {}
    for loss, name in (("simple", "equal"), ("simple", "general"), ("infonce", "general")):
        tables, edges, root = trees[name]
        network = {"nodes_per_latent": 4, "output_normalisation": True, "epsilon": 0.3}
        data = {
            "tree": {"depth": 2, "children": 2, "root": root} | tables,
            "network": network | {"initial": {"law": "uniform", "seed": 4}},
            "loss": {"kind": loss} | ({"temperature": 0.5} if loss == "infonce" else {}),
            "time": {"stop": 4.0},
        }
        problem = Problem.model_validate(data)
        title = f"{'InfoNCE' if loss == 'infonce' else loss}, {name} transitions"
        # where a node rests, noise wakes it in few runs, which Student's law does not know: small steps, and a seed of
        # the start with which nodes see three eighths of all inputs
        found[f"{loss} {name}"] = Case(title, problem, partial(train, problem, edges), (16, 16), 300, 200)
    return found


STUDY = study_of(cases)
