"""Values of a convolutional network for images, by PyTorch, and statistics by which channels are normalised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from meanfield.networks.convolutional import ConvolutionalNetwork, ConvolutionalWeights, Tensor
from meanfield.typing import FloatArray

ROUNDING = 1e-5
"""Number that PyTorch adds to variances before batches are divided by their roots."""


class Statistics(NamedTuple):
    """Mean and variance of the channels of a layer over pixels and images, and over how many."""

    mean: Tensor
    variance: Tensor
    size: int


def moved(running: FloatArray, seen: list[Statistics], share: float = 0.1) -> FloatArray:
    """Statistics of batches so far, moved towards those of a new one by PyTorch's share and with its variance.

    Parameters
    ----------
    running : ndarray
        In the order of `ConvolutionalNetwork.first_statistics`.
    """
    each = [
        np.concatenate([one.mean.numpy(), one.variance.numpy() * (one.size / (one.size - 1))]).astype(float)
        for one in seen
    ]
    return (1.0 - share) * running + share * np.concatenate(each) if each else running


def statistics_of(weights: ConvolutionalWeights, running: FloatArray) -> list[Statistics]:
    """Statistics by layer, as tensors of the type of the weights."""
    import torch

    found, first = [], 0
    for scale in weights.scale:
        mean, variance = running[first : first + 2 * len(scale)].reshape(2, -1)
        mean, variance = (torch.tensor(side, dtype=scale.dtype) for side in (mean, variance))
        found.append(Statistics(mean, variance, 0))
        first += 2 * len(scale)
    return found


class Passed(NamedTuple):
    """Features below the dense layers, last layer, and the statistics of batches that were met on the way."""

    features: Tensor
    last: Tensor
    seen: list[Statistics]


def images_of(network: ConvolutionalNetwork, x: FloatArray, like: Tensor) -> Tensor:
    """Images, shape (images, channels, height, width), from rows of pixels with channels last."""
    import torch

    images = torch.tensor(x.reshape(-1, *network.image), dtype=like.dtype).permute(0, 3, 1, 2)
    # With channels side by side PyTorch 2.13 writes derivatives beyond their memory, of 8 channels of 96 x 96 pixels.
    return images.contiguous()


def forward(
    weights: ConvolutionalWeights,
    x: Tensor,
    known: list[Statistics] | None = None,
    rectified: Callable[[Tensor, int], Tensor] | None = None,
) -> Passed:
    """Values of features and of the last layer.

    Parameters
    ----------
    weights : ConvolutionalWeights
        Tensors.
    x : tensor, shape (images, channels, height, width)
    known : list of Statistics, optional
        Those by which channels are normalised; by default those of the images themselves.
    rectified : callable, optional
        In place of `relu`; see `through`.
    """
    import torch
    from torch.nn import functional

    network, seen = weights.network, []
    biases: list[Any] = [None] * (len(network.layers) - len(weights.b)) + weights.b

    def mapped(u: Tensor, place: int) -> Tensor:
        layer, W = network.layers[place], weights.W[place]
        if len(layer.shape) == 2:
            return functional.linear(u, W, biases[place])
        u = functional.conv2d(u, W, biases[place], layer.stride, layer.shape[2] // 2)
        if not network.batch_norm:
            return u
        scale, shift = weights.scale[place], weights.shift[place]
        if known is not None:
            mean, variance, _ = known[place]
            return functional.batch_norm(u, mean, variance, scale, shift, False, 0.0, ROUNDING)
        with torch.no_grad():
            variance, mean = torch.var_mean(u, (0, 2, 3), correction=0)
        seen.append(Statistics(mean, variance, u.numel() // u.shape[1]))
        return functional.batch_norm(u, None, None, scale, shift, True, 0.0, ROUNDING)

    features, last = through(network, x, mapped, rectified or (lambda u, place: functional.relu(u)))
    return Passed(features, last, seen)


def through(
    network: ConvolutionalNetwork,
    u: Tensor,
    mapped: Callable[[Tensor, int], Tensor],
    rectified: Callable[[Tensor, int], Tensor],
) -> tuple[Tensor, Tensor]:
    """Features below the dense layers, and last layer, from maps of layers and of what is between them.

    Parameters
    ----------
    mapped, rectified : callable
        Of values and a layer: what the layer makes of them, and what it is given of the values below it; the first
        dense layer is given the average of that. Values may be None, for 0.
    """
    dense, blocks = len(network.convolutions), network.blocks_of_layers
    u = mapped(u, 0)
    for first, second, shortcut in blocks:
        u = rectified(u, first)
        above = mapped(rectified(mapped(u, first), second), second)
        if network.residual:
            around = u if shortcut is None else mapped(u, shortcut)
            above = around if above is None else above if around is None else above + around
        u = above
    u = rectified(u, dense)
    features = u if u is None else u.mean((2, 3))
    u = mapped(features, dense)
    for place in range(dense + 1, len(network.layers)):
        u = mapped(rectified(u, place), place)
    return features, u
