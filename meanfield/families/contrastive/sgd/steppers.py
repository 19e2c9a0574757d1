"""Replicas of SGD that can be advanced, looked at, saved and restored, one class for each way to take a step."""

from __future__ import annotations

import json
import math
from typing import Protocol

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence

from meanfield.ensembles.arrays import State
from meanfield.ensembles.streams import stream_key
from meanfield.families.contrastive.closures.expectation import Expectation
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.batch import Training
from meanfield.families.contrastive.sgd.chain import chain_steps
from meanfield.families.contrastive.sgd.draws import IntArray
from meanfield.families.contrastive.sgd.plain import sgd_steps
from meanfield.families.contrastive.sgd.projected import projected_steps
from meanfield.families.contrastive.sgd.start import draw_features, draw_overlap, draw_weights
from meanfield.numerics.compiled.scalar_functions import compile_loop, compile_scalar
from meanfield.typing import FloatArray

DRAWN_AT_ONCE = 1 << 18
"""Hidden variables that plain SGD draws at a time."""

START, NOISE, HIDDEN = range(3)
"""Streams of numpy's generators that belong to a replica; each group of hidden variables has one, from HIDDEN on."""


class Stepper(Protocol):
    """Some replicas of one problem.

    Parameters
    ----------
    reached : ndarray of int, shape (replicas,)
        The step after which each was still finite.
    escape : ndarray of int, shape (replicas,)
        The step after which |q| first reached the overlap that counts as escape; -1 before.
    """

    reached: IntArray
    escape: IntArray

    def advance(self, first: int, steps: int) -> None:
        """Take steps `first`, `first` + 1, ..."""

    @property
    def overlap(self) -> FloatArray:
        """Q, shape (replicas, d1)."""

    @property
    def prior_work(self) -> FloatArray:
        """R, shape (replicas,)."""

    @property
    def state(self) -> State:
        """What `restore` needs besides `reached` and `escape` to go on with the same numbers."""

    def restore(self, state: State) -> None:
        """Go on from a state."""


def generator(problem: Problem, replica: int, stream: int) -> Generator:
    """One of numpy's generators that belong to a replica."""
    return Generator(PCG64(SeedSequence(problem.particles.seed, spawn_key=(replica, stream))))


def escape_level(problem: Problem) -> float:
    """Square of the overlap that counts as escape; infinite if nobody asks."""
    overlap = problem.particles.escape_overlap
    return math.inf if overlap is None else overlap * overlap


def initial_escape(q: FloatArray, level: float) -> IntArray:
    """0 for the replicas whose overlap begins at the level or above, else -1."""
    return np.asarray(np.where(np.einsum("rk,rk->r", q, q) >= level, 0, -1))


class Chain:
    """The order parameters of many replicas (see `meanfield.families.contrastive.sgd.chain`)."""

    def __init__(self, problem: Problem, training: Training, expectation: Expectation, replicas: range) -> None:
        self._training, self._expectation = training, expectation
        self._pull = linear_pull(problem)
        self._key, self._level = stream_key(problem.particles.seed), escape_level(problem)
        self._first_replica = replicas.start
        self._q, self._s = draw_overlap(problem, self._key, replicas)
        self.reached: IntArray = np.zeros(len(replicas), dtype=np.int64)
        self.escape: IntArray = initial_escape(self._q, self._level)

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        chain_steps(
            self._training, self._expectation, self._pull, self._key, self._first_replica, first, steps, self._level,
            self._q, self._s, self.escape, self.reached,
        )  # fmt: skip

    @property
    def overlap(self) -> FloatArray:
        """See `Stepper.overlap`."""
        return self._q

    @property
    def prior_work(self) -> FloatArray:
        """See `Stepper.prior_work`: E[w phi(w)] with phi proportional to w."""
        return np.full(len(self._s), self._pull)

    @property
    def state(self) -> State:
        """See `Stepper.state`."""
        return {"q": self._q, "s": self._s}

    def restore(self, state: State) -> None:
        """See `Stepper.restore`."""
        self._q, self._s = state["q"], state["s"]


class WithWeights:
    """One replica with its weights."""

    def __init__(self, problem: Problem, training: Training, expectation: Expectation, replicas: range) -> None:
        (self._replica,) = replicas
        self._problem, self._training, self._expectation = problem, training, expectation
        self._level = escape_level(problem)
        start = generator(problem, self._replica, START)
        self._U = draw_features(problem, start)
        self._w = draw_weights(problem, self._U, start)
        self.reached: IntArray = np.zeros(1, dtype=np.int64)
        self.escape: IntArray = initial_escape((self._U.T @ self._w / len(self._w))[None], self._level)

    @property
    def overlap(self) -> FloatArray:
        """See `Stepper.overlap`."""
        return (self.features.T @ self.weights / len(self._w))[None]

    @property
    def prior_work(self) -> FloatArray:
        """See `Stepper.prior_work`."""
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


class Projected(WithWeights):
    """See `meanfield.families.contrastive.sgd.projected`."""

    def __init__(self, problem: Problem, training: Training, expectation: Expectation, replicas: range) -> None:
        super().__init__(problem, training, expectation, replicas)
        self._key = stream_key(problem.particles.seed)
        linear = problem.prior.functions.linear
        self._pull = linear_pull(problem) if linear else 0.0
        self._force = 0 if linear else compile_loop(problem.prior.functions.unit_force)
        self._rows, self._U = np.ascontiguousarray(self._U.T), self._U[:0]
        N = len(self._w)
        self._vector = np.empty(N + N % 2)
        self._state = np.append(self._rows @ self._w / N, 1.0)

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        self.reached[0] = projected_steps(
            self._training, self._expectation, self._pull, self._force, self._problem.prior.strength, self._key,
            self._replica, first, steps, self._level, self._w, self._rows, self._vector, self._state, self.escape,
        )  # fmt: skip

    @property
    def weights(self) -> FloatArray:
        """See `WithWeights.weights`."""
        return np.asarray(self._state[-1] * self._w)

    @property
    def features(self) -> FloatArray:
        """See `WithWeights.features`."""
        return self._rows.T

    @property
    def state(self) -> State:
        """See `Stepper.state`."""
        return {"w": self._w, "state": self._state}

    def restore(self, state: State) -> None:
        """See `Stepper.restore`."""
        self._w, self._state = state["w"], state["state"]


class Plain(WithWeights):
    """See `sgd.plain`. Its generators are numpy's: nothing random is shared with the other two."""

    def __init__(self, problem: Problem, training: Training, expectation: Expectation, replicas: range) -> None:
        super().__init__(problem, training, expectation, replicas)
        self._force = compile_scalar(problem.prior.functions.unit_force)
        streams = range(NOISE, HIDDEN + len(problem.hidden_laws))
        # One stream for each kind of draw, so that none depends on how another is cut into calls.
        self._generators = [generator(problem, self._replica, stream) for stream in streams]

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        training, prior = self._training, self._problem.prior
        value, derivative = self._problem.model.activation_functions.addresses
        piece = max(1, DRAWN_AT_ONCE // (training.batch_size * len(self._problem.features)))
        for start in range(first, first + steps, piece):
            hidden = self._draw_hidden(min(piece, first + steps - start))
            self.reached[0] = sgd_steps(
                self._w, self._U, hidden, self._generators[0], value, derivative, self._force,
                prior.strength, training.learning_rate, training.centering, training.noise_factor, self._expectation,
                start, self._level, self.escape,
            )  # fmt: skip
            if self.reached[0] < start + len(hidden):
                return

    def _draw_hidden(self, steps: int) -> FloatArray:
        size, laws = (steps, self._training.batch_size), self._problem.hidden_laws
        return np.concatenate(
            [law.sample(rng, size) for law, rng in zip(laws, self._generators[1:], strict=True)], axis=2
        )

    @property
    def state(self) -> State:
        """See `Stepper.state`."""
        generators = json.dumps([rng.bit_generator.state for rng in self._generators])
        return {"w": self._w, "generators": np.array(generators)}

    def restore(self, state: State) -> None:
        """See `Stepper.restore`."""
        self._w = state["w"]
        for rng, saved in zip(self._generators, json.loads(str(state["generators"])), strict=True):
            rng.bit_generator.state = saved


def linear_pull(problem: Problem) -> float:
    """phi(w)/w with its strength, for linear phi."""
    return problem.prior.strength * float(problem.prior.functions.unit_force(1.0))


STEPPERS: dict[str, type[Chain] | type[Projected] | type[Plain]] = {
    "plain": Plain,
    "projected": Projected,
    "chain": Chain,
}
"""By the name in problem files."""
