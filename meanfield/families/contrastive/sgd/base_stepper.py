"""What steppers of one channel and of several have in common: streams, starts, and numbers that change in time."""

from __future__ import annotations

from abc import abstractmethod

from meanfield.ensembles.stepper import Stepper
from meanfield.ensembles.streams import stream_key
from meanfield.families.contrastive.closures.outputs import MeanOutputs
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.changes import AT_ONCE, Changes
from meanfield.families.contrastive.sgd.training import Training
from meanfield.ingredients.laws.base import HiddenPart
from meanfield.numerics.compiled.scalar_functions import compile_loop
from meanfield.results.initial_state import seed_of
from meanfield.typing import FloatArray


class ContrastiveStepper(Stepper):
    """Replicas of a problem of one channel or several.

    Attributes
    ----------
    changes : Changes or None
        What schedules say; None where nothing changes in time.
    """

    def __init__(self, problem: Problem, training: Training, outputs: MeanOutputs, replicas: range) -> None:
        super().__init__(replicas)
        self._problem, self._training, self._outputs = problem, training, outputs
        self.changes: Changes | None = None
        self._key = stream_key(seed_of(problem))
        self._pull = linear_pull(problem)

    def enter_phase(self, number: int) -> None:
        """Draw from the streams of a phase, from its first step on."""
        self._key = stream_key(seed_of(self._problem), number)

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        if self.changes is None:
            return self.take(self._training, first, steps)
        last = first + steps
        while first < last and self.reached.max() >= first:
            number = first // AT_ONCE
            end = min(last, (number + 1) * AT_ONCE)
            places, in_time = self.changes.of_stretch(number)
            driven = self._training._replace(places=places, in_time=in_time, first=number * AT_ONCE)
            if self.changes.centred:
                self._take_one_by_one(driven, first, end)
            else:
                self.take(driven, first, end - first)
            first = end
        return None

    def _take_one_by_one(self, training: Training, first: int, end: int) -> None:
        """Take steps that have mean outputs of their own."""
        assert self.changes is not None
        for step in range(first, end):
            if self.reached.max() < step:
                return
            self._outputs = self.changes.outputs_at(step)
            self.take(training, step, 1)

    def laws_at(self, first: int, steps: int) -> tuple[HiddenPart, ...]:
        """Hidden laws of some steps."""
        return self._problem.hidden_laws if self.changes is None else self.changes.laws_at(first, steps)

    @abstractmethod
    def take(self, training: Training, first: int, steps: int) -> None:
        """Take steps `first`, `first` + 1, ..., of all replicas that are finite, with the numbers of a training."""

    @property
    @abstractmethod
    def prior_work(self) -> FloatArray:
        """r, shape (replicas,), or (replicas, d2) for several channels."""


def linear_pull(problem: Problem) -> float:
    """Linear force phi(w)/w with its strength; 0 for a phi that is not linear."""
    prior = problem.prior
    return prior.strength * float(prior.functions.unit_force(1.0)) if prior.functions.linear else 0.0


def force_loop(problem: Problem) -> int:
    """Address of the loop of phi of unit strength; 0 if phi is linear."""
    functions = problem.prior.functions
    return 0 if functions.linear else compile_loop(functions.unit_force)
