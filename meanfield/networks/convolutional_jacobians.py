"""Jacobians and connections of layers of a convolutional network by automatic differentiation, in double precision.

With `batch_norm` channels are normalised by their means and variances over the population, which is one batch. The
gradient of the loss follows these; connections of a view leave them as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from meanfield.networks.connections import Connections
from meanfield.networks.convolutional import ConvolutionalWeights, Tensor, forward, images_of, one_torch_thread
from meanfield.networks.jacobians import Jacobians
from meanfield.networks.normalisation import Normalisation
from meanfield.typing import FloatArray

AT_ONCE = 1 << 24
"""Values of activations, or of Jacobians, that are kept at once: 128 megabytes."""


class ConvolutionalJacobians(Jacobians):
    """See `Jacobians`; of a network with convolutions."""

    def __init__(self, weights: ConvolutionalWeights, x: FloatArray) -> None:
        import torch

        self.W, self._weights = weights.W, weights.tensors("float64")
        self._network, self._x = weights.network, images_of(weights.network, x, self._weights.W[0])
        with one_torch_thread(), torch.no_grad():
            self._known = forward(self._weights, self._x).seen if self._network.batch_norm else None
        self.last = self.last_of(x)

    def last_of(self, x: FloatArray) -> FloatArray:
        """See `Jacobians.last_of`; channels are normalised as those of the population."""
        import torch

        images = images_of(self._network, x, self._weights.W[0])
        with one_torch_thread(), torch.no_grad():
            return np.concatenate([forward(self._weights, images[some], self._known).last for some in self._some(x)])

    def gradient(self, by_last: FloatArray) -> list[FloatArray]:
        """See `Jacobians.gradient`; with `batch_norm` it follows means and variances over the population."""
        every = [slice(0, len(by_last))] if self._network.batch_norm else self._some(by_last)
        return self._pulled(by_last, self._weights.W, every, follow=True)

    def rests(self, normalisation: Normalisation, slope: FloatArray, main: FloatArray) -> list[FloatArray]:
        """See `Jacobians.rests`."""
        if not self._network.batch_norm:
            return super().rests(normalisation, slope, main)
        whole, part = (normalisation.back(self.last, side) for side in (slope, main))
        return [full - held for full, held in zip(self.gradient(whole), self.pulls(part), strict=True)]

    def push(self, layer: int, step: FloatArray) -> FloatArray:
        """See `Jacobians.push`."""
        import torch

        W = self._weights.W[layer]
        tangent = torch.tensor(step.reshape(W.shape), dtype=W.dtype)
        found = []
        with one_torch_thread():
            for some in self._some(self.last):

                def last(W: Tensor, x: Tensor = self._x[some]) -> Tensor:
                    return forward(self._with(layer, W), x, self._known).last

                found.append(torch.func.jvp(last, (W,), (tangent,))[1].numpy())
        return np.concatenate(found)

    def pull(self, layer: int, by_last: FloatArray) -> FloatArray:
        """See `Jacobians.pull`."""
        return self._pulled(by_last, [self._weights.W[layer]], self._some(by_last))[0].ravel()

    def pulls(self, by_last: FloatArray) -> list[FloatArray]:
        """See `Jacobians.pulls`."""
        return self._pulled(by_last, self._weights.W, self._some(by_last))

    def each(self, layer: int) -> Iterator[tuple[slice, FloatArray]]:
        """Jacobians of a layer, shape (views, outputs, weights), for slices of views."""
        import torch

        weights, W, outputs = self._weights, self._weights.W[layer], self.last.shape[1]

        def last(W: Tensor, x: Tensor) -> Tensor:
            return forward(self._with(layer, W), x[None], self._known).last[0]

        jacobian = torch.func.vmap(torch.func.jacrev(last), in_dims=(None, 0))
        size = outputs * max(W.numel(), weights.network.activations)
        with one_torch_thread():
            for some in _slices(len(self.last), size):
                yield some, jacobian(W, self._x[some]).reshape(-1, outputs, W.numel()).numpy()

    def _with(self, layer: int, W: Tensor) -> ConvolutionalWeights:
        parts = self._weights.parts
        parts[layer] = W
        return self._weights.of(parts)

    def _pulled(
        self, by_last: FloatArray, by: list[Tensor], every: list[slice], follow: bool = False
    ) -> list[FloatArray]:
        """Derivatives by tensors, summed over views; batches `follow` the weights, or are normalised as they are."""
        import torch

        found = [np.zeros(part.shape) for part in by]
        known = None if follow else self._known
        with one_torch_thread():
            for part in by:
                part.requires_grad_()
            for some in every:
                last = forward(self._weights, self._x[some], known).last
                slopes = torch.autograd.grad(last, by, torch.tensor(by_last[some]))
                for total, slope in zip(found, slopes, strict=True):
                    total += slope.numpy()
            for part in by:
                part.requires_grad_(False)
        return found

    def _some(self, views: FloatArray) -> list[slice]:
        """Slices of views whose activations are kept at once."""
        return _slices(len(views), self._network.activations)


def _slices(count: int, size: int) -> list[slice]:
    """Slices of as many of `count` views as fit at once, with some numbers each."""
    step = max(1, AT_ONCE // size)
    return [slice(first, first + step) for first in range(0, count, step)]


class ConvolutionalConnections(Connections):
    """Connections of all layers for all views of a population; see `Connections`."""

    def __init__(self, jacobians: Any, normalisation: Normalisation) -> None:
        self._jacobians, last = jacobians, jacobians.last
        unit = np.eye(last.shape[1])[:, None, :]
        # Derivatives of outputs by the last layer, shape (views, outputs, outputs); the first has no projection.
        gain = normalisation.gain(last) * np.broadcast_to(unit, (len(unit), *last.shape))
        self._right: FloatArray = gain.swapaxes(0, 1)
        self._left: FloatArray = normalisation.back(last, np.broadcast_to(unit, gain.shape)).swapaxes(0, 1)
        if not normalisation.active:
            self._left = self._right
        self._outputs = last.shape[1]

    def _mixed(self, side: FloatArray, layer: int, rows: FloatArray) -> FloatArray:
        """See `Connections`."""
        found = np.zeros((len(rows) * self._outputs, self._jacobians.W[layer].size))
        for some, J in self._jacobians.each(layer):
            factors = np.einsum("rx,xop->roxp", rows[:, some], side[some])
            found += factors.reshape(len(found), -1) @ J.reshape(-1, J.shape[2])
        return found

    def _squares(self, layer: int) -> FloatArray:
        """See `Connections`."""
        each = [np.einsum("xop,xpw->xow", self._right[some], J) for some, J in self._jacobians.each(layer)]
        return np.concatenate([(K * K).sum(axis=(1, 2)) for K in each])
