"""Warnings about latent-tree problems that do something else than most people expect."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from meanfield.explanation.prediction import Prediction
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.starts import SphereStart


def warnings_of(problem: Problem, predicted: list[Prediction]) -> list[str]:
    """Warnings about a problem, each a sentence with a remedy.

    Parameters
    ----------
    problem : Problem
    predicted : list of Prediction
        From `meanfield.explanation.prediction`.
    """
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
    if problem.data is None and any(np.any(rho == 0.0) for rho in problem.tree.polarities):
        yield "tree.polarity: an edge with polarity 0 tells nothing of the root; what is below it cannot be learnt"
    if loss.kind == "batch_ratio":
        yield (
            "loss.kind = 'batch_ratio' is no mean over a batch: exact methods take the limit of large batches, from "
            "which SGD differs by O(1/batch_size)"
        )
