"""Dense ReLU networks without activation of the last layer: forward and backward pass of many samples and networks."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from meanfield.typing import FloatArray

Array = NDArray[Any]
"""Real numbers, or complex ones whose imaginary part is a derivative."""


@dataclass(frozen=True)
class DenseWeights:
    """Weights of all layers.

    Parameters
    ----------
    W : list of ndarray, shape (..., nodes, nodes of the layer below)
        By layer, from 1 on.
    b : list of ndarray, shape (..., nodes)
        Biases by layer; empty without them.
    """

    W: list[Array]
    b: list[Array]

    @property
    def vector(self) -> Array:
        """All numbers in one row, shape (..., numbers)."""
        lead = self.W[0].shape[:-2]
        return np.concatenate([part.reshape(*lead, -1) for part in (*self.W, *self.b)], axis=-1)

    def like(self, vector: Array) -> DenseWeights:
        """Weights of the same shape from all their numbers in one row, or of several networks from several rows."""
        parts, first = [], 0
        for part in (*self.W, *self.b):
            parts.append(vector[..., first : first + part.size].reshape(*vector.shape[:-1], *part.shape))
            first += part.size
        return DenseWeights(parts[: len(self.W)], parts[len(self.W) :])


class Activity(NamedTuple):
    """Values of all nodes.

    Parameters
    ----------
    inputs : list of ndarray, shape (..., samples, nodes of the layer below)
        Of the layers from 1 on.
    last : ndarray, shape (..., samples, nodes)
        Last layer.
    """

    inputs: list[Array]
    last: Array


def uniform_start(widths: tuple[int, ...], bias: bool, rng: Generator) -> DenseWeights:
    """Weights and biases that are uniform within 1/sqrt(number of inputs), for widths from the inputs up."""
    W, b = [], []
    for inputs, nodes in itertools.pairwise(widths):
        bound = inputs**-0.5
        W.append(rng.uniform(-bound, bound, (nodes, inputs)))
        if bias:
            b.append(rng.uniform(-bound, bound, nodes))
    return DenseWeights(W, b)


def forward(weights: DenseWeights, x: Array) -> Activity:
    """Values of all nodes.

    Parameters
    ----------
    x : ndarray, shape (..., samples, inputs)
    """
    inputs, u = [], x
    for layer, W in enumerate(weights.W):
        inputs.append(np.where(u.real > 0.0, u, 0.0) if layer else u)
        u = inputs[-1] @ W.swapaxes(-1, -2)
        if weights.b:
            u = u + weights.b[layer][..., None, :]
    return Activity(inputs, u)


def signals(weights: DenseWeights, found: Activity, by_last: Array) -> list[Array]:
    """Derivatives by the pre-activations of layers 1, 2, ... of what has the derivative `by_last` by the last layer.

    Parameters
    ----------
    by_last : ndarray, shape (..., samples, nodes)
    """
    kept = [by_last]
    for W, inputs in zip(weights.W[:0:-1], found.inputs[:0:-1], strict=True):
        kept.append((kept[-1] @ W) * (inputs.real > 0.0))
    return kept[::-1]


def gradient(weights: DenseWeights, found: Activity, by_last: FloatArray) -> DenseWeights:
    """Derivatives by the weights of what has the derivative `by_last` by the last layer, summed over samples."""
    by_before = signals(weights, found, by_last)
    W = [by.swapaxes(-1, -2) @ x for by, x in zip(by_before, found.inputs, strict=True)]
    return DenseWeights(W, [by.sum(axis=-2) for by in by_before] if weights.b else [])
