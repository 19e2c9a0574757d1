"""Convolutional ReLU networks, residual ones among them, whose forward pass and derivatives are PyTorch's.

A first convolution is followed by stages of blocks of two convolutions each; the first block of a stage takes steps of
`stride` pixels, the first stage excepted. The last stage is averaged over its pixels, and dense layers follow. With
channels of 64, 128, 256 and 512 and two blocks of kernels of 3 x 3 pixels it is the ResNet-18 of CIFAR-10 (He et al.
2016, with a first convolution of 3 x 3 pixels and no pooling after it).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from meanfield.errors import InputError
from meanfield.typing import FloatArray

Tensor = Any
"""A tensor of PyTorch, which has no types where it is not installed."""


def check_torch() -> None:
    """Refuse what needs PyTorch where it is not installed.

    Raises
    ------
    InputError
        With the command that installs it.
    """
    if find_spec("torch") is None:
        raise InputError(
            "network.convolution: convolutions are trained by PyTorch; pip install 'meanfield-dynamics[torch]', or "
            "remove the table for a dense network"
        )


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Context in which PyTorch takes one thread for the caller: sums depend on how many share them."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Layer(NamedTuple):
    """Linear map of a layer: shape (nodes, inputs) of a dense one, (channels, channels below, kernel, kernel) else."""

    shape: tuple[int, ...]
    stride: int = 1

    @property
    def inputs(self) -> int:
        """Number of inputs of a node."""
        return math.prod(self.shape[1:])


class Block(NamedTuple):
    """Places of two convolutions among the layers, and of that which takes the input of a block to its output."""

    first: int
    second: int
    shortcut: int | None


@dataclass(frozen=True)
class ConvolutionalNetwork:
    """Shape of a network.

    Parameters
    ----------
    image : tuple of int
        Height, width and channels.
    channels : tuple of int
        Of each stage.
    blocks : int
        Of each stage.
    kernel : int
        Pixels of the side of a kernel; odd, and what is beyond the edge is 0.
    residual : bool
        Whether the input of a block is added to its output, before that is rectified.
    batch_norm : bool
        Whether channels are divided by their deviation in a batch, less their mean, times a scale and plus a shift.
    widths : tuple of int
        Nodes of the dense layers; the last one is not rectified.
    bias : bool
        Whether layers have biases; convolutions with `batch_norm` have none, as their shifts are biases.
    """

    image: tuple[int, int, int]
    channels: tuple[int, ...]
    blocks: int
    kernel: int
    stride: int
    residual: bool
    batch_norm: bool
    widths: tuple[int, ...]
    bias: bool

    @cached_property
    def _plan(self) -> tuple[list[Layer], list[Block]]:
        side = (self.kernel, self.kernel)
        below = self.channels[0]
        layers, blocks = [Layer((below, self.image[2], *side))], []
        for stage, above in enumerate(self.channels):
            for block in range(self.blocks):
                stride = self.stride if stage > 0 and block == 0 else 1
                first = len(layers)
                layers += [Layer((above, below, *side), stride), Layer((above, above, *side))]
                moves = self.residual and (stride > 1 or below != above)
                layers += [Layer((above, below, 1, 1), stride)] * moves
                blocks.append(Block(first, first + 1, first + 2 if moves else None))
                below = above
        layers += [Layer((nodes, inputs)) for inputs, nodes in pairwise((below, *self.widths))]
        return layers, blocks

    @property
    def layers(self) -> list[Layer]:
        """All layers, from the image up; that which moves the input of a block follows its convolutions."""
        return self._plan[0]

    @property
    def blocks_of_layers(self) -> list[Block]:
        """Blocks, from the image up."""
        return self._plan[1]

    @property
    def convolutions(self) -> list[Layer]:
        """Layers below the dense ones."""
        return self.layers[: len(self.layers) - len(self.widths)]

    @property
    def shapes(self) -> list[list[tuple[int, ...]]]:
        """Shapes of weights, biases, scales and shifts by layer."""
        convolved: list[tuple[int, ...]] = [layer.shape[:1] for layer in self.convolutions]
        dense: list[tuple[int, ...]] = [(nodes,) for nodes in self.widths]
        biases = ([] if self.batch_norm else convolved) + dense if self.bias else []
        scales = convolved if self.batch_norm else []
        return [[layer.shape for layer in self.layers], biases, scales, scales]

    @property
    def numbers(self) -> int:
        """Number of all numbers that are trained."""
        return sum(math.prod(shape) for shapes in self.shapes for shape in shapes)

    @property
    def activations(self) -> int:
        """Number of values of an image and of all channels and nodes above it."""
        above = zip(self.layers, self.pixels, strict=True)
        return math.prod(self.image) + sum(layer.shape[0] * pixels for layer, pixels in above)

    @property
    def pixels(self) -> list[int]:
        """Numbers of pixels of the channels of each layer, 1 of dense ones."""
        height, width, _ = self.image
        blocks = {block.first for block in self.blocks_of_layers}
        found = []
        for place, layer in enumerate(self.convolutions):
            if place in blocks:
                height, width = -(-height // layer.stride), -(-width // layer.stride)
            found.append(height * width)
        return found + [1] * len(self.widths)

    def start(self, rng: Generator) -> ConvolutionalWeights:
        """Weights and biases that are uniform within 1/sqrt(number of inputs), scales of 1 and shifts of 0."""
        shapes, biases, scales, shifts = self.shapes
        bounds = [layer.inputs**-0.5 for layer in self.layers]
        W = [rng.uniform(-bound, bound, shape) for bound, shape in zip(bounds, shapes, strict=True)]
        of_biases = bounds[len(bounds) - len(biases) :]
        b = [rng.uniform(-bound, bound, shape) for bound, shape in zip(of_biases, biases, strict=True)]
        return ConvolutionalWeights(self, W, b, [np.ones(s) for s in scales], [np.zeros(s) for s in shifts])

    @property
    def first_statistics(self) -> FloatArray:
        """Means 0 and variances 1 of all channels, by layer, before any batch was seen; empty without `batch_norm`."""
        each = [np.repeat([0.0, 1.0], layer.shape[0]) for layer in self.convolutions if self.batch_norm]
        return np.concatenate([np.zeros(0), *each])


@dataclass(frozen=True)
class ConvolutionalWeights:
    """Numbers that are trained, as arrays or tensors, by layer.

    Parameters
    ----------
    W, b, scale, shift : list of ndarray
        Those that a network does not have are empty.
    """

    network: ConvolutionalNetwork
    W: list[Any]
    b: list[Any]
    scale: list[Any]
    shift: list[Any]

    @property
    def parts(self) -> list[Any]:
        """All arrays in one list."""
        return [*self.W, *self.b, *self.scale, *self.shift]

    def of(self, parts: Sequence[Any]) -> ConvolutionalWeights:
        """Weights of the same shape from all arrays in one list."""
        ends = np.cumsum([0, *map(len, self.network.shapes)])
        return ConvolutionalWeights(self.network, *(list(parts[i:j]) for i, j in pairwise(ends)))

    @property
    def vector(self) -> FloatArray:
        """All numbers in one row."""
        return np.concatenate([part.ravel() for part in self.parts])

    def like(self, vector: NDArray[Any]) -> ConvolutionalWeights:
        """Weights of the same shape from all their numbers in one row."""
        ends = np.cumsum([0, *(part.size for part in self.parts)])
        pieces = zip(pairwise(ends), self.parts, strict=True)
        return self.of([vector[i:j].reshape(part.shape) for (i, j), part in pieces])

    def tensors(self, kind: str) -> ConvolutionalWeights:
        """The same numbers as tensors of a type, `float32` or `float64`."""
        import torch

        return self.of([torch.tensor(part, dtype=getattr(torch, kind)) for part in self.parts])
