"""Steppers of SGD of several channels, one class for each kind of step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial

import numpy as np

from meanfield.ensembles.arrays import Array
from meanfield.ensembles.ensemble import MakeStepper
from meanfield.ensembles.stepper import Stepper, replica_generator
from meanfield.ensembles.streams import stream_key
from meanfield.families.contrastive.channels.sgd import chain, projected
from meanfield.families.contrastive.channels.sgd.batch import room_for
from meanfield.families.contrastive.channels.sgd.plain import plain_steps
from meanfield.families.contrastive.channels.sgd.start import draw_coordinates, draw_weights
from meanfield.families.contrastive.channels.sgd.training import Training, channel_outputs, training_of
from meanfield.families.contrastive.closures.outputs import MeanOutputs
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.start import draw_features
from meanfield.families.contrastive.sgd.steppers import DRAWN_AT_ONCE, HIDDEN, NOISE, START, linear_pull
from meanfield.numerics.compiled.scalar_functions import compile_loop, compile_scalar
from meanfield.typing import FloatArray


class ChannelStepper(Stepper):
    """Replicas of which q, M and r are kept."""

    @property
    @abstractmethod
    def overlaps(self) -> tuple[FloatArray, FloatArray]:
        """q, shape (replicas, d1, d2), and M, shape (replicas, d2, d2)."""

    @property
    @abstractmethod
    def prior_work(self) -> FloatArray:
        """r, shape (replicas, d2)."""

    @property
    def rows(self) -> Mapping[str, FloatArray]:
        """See `Stepper.rows`."""
        q, M = self.overlaps
        return {"q": q, "M": M, "r": self.prior_work}


class Chain(ChannelStepper):
    """Replicas by their overlaps alone (see `meanfield.families.contrastive.channels.sgd.chain`)."""

    kept = ("_X",)

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(replicas)
        self._training, self._outputs, self._pull = training, outputs, linear_pull(problem)
        self._key = stream_key(problem.particles.seed)
        self._X = draw_coordinates(problem, self._key, replicas)
        self._room, self._work = room_for(training), chain.work_for(training)

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        chain.chain_steps(
            self._training, self._outputs, self._pull, self._key, self.replicas.start, first, steps, self._X,
            self.reached, self._room, self._work,
        )  # fmt: skip

    @property
    def overlaps(self) -> tuple[FloatArray, FloatArray]:
        """See `ChannelStepper.overlaps`."""
        X = self._X
        q = X[:, :, : X.shape[2] - X.shape[1]]
        return q.swapaxes(1, 2), X @ X.swapaxes(1, 2)

    @property
    def prior_work(self) -> FloatArray:
        """See `ChannelStepper.prior_work`: E[w phi(w)] with phi proportional to w."""
        return np.full(self._X.shape[:2], self._pull)


class WithWeights(ChannelStepper):
    """Replica with its weights."""

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(replicas)
        (self._replica,) = replicas
        self._problem, self._training, self._outputs = problem, training, outputs
        start = replica_generator(problem.particles.seed, self._replica, START)
        U = draw_features(problem, start)
        self._W = draw_weights(problem, U, start)[None]
        self._U = np.ascontiguousarray(U.T)[None]

    @property
    def overlaps(self) -> tuple[FloatArray, FloatArray]:
        """See `ChannelStepper.overlaps`."""
        W, N = self.weights, self._U.shape[2]
        return self._U @ W.swapaxes(1, 2) / N, W @ W.swapaxes(1, 2) / N

    @property
    def prior_work(self) -> FloatArray:
        """See `ChannelStepper.prior_work`."""
        W = self.weights
        force = self._problem.prior.force(W.ravel()).reshape(W.shape)
        return np.asarray((W * force).sum(axis=2) / W.shape[2])

    @property
    def weights(self) -> FloatArray:
        """W, shape (1, d2, N)."""
        return self._W

    @property
    def snapshot(self) -> Mapping[str, Array]:
        """See `Stepper.snapshot`."""
        return {"weights": self.weights.swapaxes(1, 2), "U": self._U.swapaxes(1, 2)}


class Projected(WithWeights):
    """See `meanfield.families.contrastive.channels.sgd.projected`."""

    kept = ("_W", "_gram", "_scales")

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        self._key = stream_key(problem.particles.seed)
        linear = problem.prior.functions.linear
        self._pull = linear_pull(problem) if linear else 0.0
        self._force = 0 if linear else compile_loop(problem.prior.functions.unit_force)
        self._gram, self._scales = products(self._W, self._U), np.ones((1, training.channels))
        self._room, self._work = room_for(training), projected.work_for(training)

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        projected.projected_steps(
            self._training, self._outputs, self._pull, self._force, self._problem.prior.strength, self._key,
            self._replica, first, steps, self._W, self._U, self._gram, self._scales, self.reached,
            self._room, self._work,
        )  # fmt: skip

    @property
    def weights(self) -> FloatArray:
        """See `WithWeights.weights`."""
        return np.asarray(self._scales[:, :, None] * self._W)


class Plain(WithWeights):
    """Plain SGD. Its generators are NumPy's: nothing random is shared with the other two."""

    kept = ("_W", "_generators")

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        self._force = compile_scalar(problem.prior.functions.unit_force)
        streams = range(NOISE, HIDDEN + len(problem.hidden_laws))
        # One stream for each kind of draw, so that none depends on how another is cut into calls.
        self._generators = [replica_generator(problem.particles.seed, self._replica, stream) for stream in streams]

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        training, laws = self._training, self._problem.hidden_laws
        piece = max(1, DRAWN_AT_ONCE // (training.batch_size * self._U.shape[1]))
        for start in range(first, first + steps, piece):
            size = 1, min(piece, first + steps - start), training.batch_size
            hidden = [law.sample(rng, size) for law, rng in zip(laws, self._generators[1:], strict=True)]
            plain_steps(
                training, self._outputs, self._force, self._problem.prior.strength, self._generators[0],
                np.concatenate(hidden, axis=3), start, self._W, self._U, self.reached,
            )  # fmt: skip


def products(W: FloatArray, U: FloatArray) -> FloatArray:
    """Products of features and weights divided by N, shape (replicas, d1 + d2, d1 + d2).

    Parameters
    ----------
    W : ndarray, shape (replicas, d2, N)
    U : ndarray, shape (replicas, d1, N)
    """
    rows = np.concatenate([U, W], axis=1)
    gram = rows @ rows.swapaxes(1, 2) / W.shape[2]
    gram[:, : U.shape[1], : U.shape[1]] = np.eye(U.shape[1])  # to rounding
    return np.asarray(gram)


STEPPERS: dict[str, type[Chain] | type[Projected] | type[Plain]] = {
    "plain": Plain,
    "projected": Projected,
    "chain": Chain,
}
"""Classes of steppers by their names in problem files."""


def prepare_steppers(problem: Problem, method: str) -> MakeStepper:
    """Function that makes steppers by one of `STEPPERS`; preparing what they share may take seconds."""
    return partial(STEPPERS[method], problem, training_of(problem), channel_outputs(problem))
