"""Problems of tests: the reference problems of latent_tree.md, section 5, and variants."""

import numpy as np

from meanfield.families.latent_tree.problem import Problem

WEIGHTS = [
    [[[0.9, -0.4], [0.5, 0.8]], [[-0.3, 0.7], [0.6, 0.2]]],
    [[[0.5, -0.6, 0.3, 0.4], [-0.2, 0.7, 0.6, -0.5]]],
]


def case_b(normalised=False, stop=1.0, outputs=3, loss=None, **more):
    """Two levels, two nodes, given weights."""
    network = {"nodes_per_latent": 2, "output_normalisation": normalised}
    data = {
        "tree": {"depth": 2, "root": [0.4, 0.6], "polarity": [[0.8, -0.5], [0.9, 0.8, 0.7, 0.6]]},
        "network": network | {"initial": {"law": "explicit", "weights": WEIGHTS}},
        "loss": loss or {},
        "time": {"stop": stop, "outputs": outputs},
    }
    return Problem.model_validate(data | more)


def trigonometric(depth=2, nodes=2, one=0.5, bias=True, normalised=False, **loss):
    """Weights and polarities from sines and cosines of their places."""
    levels, inputs = range(1, depth + 1), lambda level: 2 if level == 1 else 2 * nodes

    def rho(level, m):
        return (0.9 - 0.05 * level - 0.02 * m) * (-1) ** (m * (m + 1) // 2)

    def weight(level, m, j, k):
        return float(np.cos(1 + level + 2 * m + 3 * j + 5 * k) / np.sqrt(inputs(level)))

    def latents(level):
        return range(2 ** (depth - level))

    W = [
        [[[weight(level, m, j, k) for k in range(inputs(level))] for j in range(nodes)] for m in latents(level)]
        for level in levels
    ]
    b = [[[float(0.3 * np.sin(level + m + 2 * j)) for j in range(nodes)] for m in latents(level)] for level in levels]
    initial = {"law": "explicit", "weights": W} | ({"biases": b} if bias else {})
    network = {"nodes_per_latent": nodes, "bias": bias, "output_normalisation": normalised, "initial": initial}
    polarity = [[rho(level, m) for m in latents(level)] for level in range(depth - 1, -1, -1)]
    tree = {"depth": depth, "root": [1.0 - one, one], "polarity": polarity}
    return Problem.model_validate({"tree": tree, "network": network, "loss": loss, "time": {"stop": 1.0}})


def drawn(children, nodes=2, normalised=False, bias=False, leaves=(0.0, 1.0), seed=0, batch_size=128, **loss):
    """Random tree and weights; children from the root down."""
    data = {
        "tree": {
            "depth": len(children),
            "children": list(children),
            "root": [0.3, 0.7],
            "polarity": {"law": "uniform", "low": 0.5, "random_sign": True, "seed": seed},
            "leaves": list(leaves),
        },
        "network": {
            "nodes_per_latent": nodes,
            "bias": bias,
            "output_normalisation": normalised,
            "initial": {"law": "uniform", "seed": seed},
        },
        "loss": loss,
        "training": {"batch_size": batch_size},
        "time": {"stop": 1.0},
    }
    return Problem.model_validate(data)


def several(values=3, children=2, nodes=2, normalised=False, bias=True, leaves=None, edges=None, **loss):
    """Two levels of latents with several values, by the level from the root down if they are many."""
    data = {
        "tree": {"depth": 2, "children": children, "values": values} | (edges or SYMMETRIC),
        "network": {"nodes_per_latent": nodes, "bias": bias, "output_normalisation": normalised}
        | {"initial": {"law": "uniform", "seed": 5}},
        "loss": loss,
        "time": {"stop": 1.0},
    }
    if not isinstance(values, list):
        data["tree"]["root"] = [0.5, *[0.5 / (values - 1)] * (values - 1)]
    if leaves is not None:
        data["tree"]["leaves"] = leaves
    return Problem.model_validate(data)


SYMMETRIC = {"polarity": [[0.8, -0.4], [0.9, 0.6, 0.7, -0.3]]}
"""Edges of two levels with two children each."""

REGULAR = {"transitions": {"law": "regular", "low": 0.6, "seed": 3}}
"""Edges whose matrices have even rows and columns."""
