"""Steppers of contrastive SGD, one class for each kind of step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial

import numpy as np

from meanfield.ensembles.arrays import Array
from meanfield.ensembles.ensemble import MakeStepper
from meanfield.ensembles.stepper import Stepper, replica_generator
from meanfield.ensembles.streams import stream_key
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.closures.outputs import MeanOutputs, no_mean_outputs
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.batch import Training, training_of
from meanfield.families.contrastive.sgd.chain import chain_steps
from meanfield.families.contrastive.sgd.escape import escape_level, initial_escape, winners
from meanfield.families.contrastive.sgd.plain import sgd_steps
from meanfield.families.contrastive.sgd.projected import projected_steps
from meanfield.families.contrastive.sgd.start import draw_features, draw_overlap, draw_weights
from meanfield.numerics.compiled.scalar_functions import compile_loop, compile_scalar
from meanfield.typing import FloatArray, IntArray

DRAWN_AT_ONCE = 1 << 18
"""Number of hidden variables that plain SGD draws at a time."""

START, NOISE, HIDDEN = range(3)
"""Streams of NumPy's generators that belong to a replica; each group of hidden variables has one, from HIDDEN on."""


class ContrastiveStepper(Stepper):
    """Replicas of which q and r are kept, and the step of their escape; shape (replicas,), -1 before it."""

    escape: IntArray

    @property
    @abstractmethod
    def overlap(self) -> FloatArray:
        """q, shape (replicas, d1)."""

    @property
    @abstractmethod
    def prior_work(self) -> FloatArray:
        """r, shape (replicas,)."""

    @property
    def rows(self) -> Mapping[str, FloatArray]:
        """See `Stepper.rows`."""
        return {"q": self.overlap, "r": self.prior_work}

    def marks(self, rows: Mapping[str, FloatArray]) -> Mapping[str, IntArray]:
        """See `Stepper.marks`."""
        return {"escape": self.escape, "winner": winners(rows["q"][:, -1], self.escape)}


class Chain(ContrastiveStepper):
    """Replicas by their order parameters alone (see `meanfield.families.contrastive.sgd.chain`)."""

    kept = ("_q", "_s", "escape")

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(replicas)
        self._training, self._outputs = training, outputs
        self._pull = linear_pull(problem)
        self._key, self._level = stream_key(problem.particles.seed), escape_level(problem)
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
        """See `ContrastiveStepper.overlap`."""
        return self._q

    @property
    def prior_work(self) -> FloatArray:
        """See `ContrastiveStepper.prior_work`: E[w phi(w)] with phi proportional to w."""
        return np.full(len(self._s), self._pull)


class WithWeights(ContrastiveStepper):
    """Replica with its weights."""

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(replicas)
        (self._replica,) = replicas
        self._problem, self._training, self._outputs = problem, training, outputs
        self._level = escape_level(problem)
        start = replica_generator(problem.particles.seed, self._replica, START)
        self._U = draw_features(problem, start)
        self._w = draw_weights(problem, self._U, start)
        self.escape = initial_escape((self._U.T @ self._w / len(self._w))[None], self._level)

    @property
    def overlap(self) -> FloatArray:
        """See `ContrastiveStepper.overlap`."""
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


class Projected(WithWeights):
    """See `meanfield.families.contrastive.sgd.projected`."""

    kept = ("_w", "_state", "escape")

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
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
            self._training, self._outputs, self._pull, self._force, self._problem.prior.strength, self._key,
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


class Plain(WithWeights):
    """Plain SGD (see `sgd.plain`). Its generators are NumPy's: nothing random is shared with the other two."""

    kept = ("_w", "_generators", "escape")

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        self._force = compile_scalar(problem.prior.functions.unit_force)
        streams = range(NOISE, HIDDEN + len(problem.hidden_laws))
        # One stream for each kind of draw, so that none depends on how another is cut into calls.
        self._generators = [replica_generator(problem.particles.seed, self._replica, stream) for stream in streams]

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        training, prior = self._training, self._problem.prior
        value, derivative = self._problem.model.activation_functions.addresses
        piece = max(1, DRAWN_AT_ONCE // (training.batch_size * len(self._problem.features)))
        for start in range(first, first + steps, piece):
            hidden = self._draw_hidden(min(piece, first + steps - start))
            self.reached[0] = sgd_steps(
                self._w, self._U, hidden, self._generators[0], value, derivative, self._force,
                prior.strength, training.learning_rate, training.centering, training.noise_factor, self._outputs,
                start, self._level, self.escape,
            )  # fmt: skip
            if self.reached[0] < start + len(hidden):
                return

    def _draw_hidden(self, steps: int) -> FloatArray:
        size, laws = (steps, self._training.batch_size), self._problem.hidden_laws
        return np.concatenate(
            [law.sample(rng, size) for law, rng in zip(laws, self._generators[1:], strict=True)], axis=2
        )


def linear_pull(problem: Problem) -> float:
    """Linear force phi(w)/w with its strength, for linear phi."""
    return problem.prior.strength * float(problem.prior.functions.unit_force(1.0))


STEPPERS: dict[str, type[Chain] | type[Projected] | type[Plain]] = {
    "plain": Plain,
    "projected": Projected,
    "chain": Chain,
}
"""Classes of steppers by their names in problem files."""


def prepare_steppers(problem: Problem, method: str) -> MakeStepper:
    """Function that makes steppers by one of `STEPPERS`; preparing what they share may take seconds."""
    # Only population centring needs the limit's averages: other SGD goes on where they are hard or do not exist.
    population = problem.model.centering == "population"
    outputs = Closure(problem).mean_outputs if population else no_mean_outputs()
    return partial(STEPPERS[method], problem, training_of(problem), outputs)
