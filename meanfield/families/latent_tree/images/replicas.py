"""Replicas of training on images: batches of views, steps of both optimisers, and the linear probe."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from meanfield.ensembles.stepper import replica_generator
from meanfield.families.latent_tree.images.problem import ImageProblem
from meanfield.families.latent_tree.samples import BatchStepper, batch_slope, draw_batch
from meanfield.networks import dense
from meanfield.networks.dense import DenseWeights, forward
from meanfield.problems.clock import Clock
from meanfield.results.initial_state import seed_of
from meanfield.typing import FloatArray, IntArray


class ImageSampler:
    """Sampler of the images that are trained on, uniformly and with replacement."""

    def __init__(self, problem: ImageProblem) -> None:
        self._images, self._augmentation = problem.data.read, problem.data.augmentation
        self._trained, _ = problem.data.split

    def roots(self, rng: Generator, count: int) -> IntArray:
        """Numbers of independent images, shape (count,)."""
        return self._trained[rng.integers(len(self._trained), size=count)]

    def views(self, rng: Generator, roots: IntArray) -> FloatArray:
        """Inputs of independent views of images with these numbers, shape (views, pixels)."""
        return self._augmentation.views(self._images.values(roots), rng).reshape(len(roots), -1)

    def unaugmented(self, rng: Generator, roots: IntArray) -> FloatArray:
        """Inputs of the images themselves."""
        return self._images.values(roots).reshape(len(roots), -1)


class ImageReplicas(BatchStepper):
    """Replicas of training on images."""

    kept: ClassVar[tuple[str, ...]] = ("w", "means", "squares", "of_epoch", "rngs")
    problem: ImageProblem

    def __init__(self, problem: ImageProblem, replicas: range, clock: Clock | None = None) -> None:
        super().__init__(problem, ImageSampler(problem), replicas, clock)
        adam = problem.training.optimiser == "adam"
        if adam:
            self.means = np.zeros_like(self.w)
        self.squares = np.zeros((len(replicas), self.w.shape[1] if adam else 0))
        self.of_epoch = np.zeros(1, dtype=np.int64)
        """Number of steps since an epoch began."""

    def step(self, k: int) -> None:
        """Take step k with the gradient of the loss of a batch."""
        self._look_at_step(k)
        training = self.problem.training
        if self.of_epoch[0] >= math.ceil(len(self.problem.data.split[0]) / training.batch_size):
            self.of_epoch = np.zeros_like(self.of_epoch)
            if training.weight_noise > 0.0:
                self._blend()
        self.of_epoch = self.of_epoch + 1
        gradients = self.slopes()
        if training.weight_decay > 0.0:
            gradients = gradients + training.weight_decay * self.w
        if training.optimiser == "adam":
            gradients = self._adapted(gradients, k)
        elif self.means.size:
            gradients = self.means = training.velocity(self.means, gradients)
        self.w = self.w - training.learning_rate * gradients

    def slopes(self) -> FloatArray:
        """Gradients of the losses of batches, shape (replicas, numbers)."""
        output = self.problem.network.normalisation
        return np.asarray(self._gradient(self._start.like(self.w), dense, output).vector)

    def _adapted(self, gradients: FloatArray, k: int) -> FloatArray:
        """Steps of Adam in place of gradients."""
        first, second = 0.9, 0.999  # decay rates of Adam's means of gradients and of their squares
        self.means = first * self.means + (1.0 - first) * gradients
        self.squares = second * self.squares + (1.0 - second) * gradients**2
        size = np.sqrt(self.squares / (1.0 - second ** (k + 1))) + 1e-8  # keeps Adam's steps finite
        return self.means / (1.0 - first ** (k + 1)) / size

    def _blend(self) -> None:
        """Mix weights with fresh ones; biases stay."""
        eta = self.problem.training.weight_noise
        for i, rng in enumerate(self.rngs):
            w = self._start.like(self.w[i])
            self.w[i] = replace(w, W=[(1.0 - eta) * W + eta * _fresh(W, rng) for W in w.W]).vector

    @property
    def rows(self) -> Mapping[str, FloatArray]:
        """See `Stepper.rows`."""
        self._look_at_output()
        found = {"sampled_loss": np.array([self._loss(i) for i in range(len(self.w))])}
        if has_probe(self.problem):
            found["probe_accuracy"] = self.probes()
        return found

    @property
    def trained(self) -> FloatArray:
        """See `WithWeights.trained`."""
        return self.w

    def rows_of_average(self, average: FloatArray) -> Mapping[str, FloatArray]:
        """See `WithWeights.rows_of_average`."""
        trained, self.w = self.w, average
        try:
            return {f"{name}_average": row for name, row in self.rows.items()}
        finally:
            self.w = trained

    def probes(self) -> FloatArray:
        """Accuracies of linear classifiers, shape (replicas,)."""
        return np.array([self._probe(i) for i in range(len(self.w))])

    @property
    def snapshot(self) -> Mapping[str, FloatArray]:
        """See `Stepper.snapshot`."""
        return {"layer_weights": self.w}

    def _loss(self, i: int) -> float:
        """Mean loss of fresh batches."""
        problem, last = self.problem, self.last_of(i)
        rng = replica_generator(seed_of(problem), self.replicas[i], 1 + int(self.reached[i]))
        total = 0.0
        for _ in range(problem.particles.loss_batches):
            x = draw_batch(problem, self._sampler, rng)
            outputs = problem.network.normalisation.value(last(x))
            total += batch_slope(problem.loss.contrast, outputs)[0]
        return total / problem.particles.loss_batches

    def _probe(self, i: int) -> float:
        """Accuracy of a linear classifier of features, for images themselves, not for views."""
        if not np.isfinite(self.w[i]).all():
            return np.nan
        images = self.problem.data.read
        assert images.labels is not None
        learnt, held = self.problem.data.split
        features, others = (self.features(i, chosen) for chosen in (learnt, held))
        return probe_accuracy(features, images.labels[learnt], others, images.labels[held])

    def last_of(self, i: int) -> Callable[[FloatArray], FloatArray]:
        """The last layer of a replica as a function of a batch, shape (views of a sample, anchors, outputs)."""
        weights = self._start.like(self.w[i])
        return lambda x: forward(weights, x).last

    def features(self, i: int, chosen: IntArray) -> FloatArray:
        """Features of a replica for chosen images, shape (images, features): its last hidden layer."""
        return features_of(self._start.like(self.w[i]), self._sampler.unaugmented(self.rngs[i], chosen))


def features_of(weights: DenseWeights, x: FloatArray) -> FloatArray:
    """Last hidden layer, or the outputs of a network of one layer, shape (samples, nodes)."""
    found = forward(weights, x)
    return found.inputs[-1] if len(weights.W) > 1 else found.last


def _fresh(W: FloatArray, rng: Generator) -> FloatArray:
    """Weights as they are drawn by Xavier's rule, by which a node has as many inputs as its kernel has numbers."""
    return rng.uniform(-1.0, 1.0, W.shape) * math.sqrt(6.0 / (sum(W.shape[:2]) * math.prod(W.shape[2:])))


def has_probe(problem: ImageProblem) -> bool:
    """Whether images have classes, and some are held out."""
    return problem.data.read.labels is not None and len(problem.data.split[1]) > 0


def probe_accuracy(features: FloatArray, labels: IntArray, held_out: FloatArray, wanted: IntArray) -> float:
    """Share of held-out samples that a linear least-squares classifier with ridge gets right.

    Parameters
    ----------
    features : ndarray, shape (samples, features)
        Of the samples from which it learns.
    labels : ndarray, shape (samples,)
        Their classes from 0 on.
    held_out : ndarray, shape (others, features)
    wanted : ndarray, shape (others,)
        Classes of the others.

    Notes
    -----
    Features are standardised, and there is an intercept; the class with the largest output is the answer.
    """
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    kept = deviation > 1e-12 * max(float(deviation.max()), 1e-300)
    x, x_out = ((side[:, kept] - mean[kept]) / deviation[kept] for side in (features, held_out))
    targets = np.eye(int(max(labels.max(), wanted.max())) + 1)[labels]
    matrix = x.T @ x / len(x) + 1e-3 * np.eye(x.shape[1])  # a ridge, because features may depend on each other
    slope = np.linalg.solve(matrix, x.T @ (targets - targets.mean(axis=0)) / len(x))
    return float(np.mean((x_out @ slope + targets.mean(axis=0)).argmax(axis=1) == wanted))
