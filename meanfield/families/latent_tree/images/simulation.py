"""Training on images: results that are kept, the memory of a step, the steps of replicas, and what a run costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from meanfield.ensembles.arrays import Record
from meanfield.ensembles.ensemble import run_ensemble
from meanfield.ensembles.simulation import Simulation, batched
from meanfield.ensembles.stepper import replica_generator
from meanfield.explanation.prediction import Prediction
from meanfield.explanation.replicas import cost_of_replicas
from meanfield.families.latent_tree.images.problem import ImageProblem
from meanfield.families.latent_tree.samples import BatchStepper, batch_slope, draw_batch
from meanfield.networks import dense
from meanfield.networks.dense import DenseWeights, forward
from meanfield.problems.base import check_problem
from meanfield.problems.problem_keys import with_value, with_values
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray, IntArray


@solver
def train_on_images(problem: ImageProblem, workers: int | None = None, record: Record | None = None) -> Solved:
    """Replicas of training on batches of fresh views, from the same weights or each from its own.

    Parameters
    ----------
    workers, record : optional
        See `meanfield.simulate_sgd`.

    Returns
    -------
    xarray.Dataset
        `sampled_loss`, and `probe_accuracy` where images have classes, at the output times, `layer_weights` at
        snapshots; with `particles.record = 'statistics'` statistics over replicas instead. Output time t is step
        round(t/eta). What was not reached is NaN.
    """
    return run_ensemble(simulation_of(problem), lambda: partial(ImageReplicas, problem), workers, record)


def simulation_of(problem: ImageProblem) -> Simulation:
    """Simulation that a problem describes."""
    check_problem(problem, ImageProblem)
    weights = _weights(problem)
    return batched(
        problem,
        numbers_of_a_batch(problem),
        together=2**17,
        besides=weights,
        rows={"sampled_loss": ()} | ({"probe_accuracy": ()} if has_probe(problem) else {}),
        snapshots={"layer_weights": (weights,)},
        quantiles=("sampled_loss",),
        remedy=problem.network.remedy,
        size="network.widths",
    )


def numbers_of_a_batch(problem: ImageProblem) -> int:
    """Number of inputs and activations of all views of a batch."""
    return problem.training.batch_size * problem.loss.views * sum(problem.widths)


def _weights(problem: ImageProblem) -> int:
    """Number of weights and biases."""
    return sum((below + problem.network.bias) * above for below, above in pairwise(problem.widths))


TRIAL = 1 << 18
"""Largest number of inputs and activations of the batches of a trial."""


def particles(problem: ImageProblem) -> Prediction:
    """Cost of training, from steps with fewer samples, through narrower layers.

    Raises
    ------
    InputError
        If it would take longer than `particles.longest_days`, or more memory than is free.
    """
    # The weights of layers of 512 nodes take milliseconds, and so does a probe of as many features.
    trial = with_value(problem, "network.widths", tuple(min(width, 512) for width in problem.network.widths))
    batch, batches, each = problem.training.batch_size, problem.particles.loss_batches, numbers_of_a_batch(trial)
    fewer = min(batch, max(2, TRIAL * batch // each))  # losses take negatives from a batch
    scored = min(batches, TRIAL * batch // (each * fewer) + 1)
    trial = with_values(trial, {"training.batch_size": fewer, "particles.loss_batches": scored})
    step = batch * _weights(problem) / (fewer * _weights(trial))
    return cost_of_replicas(simulation_of(problem), partial(ImageReplicas, trial), step, step * batches / scored)


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

    kept: ClassVar[tuple[str, ...]] = ("w", "means", "squares", "rngs")
    problem: ImageProblem

    def __init__(self, problem: ImageProblem, replicas: range) -> None:
        super().__init__(problem, ImageSampler(problem), replicas)
        moments = self.w.shape[1] if problem.training.optimiser == "adam" else 0
        self.means, self.squares = np.zeros((2, len(replicas), moments))
        self._epoch = math.ceil(len(problem.data.split[0]) / problem.training.batch_size)

    def step(self, k: int) -> None:
        """Take step k with the gradient of the loss of a batch."""
        training = self.problem.training
        if training.weight_noise > 0.0 and k > 0 and k % self._epoch == 0:
            self._blend()
        gradients = self._gradient(self._start.like(self.w), dense, self.problem.network.normalisation).vector
        if training.optimiser == "adam":
            gradients = self._adapted(gradients, k)
        self.w = self.w - training.learning_rate * gradients

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
            mixed = [(1.0 - eta) * W + eta * _fresh(W, rng) for W in w.W]
            self.w[i] = DenseWeights(mixed, w.b).vector

    @property
    def rows(self) -> Mapping[str, FloatArray]:
        """See `Stepper.rows`."""
        found = {"sampled_loss": np.array([self._loss(i) for i in range(len(self.w))])}
        if has_probe(self.problem):
            found["probe_accuracy"] = np.array([self._probe(i) for i in range(len(self.w))])
        return found

    @property
    def snapshot(self) -> Mapping[str, FloatArray]:
        """See `Stepper.snapshot`."""
        return {"layer_weights": self.w}

    def _loss(self, i: int) -> float:
        """Mean loss of fresh batches."""
        problem, weights = self.problem, self._start.like(self.w[i])
        rng = replica_generator(problem.particles.seed, self.replicas[i], 1 + int(self.reached[i]))
        total = 0.0
        for _ in range(problem.particles.loss_batches):
            x = draw_batch(problem, self._sampler, rng)
            outputs = problem.network.normalisation.value(forward(weights, x).last)
            total += batch_slope(problem.loss.contrast, outputs)[0]
        return total / problem.particles.loss_batches

    def _probe(self, i: int) -> float:
        """Accuracy of a linear classifier of the last hidden layer, for images themselves, not for views."""
        if not np.isfinite(self.w[i]).all():
            return np.nan
        images = self.problem.data.read
        weights = self._start.like(self.w[i])
        assert images.labels is not None
        learnt, held = self.problem.data.split
        features, others = (
            features_of(weights, images.values(chosen).reshape(len(chosen), -1)) for chosen in (learnt, held)
        )
        return probe_accuracy(features, images.labels[learnt], others, images.labels[held])


def features_of(weights: DenseWeights, x: FloatArray) -> FloatArray:
    """Last hidden layer, or the outputs of a network of one layer, shape (samples, nodes)."""
    found = forward(weights, x)
    return found.inputs[-1] if len(weights.W) > 1 else found.last


def _fresh(W: FloatArray, rng: Generator) -> FloatArray:
    """Weights as they are drawn by Xavier's rule."""
    return rng.uniform(-1.0, 1.0, W.shape) * math.sqrt(6.0 / sum(W.shape))


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
