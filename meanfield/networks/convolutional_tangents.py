"""Linear maps from changes of the weights of a convolutional network to those of its last layer, and their adjoints.

Rectified nodes stay on their sides, and channels are normalised by statistics that do not move, so that a change goes
through the layers above alone, and the values of the images are taken once.
"""

from __future__ import annotations

from collections.abc import Iterable

from meanfield.networks.convolutional import ConvolutionalWeights, Tensor
from meanfield.networks.convolutional_values import ROUNDING, Statistics, forward, through


class Tangents:
    """Derivatives at the weights, for some images.

    Parameters
    ----------
    weights : ConvolutionalWeights
        Tensors.
    x : tensor, shape (images, channels, height, width)
    known : list of Statistics, optional
        Those by which channels are normalised, with `batch_norm`.
    """

    def __init__(self, weights: ConvolutionalWeights, x: Tensor, known: list[Statistics] | None) -> None:
        import torch
        from torch.nn import functional

        self._network, self._images = weights.network, len(x)
        self._dense = len(self._network.convolutions)
        self._factors = [] if known is None else _factors(weights, known)
        self._W = [self._scaled(W, place) for place, W in enumerate(weights.W)]
        self._inputs = {0: x}
        self._on: dict[int, Tensor] = {}

        def kept(u: Tensor, place: int) -> Tensor:
            u = functional.relu(u)
            self._on[place], self._inputs[place] = u > 0.0, u
            return u

        with torch.no_grad():
            forward(weights, x, known, kept)
            for first, _, shortcut in self._network.blocks_of_layers:
                if shortcut is not None:
                    self._inputs[shortcut] = self._inputs[first]
            self._size = tuple(self._inputs[self._dense].shape[2:])
            self._inputs[self._dense] = self._inputs[self._dense].mean((2, 3))

    def push(self, layer: int, steps: Tensor) -> Tensor:
        """Changes of the last layer, shape (steps, images, outputs), by steps of the weights of a layer.

        Parameters
        ----------
        steps : tensor, shape (steps, *shape of the weights)
        """
        count = len(steps)

        def mapped(u: Tensor, place: int) -> Tensor:
            if place == layer:
                W = self._scaled(steps.flatten(0, 1), place, count)
                above = self._map(self._inputs[place], W, place)
                return above.unflatten(1, (count, -1)).flatten(0, 1)
            return None if u is None else self._map(u, self._W[place], place)

        _, last = through(self._network, None, mapped, lambda u, place: None if u is None else self._gated(u, place))
        return last.unflatten(0, (self._images, count)).swapaxes(0, 1)

    def pull(self, layers: Iterable[int], by_last: Tensor) -> dict[int, Tensor]:
        """The adjoint of `push` for some layers, shape (steps, *shape of the weights) each.

        Parameters
        ----------
        by_last : tensor, shape (steps, images, outputs)
        """
        wanted, found = set(layers), {}
        lowest = min(wanted)

        def meets(u: Tensor, place: int) -> bool:
            """Take what a layer is asked for, and say whether others below are."""
            if place in wanted:
                found[place] = self._by_weights(u, place, len(by_last))
            return lowest < place

        u = by_last.swapaxes(0, 1).flatten(0, 1)
        for place in reversed(range(self._dense, len(self._W))):
            if not meets(u, place):
                return found
            u = u @ self._W[place]
            u = self._gated(u, place) if place > self._dense else u
        height, width = self._size
        u = self._gated((u / (height * width))[..., None, None].expand(-1, -1, height, width), self._dense)
        for first, second, shortcut in reversed(self._network.blocks_of_layers):
            if shortcut is not None:
                meets(u, shortcut)
            if not meets(u, second):
                return found
            inner = self._gated(self._back(u, second), second)
            if not meets(inner, first):
                return found
            below = self._back(inner, first)
            if self._network.residual:
                below = below + (u if shortcut is None else self._back(u, shortcut))
            u = self._gated(below, first)
        meets(u, 0)
        return found

    def _scaled(self, W: Tensor, place: int, count: int = 1) -> Tensor:
        """Weights with the factors that normalise their channels, of `count` layers side by side."""
        if place >= len(self._factors):
            return W
        return W * self._factors[place].repeat(count)[:, None, None, None]

    def _map(self, u: Tensor, W: Tensor, place: int) -> Tensor:
        from torch.nn import functional

        if place >= self._dense:
            return functional.linear(u, W)
        layer = self._network.layers[place]
        return functional.conv2d(u, W, None, layer.stride, layer.shape[2] // 2)

    def _back(self, u: Tensor, place: int) -> Tensor:
        """The adjoint of a convolution."""
        from torch.nn import grad

        layer, inputs = self._network.layers[place], self._inputs[place]
        size = (len(u), *inputs.shape[1:])
        return grad.conv2d_input(size, self._W[place], u, layer.stride, layer.shape[2] // 2)

    def _by_weights(self, u: Tensor, place: int, count: int) -> Tensor:
        """Derivatives by the weights of a layer, from those by what it makes of its inputs."""
        from torch.nn import grad

        layer, inputs = self._network.layers[place], self._inputs[place]
        if place >= self._dense:
            return u.unflatten(0, (self._images, count)).permute(1, 2, 0) @ inputs
        if self._factors:
            u = u * self._factors[place][:, None, None]
        size = (count * layer.shape[0], *layer.shape[1:])
        sides = u.unflatten(0, (self._images, count)).flatten(1, 2)
        found = grad.conv2d_weight(inputs, size, sides, layer.stride, layer.shape[2] // 2)
        return found.unflatten(0, (count, -1))

    def _gated(self, u: Tensor, place: int) -> Tensor:
        """Values of nodes that are active, of `steps` for each image."""
        return (u.unflatten(0, (self._images, -1)) * self._on[place][:, None]).flatten(0, 1)


def _factors(weights: ConvolutionalWeights, known: list[Statistics]) -> list[Tensor]:
    """Factors of channels that are normalised, by layer."""
    pairs = zip(weights.scale, known, strict=True)
    return [scale / (one.variance + ROUNDING).sqrt() for scale, one in pairs]
