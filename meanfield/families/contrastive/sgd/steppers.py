"""Steppers of contrastive SGD, one class for each kind of step, of one channel and of several.

Streams, starts and draws are shared. The steps of one channel are compiled by themselves: those of several, with one
channel, take up to three times as long, and with noise twice as many random numbers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial

import numpy as np

from meanfield.ensembles.arrays import Array
from meanfield.ensembles.ensemble import MakeStepper
from meanfield.ensembles.stepper import Stepper, replica_generator
from meanfield.ensembles.streams import stream_key
from meanfield.families.contrastive.closures.outputs import MeanOutputs
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.chain import chain_steps
from meanfield.families.contrastive.sgd.channels import chain as chain_of_channels
from meanfield.families.contrastive.sgd.channels import projected as projected_of_channels
from meanfield.families.contrastive.sgd.channels.batch import room_for
from meanfield.families.contrastive.sgd.channels.plain import plain_steps
from meanfield.families.contrastive.sgd.plain import START, generators_of, hidden_variables, sgd_steps
from meanfield.families.contrastive.sgd.projected import projected_steps
from meanfield.families.contrastive.sgd.start import (
    draw_channel_coordinates,
    draw_channel_weights,
    draw_features,
    draw_overlap,
    draw_weights,
    escape_level,
    initial_escape,
    products,
    winners,
)
from meanfield.families.contrastive.sgd.training import Training, outputs_of, training_of
from meanfield.numerics.compiled.scalar_functions import compile_loop, compile_scalar
from meanfield.typing import FloatArray, IntArray


class ContrastiveStepper(Stepper):
    """Replicas of a problem of one channel or several."""

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(replicas)
        self._problem, self._training, self._outputs = problem, training, outputs
        self._key = stream_key(problem.particles.seed)
        self._pull = linear_pull(problem)

    @property
    @abstractmethod
    def prior_work(self) -> FloatArray:
        """r, shape (replicas,), or (replicas, d2) for several channels."""


class OneChannel(ContrastiveStepper):
    """Replicas of which q and r are kept, and the step of their escape; shape (replicas,), -1 before it."""

    escape: IntArray

    @property
    @abstractmethod
    def overlap(self) -> FloatArray:
        """q, shape (replicas, d1)."""

    @property
    def rows(self) -> Mapping[str, FloatArray]:
        """See `Stepper.rows`."""
        return {"q": self.overlap, "r": self.prior_work}

    def marks(self, rows: Mapping[str, FloatArray]) -> Mapping[str, IntArray]:
        """See `Stepper.marks`."""
        return {"escape": self.escape, "winner": winners(rows["q"][:, -1], self.escape)}


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


class Chain(OneChannel):
    """Replicas by their order parameters alone (see `meanfield.families.contrastive.sgd.chain`)."""

    kept = ("_q", "_s", "escape")

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        self._level = escape_level(problem)
        self._q, self._s = draw_overlap(problem, self._key, replicas)
        self.escape = initial_escape(self._q, self._level)

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        chain_steps(
            self._training, self._outputs, self._pull, self._key, self.replicas.start, first, steps, self._level,
            self._q, self._s, self.escape, self.reached,
        )  # fmt: skip

    @property
    def overlap(self) -> FloatArray:
        """See `OneChannel.overlap`."""
        return self._q

    @property
    def prior_work(self) -> FloatArray:
        """See `ContrastiveStepper.prior_work`: E[w phi(w)] with phi proportional to w."""
        return np.full(len(self._s), self._pull)


class ChannelChain(SeveralChannels):
    """Replicas by their overlaps alone (see `meanfield.families.contrastive.sgd.channels.chain`)."""

    kept = ("_X",)

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        self._X = draw_channel_coordinates(problem, self._key, replicas)
        self._room, self._work = room_for(training), chain_of_channels.work_for(training)

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        chain_of_channels.chain_steps(
            self._training, self._outputs, self._pull, self._key, self.replicas.start, first, steps, self._X,
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


class OneChannelWithWeights(OneChannel):
    """Replica of one channel with its weights."""

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        (self._replica,) = replicas
        self._level = escape_level(problem)
        start = replica_generator(problem.particles.seed, self._replica, START)
        self._U = draw_features(problem, start)
        self._w = draw_weights(problem, self._U, start)
        self.escape = initial_escape((self._U.T @ self._w / len(self._w))[None], self._level)

    @property
    def overlap(self) -> FloatArray:
        """See `OneChannel.overlap`."""
        return (self.features.T @ self.weights / len(self._w))[None]

    @property
    def prior_work(self) -> FloatArray:
        """See `ContrastiveStepper.prior_work`."""
        w = self.weights
        return np.array([w @ self._problem.prior.force(w) / len(w)])

    @property
    def weights(self) -> FloatArray:
        """w, shape (N,)."""
        return self._w

    @property
    def features(self) -> FloatArray:
        """U, shape (N, d1)."""
        return self._U

    @property
    def snapshot(self) -> Mapping[str, Array]:
        """See `Stepper.snapshot`."""
        return {"weights": self.weights[None], "U": self.features[None]}


class ChannelsWithWeights(SeveralChannels):
    """Replica of several channels with their weights."""

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        (self._replica,) = replicas
        start = replica_generator(problem.particles.seed, self._replica, START)
        U = draw_features(problem, start)
        self._W = draw_channel_weights(problem, U, start)[None]
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
    def snapshot(self) -> Mapping[str, Array]:
        """See `Stepper.snapshot`."""
        return {"weights": self.weights.swapaxes(1, 2), "U": self._U.swapaxes(1, 2)}


class Projected(OneChannelWithWeights):
    """See `meanfield.families.contrastive.sgd.projected`."""

    kept = ("_w", "_state", "escape")

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        self._force = _force_loop(problem)
        self._rows, self._U = np.ascontiguousarray(self._U.T), self._U[:0]
        N = len(self._w)
        self._vector = np.empty(N + N % 2)
        self._state = np.append(self._rows @ self._w / N, 1.0)

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        self.reached[0] = projected_steps(
            self._training, self._outputs, self._pull, self._force, self._problem.prior.strength, self._key,
            self._replica, first, steps, self._level, self._w, self._rows, self._vector, self._state, self.escape,
        )  # fmt: skip

    @property
    def weights(self) -> FloatArray:
        """See `OneChannelWithWeights.weights`."""
        return np.asarray(self._state[-1] * self._w)

    @property
    def features(self) -> FloatArray:
        """See `OneChannelWithWeights.features`."""
        return self._rows.T


class ProjectedChannels(ChannelsWithWeights):
    """See `meanfield.families.contrastive.sgd.channels.projected`."""

    kept = ("_W", "_gram", "_scales")

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        self._force = _force_loop(problem)
        self._gram, self._scales = products(self._W, self._U), np.ones((1, training.channels))
        self._room, self._work = room_for(training), projected_of_channels.work_for(training)

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        projected_of_channels.projected_steps(
            self._training, self._outputs, self._pull, self._force, self._problem.prior.strength, self._key,
            self._replica, first, steps, self._W, self._U, self._gram, self._scales, self.reached,
            self._room, self._work,
        )  # fmt: skip

    @property
    def weights(self) -> FloatArray:
        """See `ChannelsWithWeights.weights`."""
        return np.asarray(self._scales[:, :, None] * self._W)


class Plain(OneChannelWithWeights):
    """Plain SGD (see `sgd.plain`). Its generators are NumPy's: nothing random is shared with the other two."""

    kept = ("_w", "_generators", "escape")

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        self._force = compile_scalar(problem.prior.functions.unit_force)
        self._generators = generators_of(problem, self._replica)

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        for start, hidden in hidden_variables(self._problem, self._generators[1:], first, steps):
            self.reached[0] = sgd_steps(
                self._training, self._outputs, self._problem.model.activation_functions.addresses, self._force,
                self._problem.prior.strength, self._generators[0], hidden, start, self._level, self._w, self._U,
                self.escape,
            )  # fmt: skip
            if self.reached[0] < start + len(hidden):
                return


class PlainChannels(ChannelsWithWeights):
    """Plain SGD of several channels (see `sgd.channels.plain`), with NumPy's generators as for one channel."""

    kept = ("_W", "_generators")

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        self._force = compile_scalar(problem.prior.functions.unit_force)
        self._generators = generators_of(problem, self._replica)

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        for start, hidden in hidden_variables(self._problem, self._generators[1:], first, steps):
            plain_steps(
                self._training, self._outputs, self._force, self._problem.prior.strength, self._generators[0],
                hidden[None], start, self._W, self._U, self.reached,
            )  # fmt: skip


def linear_pull(problem: Problem) -> float:
    """Linear force phi(w)/w with its strength; 0 for a phi that is not linear."""
    prior = problem.prior
    return prior.strength * float(prior.functions.unit_force(1.0)) if prior.functions.linear else 0.0


def _force_loop(problem: Problem) -> int:
    """Address of the loop of phi of unit strength; 0 if phi is linear."""
    functions = problem.prior.functions
    return 0 if functions.linear else compile_loop(functions.unit_force)


STEPPERS: dict[str, type[OneChannel]] = {"plain": Plain, "projected": Projected, "chain": Chain}
"""Classes of steppers of one channel by their names in problem files."""

CHANNEL_STEPPERS: dict[str, type[SeveralChannels]] = {
    "plain": PlainChannels,
    "projected": ProjectedChannels,
    "chain": ChannelChain,
}
"""Classes of steppers of several channels by their names in problem files."""


def prepare_steppers(problem: Problem, method: str) -> MakeStepper:
    """Function that makes the steppers of a method; preparing what they share may take seconds."""
    steppers = CHANNEL_STEPPERS if problem.model.channels > 1 else STEPPERS
    return partial(steppers[method], problem, training_of(problem), outputs_of(problem))
