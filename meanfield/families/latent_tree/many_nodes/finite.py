"""Finitely many nodes of a network that averages over them: their weights and the signs of their outgoing weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from meanfield.families.latent_tree.many_nodes.latents import SIGNS
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.weights import Weights
from meanfield.typing import BoolArray, FloatArray


class FiniteNodes(NamedTuple):
    """Nodes of networks, with the latents that they belong to first.

    Parameters
    ----------
    w : ndarray, shape (networks, latents, nodes, weights)
        With the bias behind the weights.
    has_sign : ndarray of bool, shape (networks, latents, signs, nodes)
        Whether a node's outgoing weight, that which it has at the start, has a sign.
    """

    w: FloatArray
    has_sign: BoolArray

    @property
    def square(self) -> FloatArray:
        """Mean of |w|^2 over nodes, shape (networks, latents, signs); 0 of a sign that no node has."""
        square = (self.w**2).sum(axis=-1)[..., None, :]
        total = np.where(self.has_sign, square, 0.0).sum(axis=-1)
        mean = total / np.maximum(self.has_sign.sum(axis=-1), 1)
        mean[~np.isfinite(self.w).all(axis=(-2, -1))] = np.nan
        return np.asarray(mean)

    @property
    def directions(self) -> FloatArray:
        """Weights of unit length, shape (networks, latents, nodes, weights)."""
        return np.asarray(self.w / np.linalg.norm(self.w, axis=-1, keepdims=True))


def nodes_of(like: Weights, states: FloatArray) -> FiniteNodes:
    """Nodes of networks of two levels that start on the sphere, from all weights of each in a row."""
    weights = like.like(states)
    w = weights.W[0].reshape(*weights.W[0].shape[:-2], -1)
    if weights.b:
        w = np.concatenate([w, weights.b[0][..., None]], axis=-1)
    outgoing = weights.W[1][:, 0, like.shape.output_of, np.arange(w.shape[-3])]
    return FiniteNodes(w, outgoing[..., None, :] * SIGNS[:, None] > 0.0)


def node_coordinates(problem: Problem) -> dict[str, Any]:
    """Coordinates of latents below the root, and of signs, in results of networks that average over nodes."""
    if not problem.averages_nodes:
        return {}
    return {"child": np.arange(1, problem.shape.latents[1] + 1), "sign": SIGNS}
