"""Jacobians and connections of layers of a convolutional network by automatic differentiation, in double precision.

With `batch_norm` channels are normalised by their means and variances over the population, which is one batch. The
gradient of the loss follows these; connections of a view leave them as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from meanfield.networks.connections import Connections
from meanfield.networks.convolutional import ConvolutionalWeights, Tensor, one_torch_thread
from meanfield.networks.convolutional_tangents import Tangents
from meanfield.networks.convolutional_values import Statistics, forward, images_of
from meanfield.networks.jacobians import Jacobians
from meanfield.networks.normalisation import Normalisation
from meanfield.typing import FloatArray

TOGETHER = 1 << 21
"""Values of activations that a change passes at once."""

MOST_KEPT = 5e8
"""Largest number of values of activations that are kept for changes: 2.5 gigabytes in single precision."""


class ConvolutionalJacobians(Jacobians):
    """See `Jacobians`; of a network with convolutions.

    Parameters
    ----------
    single : bool
        Whether `push`, `pull` and `pulls` are in single precision.
    """

    def __init__(self, weights: ConvolutionalWeights, x: FloatArray, single: bool = False) -> None:
        import torch

        self._kind = torch.float32 if single else torch.float64
        self._kept: list[tuple[slice, Tangents]] | None = None
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
        import torch

        every = [slice(0, len(by_last))] if self._network.batch_norm else self._some(by_last)
        W = self._weights.W
        found = [np.zeros(part.shape) for part in W]
        with one_torch_thread():
            for part in W:
                part.requires_grad_()
            for some in every:
                last = forward(self._weights, self._x[some]).last
                slopes = torch.autograd.grad(last, W, torch.tensor(by_last[some]))
                for total, slope in zip(found, slopes, strict=True):
                    total += slope.numpy()
            for part in W:
                part.requires_grad_(False)
        return found

    def rests(self, normalisation: Normalisation, slope: FloatArray, main: FloatArray) -> list[FloatArray]:
        """See `Jacobians.rests`."""
        if not self._network.batch_norm:
            return super().rests(normalisation, slope, main)
        whole, part = (normalisation.back(self.last, side) for side in (slope, main))
        return [full - held for full, held in zip(self.gradient(whole), self.pulls(part), strict=True)]

    def push(self, layer: int, steps: FloatArray) -> FloatArray:
        """See `Jacobians.push`."""
        shape = self.W[layer].shape
        tensors = self._tensor(steps.reshape(-1, *shape), self._kind)
        with one_torch_thread():
            found = [tangents.push(layer, tensors).numpy() for _, tangents in self._tangents(self._kind)]
        joined = np.concatenate(found, axis=1, dtype=float)
        return joined.reshape(*steps.shape[:-1], *joined.shape[1:])

    def pull(self, layer: int, by_last: FloatArray) -> FloatArray:
        """See `Jacobians.pull`."""
        (found,) = self._pulled([layer], by_last)
        return found.reshape(*by_last.shape[:-2], -1)

    def pulls(self, by_last: FloatArray) -> list[FloatArray]:
        """See `Jacobians.pulls`."""
        every = self._pulled(range(len(self.W)), by_last)
        return [found.reshape(*by_last.shape[:-2], *W.shape) for found, W in zip(every, self.W, strict=True)]

    def rounding(self, by_last: FloatArray) -> FloatArray:
        """See `Jacobians.rounding`."""
        import torch

        if self._kind == torch.float64:
            return super().rounding(by_last)
        every = range(len(self.W))
        pairs = zip(self._pulled(every, by_last), self._pulled(every, by_last, torch.float64), strict=True)
        sizes = [(np.linalg.norm(one - other), np.linalg.norm(other)) for one, other in pairs]
        return np.array([float(off) / max(float(size), 1e-300) for off, size in sizes])

    def _pulled(self, layers: Sequence[int], by_last: FloatArray, kind: Any = None) -> list[FloatArray]:
        """What `pull` gives for some layers, shape (steps, *shape of the weights) each, perhaps in another type."""
        kind = kind or self._kind
        sides = self._tensor(by_last.reshape(-1, *by_last.shape[-2:]), kind)
        total: dict[int, Tensor] = {}
        with one_torch_thread():
            for some, tangents in self._tangents(kind):
                for layer, found in tangents.pull(layers, sides[:, some]).items():
                    total[layer] = found if layer not in total else total[layer].add_(found)
        return [np.asarray(total[layer].numpy(), dtype=float) for layer in layers]

    def _tensor(self, values: FloatArray, kind: Any) -> Tensor:
        import torch

        return torch.tensor(values, dtype=kind)

    def _tangents(self, kind: Any) -> Iterable[tuple[slice, Tangents]]:
        """Derivatives for slices of views, which are kept where they fit."""
        if kind != self._kind or float(len(self.last)) * self._network.activations > MOST_KEPT:
            return self._made_tangents(kind)
        if self._kept is None:
            self._kept = list(self._made_tangents(kind))
        return self._kept

    def _made_tangents(self, kind: Any) -> Iterator[tuple[slice, Tangents]]:
        weights = self._weights.of([part.to(kind) for part in self._weights.parts])
        known = self._known and [Statistics(one.mean.to(kind), one.variance.to(kind), one.size) for one in self._known]
        for some in _slices(len(self.last), self._network.activations, TOGETHER):
            yield some, Tangents(weights, self._x[some].to(kind), known)

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

    def _some(self, views: FloatArray) -> list[slice]:
        """Slices of views whose activations are kept at once."""
        return _slices(len(views), self._network.activations)


def _slices(count: int, size: int, most: int = 1 << 24) -> list[slice]:  # 128 megabytes
    """Slices of as many of `count` views as have `most` numbers together, with some each."""
    step = max(1, most // size)
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
