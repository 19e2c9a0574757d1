"""Forward and backward pass of the network on given leaves, for many samples and replicas at once.

Arrays have latents before samples, so that each level is one product of matrices per latent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.families.latent_tree.shape import Shape
from meanfield.families.latent_tree.weights import Array, Weights
from meanfield.typing import FloatArray


class Activity(NamedTuple):
    """Values of all nodes.

    Parameters
    ----------
    inputs : list of ndarray, shape (..., latents, samples, inputs)
        Of the latents at levels 1 to L.
    before : list of ndarray, shape (..., latents, samples, nodes)
        Pre-activations.
    """

    inputs: list[FloatArray]
    before: list[FloatArray]

    @property
    def last(self) -> FloatArray:
        """Last layer, shape (..., samples, nodes)."""
        return self.before[-1][..., 0, :, :]


def forward(weights: Weights, leaves: FloatArray) -> Activity:
    """Values of all nodes.

    Parameters
    ----------
    leaves : ndarray, shape (..., samples, leaves times their inputs)
    """
    shape = weights.shape
    inputs = []
    before = []
    below = np.swapaxes(leaves.reshape(*leaves.shape[:-1], shape.latents[0], shape.leaf_inputs), -2, -3)
    for level in shape.levels:
        inputs.append(_side_by_side(below, shape, level))
        u = inputs[-1] @ np.swapaxes(_rows(weights.W[level - 1]), -1, -2)
        if weights.b:
            u += weights.b[level - 1][..., None, :]
        before.append(u)
        below = np.maximum(u, 0.0)
    return Activity(inputs, before)


def signals(weights: Weights, found: Activity, by_last: FloatArray) -> list[FloatArray]:
    """Derivatives by the pre-activations at levels 1 to L of what has the derivative `by_last` by the last layer.

    Parameters
    ----------
    by_last : ndarray, shape (..., samples, nodes)
    """
    shape, by_before = weights.shape, by_last[..., None, :, :]
    kept = [by_before]
    for level in range(shape.depth, 1, -1):
        by_inputs = by_before @ _rows(weights.W[level - 1])
        by_below = _one_by_one(by_inputs, shape, level)
        by_before = np.multiply(by_below, found.before[level - 2] > 0.0, out=by_below)
        kept.append(by_before)
    return kept[::-1]


def gradient(weights: Weights, found: Activity, by_last: FloatArray) -> Weights:
    """Derivatives by the weights of what has the derivative `by_last` by the last layer, summed over samples."""
    shape, by_before = weights.shape, signals(weights, found, by_last)
    W = [np.swapaxes(by, -1, -2) @ x for by, x in zip(by_before, found.inputs, strict=True)]
    b = [by.sum(axis=-2) for by in by_before] if weights.b else []
    return Weights.nested(shape, W, b)


def _rows(W: Array) -> Array:
    """Weights with the inputs of all children in one row."""
    return W.reshape(*W.shape[:-2], -1)


def _side_by_side(below: FloatArray, shape: Shape, level: int) -> FloatArray:
    """Nodes of the children of each latent in one row, shape (..., latents, samples, inputs)."""
    children = below.reshape(*below.shape[:-3], shape.latents[level], shape.children[level - 1], *below.shape[-2:])
    moved = np.swapaxes(children, -3, -2)
    return moved.reshape(*moved.shape[:-2], -1)


def _one_by_one(row: FloatArray, shape: Shape, level: int) -> FloatArray:
    """Take apart what `_side_by_side` has put together."""
    children = row.reshape(*row.shape[:-1], shape.children[level - 1], -1)
    moved = np.swapaxes(children, -3, -2)
    return moved.reshape(*moved.shape[:-4], shape.latents[level - 1], *moved.shape[-2:])
