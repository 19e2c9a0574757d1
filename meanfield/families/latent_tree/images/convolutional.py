"""Replicas of training of convolutional networks on images, whose gradients PyTorch takes in single precision.

Everything else is in double precision and NumPy's: weights, losses, optimisers, statistics of batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from meanfield.families.latent_tree.images.problem import ImageProblem
from meanfield.families.latent_tree.images.replicas import ImageReplicas
from meanfield.families.latent_tree.samples import batch_slope, draw_batch
from meanfield.networks.convolutional import ConvolutionalNetwork, ConvolutionalWeights, one_torch_thread
from meanfield.networks.convolutional_values import Passed, forward, images_of, moved, statistics_of
from meanfield.problems.clock import Clock
from meanfield.typing import FloatArray, IntArray


class ConvolutionalReplicas(ImageReplicas):
    """Replicas of training whose convolutions are PyTorch's."""

    kept: ClassVar[tuple[str, ...]] = (*ImageReplicas.kept, "running")

    def __init__(self, problem: ImageProblem, replicas: range, clock: Clock | None = None) -> None:
        super().__init__(problem, replicas, clock)
        self._network: ConvolutionalNetwork = self._start.network
        self.running = np.tile(self._network.first_statistics, (len(replicas), 1))
        """Statistics of batches so far, by which features for the probe are normalised, shape (replicas, numbers)."""

    def slopes(self) -> FloatArray:
        """See `ImageReplicas.slopes`."""
        return np.stack([self._slope(i) for i in range(len(self.w))])

    def _slope(self, i: int) -> FloatArray:
        """Gradient of the loss of a batch, whose views are normalised together."""
        import torch

        x, weights = draw_batch(self.problem, self._sampler, self.rngs[i]), self._tensors(i)
        views = self.problem.loss.augmented
        with one_torch_thread():
            # What decides the weights of the exact loss has no derivative, and is a batch of its own.
            samples = [] if len(x) == views else [self._last(weights, x[views:])]
            for part in weights.parts:
                part.requires_grad_()
            passed = self._passed(weights, x[:views])
            last = np.concatenate([_rows(passed, x[:views]), *samples])
            output = self.problem.network.normalisation
            _, by_output = batch_slope(self.problem.loss.contrast, output.value(last))
            by_last = output.back(last, by_output)[:views].reshape(passed.last.shape)
            found = torch.autograd.grad(passed.last, weights.parts, torch.tensor(by_last, dtype=passed.last.dtype))
        self.running[i] = moved(self.running[i], passed.seen)
        return weights.of([part.numpy() for part in found]).vector.astype(float)

    def last_of(self, i: int) -> Callable[[FloatArray], FloatArray]:
        """See `ImageReplicas.last_of`; the views of a batch are normalised together, as in a step."""
        weights, views = self._tensors(i), self.problem.loss.augmented

        def last(x: FloatArray) -> FloatArray:
            with one_torch_thread():
                return np.concatenate([self._last(weights, part) for part in (x[:views], x[views:]) if len(part)])

        return last

    def features(self, i: int, chosen: IntArray) -> FloatArray:
        """See `ImageReplicas.features`: averages of the last stage over pixels, below the dense layers."""
        import torch

        weights, found = self._tensors(i), []
        known = statistics_of(weights, self.running[i])
        # A few images at a time: their activations fit into the caches, and those of all images into no memory.
        with one_torch_thread(), torch.no_grad():
            for first in range(0, len(chosen), 64):
                x = self._sampler.unaugmented(self.rngs[i], chosen[first : first + 64])
                found.append(forward(weights, images_of(self._network, x, weights.W[0]), known).features.numpy())
        return np.concatenate(found).astype(float)

    def _tensors(self, i: int) -> ConvolutionalWeights:
        weights: ConvolutionalWeights = self._start.like(self.w[i])
        return weights.tensors("float32")

    def _passed(self, weights: ConvolutionalWeights, x: FloatArray) -> Passed:
        return forward(weights, images_of(self._network, x, weights.W[0]))

    def _last(self, weights: ConvolutionalWeights, x: FloatArray) -> FloatArray:
        """Last layer of one batch, shape (views of a sample, anchors, outputs)."""
        import torch

        with torch.no_grad():
            return _rows(self._passed(weights, x), x)


def _rows(passed: Passed, x: FloatArray) -> FloatArray:
    """Last layer as doubles, with the leading dims of a batch."""
    return np.asarray(passed.last.detach().numpy().reshape(*x.shape[:2], -1), dtype=float)
