"""Steppers of contrastive SGD of one channel, one class for each kind of step, and the choice among all.

Streams, starts and draws are those of several channels. The steps of one are compiled by themselves: those of several,
with one channel, take up to three times as long, and with noise twice as many random numbers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from meanfield.ensembles.arrays import Array
from meanfield.ensembles.averages import averaging
from meanfield.ensembles.ensemble import MakeStepper
from meanfield.ensembles.phases import Phased
from meanfield.ensembles.stepper import replica_generator
from meanfield.families.contrastive.closures.outputs import MeanOutputs
from meanfield.families.contrastive.problem import FACTORS, Problem
from meanfield.families.contrastive.sgd.base_stepper import ContrastiveStepper, force_loop
from meanfield.families.contrastive.sgd.chain import chain_steps
from meanfield.families.contrastive.sgd.changes import Changes
from meanfield.families.contrastive.sgd.plain import START, generators_of, hidden_variables, sgd_steps
from meanfield.families.contrastive.sgd.projected import projected_steps
from meanfield.families.contrastive.sgd.start import (
    draw_overlap,
    draw_start,
    escape_level,
    initial_escape,
    winners,
)
from meanfield.families.contrastive.sgd.training import Training, is_noisy, outputs_of, training_of
from meanfield.families.contrastive.variables import AVERAGES
from meanfield.mckean_vlasov.drive import reference_of
from meanfield.numerics.compiled.scalar_functions import compile_scalar
from meanfield.problems.in_time import InTime, pieces_in_steps
from meanfield.problems.phases import Piece
from meanfield.results.initial_state import seed_of
from meanfield.typing import FloatArray, IntArray


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


class Chain(OneChannel):
    """Replicas by their order parameters alone (see `meanfield.families.contrastive.sgd.chain`)."""

    kept = ("_q", "_s", "escape")

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        self._level = escape_level(problem)
        self._q, self._s = draw_overlap(problem, self._key, replicas)
        self.escape = initial_escape(self._q, self._level)

    def take(self, training: Training, first: int, steps: int) -> None:
        """See `ContrastiveStepper.take`."""
        chain_steps(
            training, self._outputs, self._pull, self._key, self.replicas.start, first, steps, self._level,
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


class OneChannelWithWeights(OneChannel):
    """Replica of one channel with its weights."""

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        (self._replica,) = replicas
        self._level = escape_level(problem)
        start = replica_generator(seed_of(problem), self._replica, START)
        self._U, weights = draw_start(problem, self._replica, start)
        self._w = np.ascontiguousarray(weights[:, 0])
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
    def trained(self) -> FloatArray:
        """See `WithWeights.trained`."""
        return self.weights[None]

    def rows_of_average(self, average: FloatArray) -> Mapping[str, FloatArray]:
        """See `WithWeights.rows_of_average`."""
        N = average.shape[1]
        products = average @ self.features / N, average @ self.weights / N, np.einsum("ri,ri->r", average, average) / N
        return dict(zip(AVERAGES, products, strict=True))

    @property
    def snapshot(self) -> Mapping[str, Array]:
        """See `Stepper.snapshot`."""
        return {"weights": self.weights[None], "U": self.features[None]}


class Projected(OneChannelWithWeights):
    """See `meanfield.families.contrastive.sgd.projected`."""

    kept = ("_w", "_state", "escape")

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        self._force = force_loop(problem)
        self._rows, self._U = np.ascontiguousarray(self._U.T), self._U[:0]
        N = len(self._w)
        self._vector = np.empty(N + N % 2)
        self._state = np.append(self._rows @ self._w / N, 1.0)

    def take(self, training: Training, first: int, steps: int) -> None:
        """See `ContrastiveStepper.take`."""
        self.reached[0] = projected_steps(
            training, self._outputs, self._pull, self._force, self._problem.prior.strength, self._key,
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


class Plain(OneChannelWithWeights):
    """Plain SGD (see `sgd.plain`). Its generators are NumPy's: nothing random is shared with the other two."""

    kept = ("_w", "_velocity", "_generators", "escape")

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(problem, training, outputs, replicas)
        self._velocity = np.zeros(self._w.shape if training.momentum > 0 else 0)
        self._force = compile_scalar(problem.prior.functions.unit_force)
        self._generators = generators_of(problem, self._replica)

    def take(self, training: Training, first: int, steps: int) -> None:
        """See `ContrastiveStepper.take`."""
        for start, hidden in hidden_variables(self._problem, self.laws_at, self._generators[1:], first, steps):
            self.reached[0] = sgd_steps(
                training, self._outputs, self._problem.model.activation_functions.addresses, self._force,
                self._problem.prior.strength, self._generators[0], hidden, start, self._level, self._w,
                self._velocity, self._U, self.escape,
            )  # fmt: skip
            if self.reached[0] < start + len(hidden):
                return


STEPPERS: dict[str, type[OneChannel]] = {"plain": Plain, "projected": Projected, "chain": Chain}
"""Classes of steppers of one channel by their names in problem files."""


def prepare_steppers(problem: Problem, method: str) -> MakeStepper:
    """Function that makes the steppers of a method; preparing what they share may take seconds."""
    pieces, a, N = pieces_in_steps(problem, besides=FACTORS), problem.model.average_rate, problem.particles.dimension
    makers = [averaging(a, N, _maker(number, piece, method)) for number, piece in enumerate(pieces)]
    if len(makers) == 1:
        return makers[0]
    return partial(Phased, makers, [round(piece.stop * N) for piece in pieces])


def _maker(number: int, piece: Piece[Problem], method: str) -> MakeStepper:
    """Function that makes the steppers of a stretch of time, in which numbers change smoothly if at all."""
    steppers: Mapping[str, Callable[..., ContrastiveStepper]] = STEPPERS
    if piece.problem.model.channels > 1:
        from meanfield.families.contrastive.sgd.channels.steppers import CHANNEL_STEPPERS as steppers  # where used
    reference = InTime(reference_of(piece.problem, FACTORS))(piece.start)
    noisy = is_noisy(piece.problem)
    training, outputs = training_of(reference, noisy), outputs_of(reference)
    changes = None if reference is piece.problem else Changes(piece.problem, reference, noisy)

    def make(replicas: range) -> ContrastiveStepper:
        own = training if changes is None else training_of(reference, noisy)
        stepper = steppers[method](reference, own, outputs, replicas)
        stepper.changes = changes
        stepper.enter_phase(number)
        return stepper

    return make
