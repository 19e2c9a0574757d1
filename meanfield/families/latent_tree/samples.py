"""Samples of a latent tree, batches of their views, and the slope of their loss, which replicas of SGD follow.

Source: latent_tree.md, section 1.2.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from meanfield.ensembles.stepper import ClockedStepper, replica_generator
from meanfield.families.latent_tree.initial_state import initial_weights
from meanfield.families.latent_tree.problem import Loss, Problem, Training
from meanfield.families.latent_tree.settings import RingObjects
from meanfield.networks.contrast import TRIPLES, Contrast, nt_xent
from meanfield.problems.clock import Clock
from meanfield.results.initial_state import seed_of
from meanfield.typing import FloatArray

Values = NDArray[Any]
"""Values of latents, counted from 0; of binary ones False and True."""

Slope = Callable[[Contrast, FloatArray], tuple[float, FloatArray]]
"""Mean loss of a batch, and its derivative, from outputs of shape (views of a sample, samples, outputs)."""


class Sampler:
    """Sampler of the tree of a problem."""

    def __init__(self, problem: Problem) -> None:
        tree, shape = problem.tree, problem.shape
        self._inputs = tree.inputs
        # The last value has the first share of the interval of uniform numbers.
        self._roots = np.cumsum(tree.root[:0:-1])
        # The root is above all: level by level down, with the children of each latent side by side.
        self._steps = [_steps(edge) for edge in reversed(tree.edges)]
        self._children = list(reversed(shape.children))
        self._count = sum(shape.latents[:-1])

    def roots(self, rng: Generator, count: int) -> Values:
        """Values of independent roots, shape (count,)."""
        u = rng.random(count)
        if len(self._roots) == 1:
            return np.asarray(u < self._roots[0])
        return np.asarray(len(self._roots) - (u[:, None] >= self._roots).sum(axis=1), dtype=np.uint8)

    def below(self, rng: Generator, roots: Values) -> list[Values]:
        """Values of all latents given the root, level by level from the root down, shapes (samples, latents)."""
        chance, first = rng.random((len(roots), self._count)), 0
        found = [roots[:, None]]
        for steps, children in zip(self._steps, self._children, strict=True):
            u = chance[:, first : first + steps.shape[-1]]
            found.append(_moved(np.repeat(found[-1], children, axis=1), u, steps))
            first += steps.shape[-1]
        return found

    def leaves(self, values: list[Values]) -> FloatArray:
        """Inputs of the network, shape (samples, leaves times their inputs)."""
        if values[-1].dtype == bool and self._inputs.shape[1] == 1:
            (low,), (high,) = self._inputs
            return np.asarray(np.where(values[-1], high, low))
        return np.asarray(self._inputs[values[-1].astype(np.uint8)].reshape(len(values[-1]), -1))

    def views(self, rng: Generator, roots: Values) -> FloatArray:
        """Inputs of independent views of samples with these roots."""
        return self.leaves(self.below(rng, roots))

    def unaugmented(self, rng: Generator, roots: Values) -> FloatArray:
        """Inputs that stand for the samples themselves: a sample of a tree is one more view."""
        return self.views(rng, roots)


def _steps(edge: FloatArray) -> FloatArray:
    """Uniform numbers from which on a child is one value further from its parent's, in a cycle.

    Parameters
    ----------
    edge : ndarray, shape (latents, values of the parent, values)

    Returns
    -------
    ndarray, shape (values - 1, values of the parent, latents)
        With 1 in place of the values of the parent where these make no difference.
    """
    _, above, m = edge.shape
    cycle = (np.arange(above)[:, None] + np.arange(m - 1)) % m
    chances = np.take_along_axis(edge, cycle[None], axis=2).transpose(2, 1, 0)
    found = np.cumsum(chances, axis=0)
    return found[:, :1] if np.array_equal(found, np.broadcast_to(found[:, :1], found.shape)) else found


def _moved(above: Values, u: FloatArray, steps: FloatArray) -> Values:
    """Values of latents from those of their parents and uniform numbers, all of shape (samples, latents)."""
    alike, binary = steps.shape[1] == 1, len(steps) == 1 and above.dtype == bool
    latent = np.arange(steps.shape[2])
    moved = [u >= (step[0] if alike else step[above.astype(np.uint8), latent]) for step in steps]
    if binary:
        return np.asarray(above ^ moved[0])
    found = above.astype(np.uint8)
    for one in moved:
        found += one
    found %= len(steps) + 1
    return found.astype(bool) if len(steps) == 1 else found


class RingSampler(Sampler):
    """Sampler of objects on a ring: the root is the object, and leaves are the pixels that nodes see."""

    def __init__(self, data: RingObjects) -> None:
        self._data = data
        self._roots = np.array([0.5])
        self._inputs = np.array([[0.0], [1.0]])

    def below(self, rng: Generator, roots: Values) -> list[Values]:
        """See `Sampler.below`."""
        return [roots[:, None], self._data.views(rng, roots)]


def sampler_of(problem: Problem) -> Sampler:
    """Sampler of the data of a problem."""
    return Sampler(problem) if problem.data is None else RingSampler(problem.data)


class Trained(Protocol):
    """Problem, as far as its batches depend on it."""

    @property
    def loss(self) -> Loss:
        """Loss, with its number of negatives."""

    @property
    def training(self) -> Training:
        """Training, with its size of batches."""


class Source(Protocol):
    """Source of samples, which are known by their roots."""

    def roots(self, rng: Generator, count: int) -> Any:
        """Roots of independent samples, shape (count,)."""

    def views(self, rng: Generator, roots: Any) -> FloatArray:
        """Inputs of independent views of samples with these roots."""

    def unaugmented(self, rng: Generator, roots: Any) -> FloatArray:
        """Inputs of the samples themselves."""


def draw_batch(problem: Trained, sampler: Source, rng: Generator) -> FloatArray:
    """Inputs of a batch: anchors, positives, negatives; and for `exact` the samples themselves.

    Returns
    -------
    ndarray, shape (views of a sample, anchors, leaves)
    """
    B, kind = problem.training.batch_size, problem.loss.kind
    roots = sampler.roots(rng, B)
    others = [sampler.roots(rng, B) for _ in range(problem.loss.negatives)] if kind != "nt_xent" else []
    inputs = sampler.views(rng, np.concatenate([roots, roots, *others]))
    if kind == "exact":
        inputs = np.concatenate([inputs, sampler.unaugmented(rng, np.concatenate([roots, *others]))])
    return inputs.reshape(-1, B, inputs.shape[-1])


def batch_slope(contrast: Contrast, outputs: FloatArray) -> tuple[float, FloatArray]:
    """Mean loss of a batch, and its derivative by the outputs.

    Parameters
    ----------
    outputs : ndarray, shape (views of a sample, anchors, outputs)
        In the order of `draw_batch`.
    """
    B = outputs.shape[1]
    if contrast.kind == "nt_xent":
        value, slope = nt_xent(np.swapaxes(outputs, 0, 1), contrast.temperature, contrast.beta)
        return value, np.swapaxes(slope, 0, 1)
    H = contrast.negatives
    gaps = outputs[0] - outputs[1 : 2 + H]  # to the positive, and to the negatives
    r = 0.5 * (gaps * gaps).sum(axis=-1)
    if contrast.kind in TRIPLES:
        found = contrast.of_triples(r[0], np.moveaxis(r[1:], 0, -1))
        value = float(found.value.mean())
        by_distance = np.stack([found.positive, *np.moveaxis(found.negative, -1, 0)]) / B
    elif contrast.kind == "exact":
        samples = outputs[2 + H :]
        apart = samples[0] - samples[1:]
        weight = contrast.weight(0.5 * (apart * apart).sum(axis=-1))
        value = float((weight * (r[0] - r[1:])).sum(axis=0).mean())
        by_distance = np.concatenate([weight.sum(axis=0, keepdims=True), -weight]) / B
    else:
        value, share = contrast.of_batch_means(float(r[0].mean()), float(r[1].mean()), outputs.shape[-1])
        by_distance = np.stack([np.full(B, share), np.full(B, -share)]) / B
    slope = np.zeros_like(outputs)
    pulls = by_distance[..., None] * gaps
    slope[0], slope[1 : 2 + H] = pulls.sum(axis=0), -pulls
    return value, slope


class BatchStepper(ClockedStepper):
    """Replicas that follow gradients of the losses of batches, from the same weights or each from its own."""

    kept: ClassVar[tuple[str, ...]] = ("w", "means", "rngs")

    def __init__(self, problem: Any, sampler: Source, replicas: range, clock: Clock | None = None) -> None:
        super().__init__(problem, replicas, clock)
        self._sampler: Any = sampler
        self._start = problem.initial_weights
        self.rngs = [replica_generator(seed_of(problem), replica) for replica in replicas]
        common = problem.particles.common_start
        runs = zip(replicas, self.rngs, strict=True)
        starts = [self._start if common else initial_weights(problem, *run) for run in runs]
        self.w: FloatArray = np.stack([start.vector for start in starts])
        remembers = any(each.training.remembers for each in self._in_time.extremes(problem.time.stop).values())
        self.means = np.zeros((len(replicas), self.w.shape[1] if remembers else 0))
        """Velocities of momentum, or means of gradients of Adam."""

    @property
    def finite(self) -> NDArray[np.bool_]:
        """See `PythonStepper.finite`."""
        return np.asarray(np.isfinite(self.w).all(axis=1))

    def _gradient(self, weights: Any, network: ModuleType, output: Any) -> Any:
        """Gradients of the losses of batches at the weights of all replicas, by functions of the network."""
        x = np.stack([draw_batch(self.problem, self._sampler, rng) for rng in self.rngs])
        found = network.forward(weights, x.reshape(len(x), -1, x.shape[-1]))
        outputs = output.value(found.last).reshape(*x.shape[:-1], -1)
        slope = np.stack([batch_slope(self.problem.loss.contrast, y)[1] for y in outputs])
        return network.gradient(weights, found, output.back(found.last, slope.reshape(found.last.shape)))
