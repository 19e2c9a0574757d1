"""Steppers of several channels, one class for each kind of step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from meanfield.ensembles.arrays import Array
from meanfield.ensembles.stepper import replica_generator
from meanfield.families.contrastive.closures.outputs import MeanOutputs
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.base_stepper import ContrastiveStepper, force_loop
from meanfield.families.contrastive.sgd.channels import chain as chain_of_channels
from meanfield.families.contrastive.sgd.channels import projected as projected_of_channels
from meanfield.families.contrastive.sgd.channels.batch import room_for
from meanfield.families.contrastive.sgd.channels.plain import plain_steps
from meanfield.families.contrastive.sgd.plain import START, generators_of, hidden_variables
from meanfield.families.contrastive.sgd.start import (
    draw_channel_coordinates,
    draw_start,
    products,
)
from meanfield.families.contrastive.sgd.training import Training
from meanfield.families.contrastive.variables import AVERAGES_OF_CHANNELS
from meanfield.numerics.compiled.scalar_functions import compile_scalar
from meanfield.results.initial_state import seed_of
from meanfield.typing import FloatArray


class SeveralChannels(ContrastiveStepper):
    """Replicas of which q, M and r are kept."""

    @property
    @abstractmethod
    def overlaps(self) -> tuple[FloatArray, FloatArray]:
        """q, shape (replicas, d1, d2), and M, shape (replicas, d2, d2)."""

    @property
    def rows(self) -> Mapping[str, FloatArray]:
        """See `Stepper.rows`."""
        q, M = self.overlaps
        return {"q": q, "M": M, "r": self.prior_work}


class ChannelChain(SeveralChannels):
    """Replicas by their overlaps alone (see `meanfield.families.contrastive.sgd.channels.chain`)."""

    kept = ("_X",)

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        self._X = draw_channel_coordinates(problem, self._key, replicas)
        self._room, self._work = room_for(training), chain_of_channels.work_for(training)

    def take(self, training: Training, first: int, steps: int) -> None:
        """See `ContrastiveStepper.take`."""
        chain_of_channels.chain_steps(
            training, self._outputs, self._pull, self._key, self.replicas.start, first, steps, self._X,
            self.reached, self._room, self._work,
        )  # fmt: skip

    @property
    def overlaps(self) -> tuple[FloatArray, FloatArray]:
        """See `SeveralChannels.overlaps`."""
        X = self._X
        q = X[:, :, : X.shape[2] - X.shape[1]]
        return q.swapaxes(1, 2), X @ X.swapaxes(1, 2)

    @property
    def prior_work(self) -> FloatArray:
        """See `ContrastiveStepper.prior_work`: E[w phi(w)] with phi proportional to w."""
        return np.full(self._X.shape[:2], self._pull)


class ChannelsWithWeights(SeveralChannels):
    """Replica of several channels with their weights."""

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        (self._replica,) = replicas
        start = replica_generator(seed_of(problem), self._replica, START)
        U, weights = draw_start(problem, self._replica, start)
        self._W = np.ascontiguousarray(weights.T)[None]
        self._U = np.ascontiguousarray(U.T)[None]

    @property
    def overlaps(self) -> tuple[FloatArray, FloatArray]:
        """See `SeveralChannels.overlaps`."""
        W, N = self.weights, self._U.shape[2]
        return self._U @ W.swapaxes(1, 2) / N, W @ W.swapaxes(1, 2) / N

    @property
    def prior_work(self) -> FloatArray:
        """See `ContrastiveStepper.prior_work`."""
        W = self.weights
        force = self._problem.prior.force(W.ravel()).reshape(W.shape)
        return np.asarray((W * force).sum(axis=2) / W.shape[2])

    @property
    def weights(self) -> FloatArray:
        """W, shape (1, d2, N)."""
        return self._W

    @property
    def trained(self) -> FloatArray:
        """See `WithWeights.trained`."""
        return self.weights

    def rows_of_average(self, average: FloatArray) -> Mapping[str, FloatArray]:
        """See `WithWeights.rows_of_average`."""
        N, columns = average.shape[2], average.swapaxes(1, 2)
        products = (self._U @ columns / N, self.weights @ columns / N, average @ columns / N)
        return dict(zip(AVERAGES_OF_CHANNELS, products, strict=True))

    @property
    def snapshot(self) -> Mapping[str, Array]:
        """See `Stepper.snapshot`."""
        return {"weights": self.weights.swapaxes(1, 2), "U": self._U.swapaxes(1, 2)}


class ProjectedChannels(ChannelsWithWeights):
    """See `meanfield.families.contrastive.sgd.channels.projected`."""

    kept = ("_W", "_gram", "_scales")

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        self._force = force_loop(problem)
        self._gram, self._scales = products(self._W, self._U), np.ones((1, training.channels))
        self._room, self._work = room_for(training), projected_of_channels.work_for(training)

    def take(self, training: Training, first: int, steps: int) -> None:
        """See `ContrastiveStepper.take`."""
        projected_of_channels.projected_steps(
            training, self._outputs, self._pull, self._force, self._problem.prior.strength, self._key,
            self._replica, first, steps, self._W, self._U, self._gram, self._scales, self.reached,
            self._room, self._work,
        )  # fmt: skip

    @property
    def weights(self) -> FloatArray:
        """See `ChannelsWithWeights.weights`."""
        return np.asarray(self._scales[:, :, None] * self._W)


class PlainChannels(ChannelsWithWeights):
    """Plain SGD of several channels (see `sgd.channels.plain`), with NumPy's generators as for one channel."""

    kept = ("_W", "_velocity", "_generators")

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        self._velocity = np.zeros(self._W.shape if training.momentum > 0 else (1, 0, 0))
        self._force = compile_scalar(problem.prior.functions.unit_force)
        self._generators = generators_of(problem, self._replica)

    def take(self, training: Training, first: int, steps: int) -> None:
        """See `ContrastiveStepper.take`."""
        for start, hidden in hidden_variables(self._problem, self.laws_at, self._generators[1:], first, steps):
            plain_steps(
                training, self._outputs, self._force, self._problem.prior.strength, self._generators[0],
                hidden[None], start, self._W, self._velocity, self._U, self.reached,
            )  # fmt: skip


CHANNEL_STEPPERS: dict[str, type[SeveralChannels]] = {
    "plain": PlainChannels,
    "projected": ProjectedChannels,
    "chain": ChannelChain,
}
"""Classes of steppers of several channels by their names in problem files."""
