"""Weights and biases of a network with the shape of a tree, and how they move down a gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from meanfield.families.latent_tree.shape import Shape

Array = NDArray[Any]
"""Real numbers, or complex ones whose imaginary part is a derivative."""


@dataclass(frozen=True)
class Weights:
    """Weights of all levels.

    Parameters
    ----------
    W : list of ndarray, shape (..., latents, nodes, children, nodes below)
        By level, from 1 to L.
    b : list of ndarray, shape (..., latents, nodes)
        Biases by level; empty without them.
    """

    shape: Shape
    W: list[Array]
    b: list[Array]

    @classmethod
    def nested(cls, shape: Shape, W: list[Array], b: list[Array] | None = None) -> Weights:
        """Weights whose inputs are numbered in one row, the left child's nodes first."""
        rows = [w.reshape(*w.shape[:-1], shape.children[i], shape.width(i)) for i, w in enumerate(W)]
        return cls(shape, rows, b or [])

    @property
    def vector(self) -> Array:
        """All numbers in one row, shape (..., numbers)."""
        lead = self.W[0].shape[:-4]
        return np.concatenate([part.reshape(*lead, -1) for part in (*self.W, *self.b)], axis=-1)

    def like(self, vector: Array) -> Weights:
        """Weights of the same shape from all their numbers in one row, or of several networks from several rows."""
        parts, first = [], 0
        for part in (*self.W, *self.b):
            parts.append(vector[..., first : first + part.size].reshape(*vector.shape[:-1], *part.shape))
            first += part.size
        return Weights(self.shape, parts[: len(self.W)], parts[len(self.W) :])


def uniform_weights(shape: Shape, bias: bool, rng: Generator) -> Weights:
    """Weights and biases that are uniform within 1/sqrt(number of inputs), level by level from 1 on."""
    W, b = [], []
    for level in shape.levels:
        inputs, latents = shape.inputs[level - 1], shape.latents[level]
        bound = inputs**-0.5
        W.append(rng.uniform(-bound, bound, (latents, shape.nodes, inputs)))
        if bias:
            b.append(rng.uniform(-bound, bound, (latents, shape.nodes)))
    return Weights.nested(shape, W, b)


def sphere_weights(shape: Shape, bias: bool, positive: float, rng: Generator) -> Weights:
    """Hidden weights and biases that are uniform on the unit sphere, and outputs that average nodes of latents.

    Parameters
    ----------
    shape : Shape
        With two levels. Latents below the root are dealt to the outputs in turns.
    positive : float
        Share of nodes with the outgoing weight 1/nodes; the others have -1/nodes.
    """
    latents, nodes = shape.latents[1], shape.nodes
    drawn = rng.standard_normal((latents, nodes, shape.inputs[0] + bias))
    drawn /= np.linalg.norm(drawn, axis=-1, keepdims=True)
    signs = np.where(np.arange(nodes) < round(positive * nodes), 1.0, -1.0)
    outputs = shape.width(2)
    outgoing = (shape.output_of == np.arange(outputs)[:, None])[..., None] * (signs / nodes)
    W = [drawn[..., : shape.inputs[0]], outgoing.reshape(1, outputs, -1)]
    b = [drawn[..., -1], np.zeros((1, outputs))] if bias else None
    return Weights.nested(shape, W, b)


class Motion:
    """The flow W' = -grad L."""

    def velocity(self, weights: Weights, gradient: Weights) -> Array:
        """Velocity of all weights in one row."""
        return -gradient.vector

    def along(self, weights: Weights, move: Weights) -> Array:
        """A move in one row, without what leads away from where weights are held."""
        return move.vector

    def held(self, weights: Weights) -> Array:
        """Weights in one row, back where they are held after a step."""
        return weights.vector


@dataclass(frozen=True)
class ManyNodes(Motion):
    """Two levels with outputs sum_mu (1/n) sum_j v_j f_j of n nodes for each latent, and n times the rate for each.

    The weights of the root are u = v/n: in time t they move as u' = -grad L/n, those below at n times the gradient.

    Parameters
    ----------
    nodes : int
        n.
    fixed_lengths : bool
        Whether nodes stay on the unit sphere, and v where it is.
    """

    nodes: int
    fixed_lengths: bool

    def velocity(self, weights: Weights, gradient: Weights) -> Array:
        """See `Motion.velocity`."""
        W = [-self.nodes * gradient.W[0], -gradient.W[1] / self.nodes]
        b = [-self.nodes * gradient.b[0], -gradient.b[1]] if gradient.b else []
        return self.along(weights, Weights(weights.shape, W, b))

    def along(self, weights: Weights, move: Weights) -> Array:
        """See `Motion.along`."""
        if not self.fixed_lengths:
            return move.vector
        outward = self._along(weights, move.W, move.b) / self._along(weights, weights.W, weights.b)
        W = [move.W[0] - outward[..., None, None] * weights.W[0], np.zeros_like(move.W[1])]
        b = [move.b[0] - outward * weights.b[0], move.b[1]] if move.b else []
        return Weights(weights.shape, W, b).vector

    def held(self, weights: Weights) -> Array:
        """See `Motion.held`."""
        if not self.fixed_lengths:
            return weights.vector
        length = np.sqrt(self._along(weights, weights.W, weights.b))
        W = [weights.W[0] / length[..., None, None], weights.W[1]]
        b = [weights.b[0] / length, weights.b[1]] if weights.b else []
        return Weights(weights.shape, W, b).vector

    @staticmethod
    def _along(weights: Weights, W: list[Array], b: list[Array]) -> Array:
        """Products of the weights of the nodes below the root with others, shape (..., latents, nodes)."""
        found = (weights.W[0] * W[0]).sum(axis=(-2, -1))
        return np.asarray(found + weights.b[0] * b[0] if b else found)
