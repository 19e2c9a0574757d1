"""Steppers of SGD of update rules, one class for each kind of step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial

import numpy as np

from meanfield.ensembles.arrays import Array
from meanfield.ensembles.ensemble import MakeStepper
from meanfield.ensembles.phases import Phased
from meanfield.ensembles.stepper import Stepper
from meanfield.ensembles.streams import stream_key
from meanfield.families.update_rule.in_time import pieces_of_samples
from meanfield.families.update_rule.particles.chain import chain_steps
from meanfield.families.update_rule.particles.observables import Observables
from meanfield.families.update_rule.particles.plain import plain_steps
from meanfield.families.update_rule.particles.start import draw_vectors, initial_coordinates, order_parameters_of
from meanfield.families.update_rule.particles.steps import Steps, numbers_of_steps, steps_of
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.system import system_of
from meanfield.problems.base import schedules_of
from meanfield.problems.in_time import InTime
from meanfield.results.initial_state import seed_of
from meanfield.typing import FloatArray

STEPS_AT_ONCE = 1 << 16
"""Largest number of steps whose numbers are in memory where schedules change them."""


class Phase:
    """What all replicas share in a phase; functions of the rule are compiled.

    Parameters
    ----------
    problem : Problem
        Of the phase.
    number : int
        The phase from whose streams all numbers are drawn.
    """

    def __init__(self, problem: Problem, number: int) -> None:
        system = system_of(problem)
        self.problem, self.observables = problem, Observables(problem, system)
        self.steps = steps_of(problem, system, self.observables.means)
        self.in_time = InTime(problem)
        self.changes, self.key = bool(schedules_of(problem)), stream_key(seed_of(problem), number)


class RuleStepper(Stepper):
    """Replicas of which R, Q and side variables are kept.

    Parameters
    ----------
    phase : Phase
    replicas : range
    """

    def __init__(self, phase: Phase, replicas: range) -> None:
        super().__init__(replicas)
        self._phase, self._problem, self._key = phase, phase.problem, phase.key
        self._side = np.stack([order_parameters_of(phase.problem, replica)[2] for replica in replicas])

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        end = first + steps
        for step in range(first, end, STEPS_AT_ONCE if self._phase.changes else steps):
            if self.reached.max() < step:
                return
            last, taken = end, self._phase.steps
            if self._phase.changes:
                last = min(step + STEPS_AT_ONCE, end)
                taken = taken._replace(numbers=numbers_of_steps(self._problem, np.arange(step, last)), first=step)
            self.take(taken, step, last - step)

    @abstractmethod
    def take(self, steps: Steps, first: int, count: int) -> None:
        """Take steps `first`, `first` + 1, ... of all replicas that are finite."""

    @property
    @abstractmethod
    def overlaps(self) -> FloatArray:
        """R and Q side by side, shape (replicas, students, features + students)."""

    @property
    def rows(self) -> Mapping[str, FloatArray]:
        """See `Stepper.rows`."""
        M, overlaps = self._phase.steps.features, self.overlaps
        R, Q, time = overlaps[:, :, :M], overlaps[:, :, M:], self.reached.max() / self._problem.particles.dimension
        weighted = self.weighted
        measured = self._phase.observables.at(float(time), R, Q, self._side, weighted)
        found = {"R": R, "Q": Q, "v": self._side, "observables": measured}
        found |= {"r": self.work(float(time))}
        if weighted is not None:
            found |= {"R_noise": weighted[:, M:, :M], "Q_noise": weighted[:, M:, M:]}
        return {name: row for name, row in found.items() if row.size}

    @property
    def weighted(self) -> FloatArray | None:
        """Gram matrices weighted with the variances of the noise, (replicas, vectors, vectors); None if these are 1."""
        return None

    def work(self, time: float) -> FloatArray:
        """Mean of w phi(w) of a single student; of several there is none."""
        return np.empty(0)


class Plain(RuleStepper):
    """Replica with its vectors (see `meanfield.families.update_rule.particles.plain`)."""

    kept = ("_W", "_back", "_overlaps", "_side")

    def __init__(self, phase: Phase, replicas: range) -> None:
        super().__init__(phase, replicas)
        (self._replica,) = replicas
        U, W = draw_vectors(self._problem, self._replica)
        self._U, self._W = np.ascontiguousarray(U.T), np.ascontiguousarray(W.T)
        self._back = np.eye(len(self._W))
        self._overlaps = np.hstack([W.T @ U, W.T @ W]) / len(U)

    def take(self, steps: Steps, first: int, count: int) -> None:
        """See `RuleStepper.take`."""
        self.reached[0] = plain_steps(
            steps, self._key, self._replica, first, count, self._U, self._W, self._back, self._overlaps, self._side[0]
        )

    @property
    def overlaps(self) -> FloatArray:
        """See `RuleStepper.overlaps`."""
        return self._overlaps[None]

    @property
    def weighted(self) -> FloatArray | None:
        """See `RuleStepper.weighted`."""
        deviations = self._phase.steps.deviations
        if not deviations.size:
            return None
        Z = np.vstack([self._U, self._back @ self._W]) * deviations
        return (Z @ Z.T / len(deviations))[None]

    def work(self, time: float) -> FloatArray:
        """See `RuleStepper.work`."""
        if len(self._W) > 1:
            return np.empty(0)
        w = (self._back @ self._W)[0]
        return np.array([(w @ self._phase.in_time(time).prior.force(w)) / len(w)])

    @property
    def snapshot(self) -> Mapping[str, Array]:
        """See `Stepper.snapshot`."""
        deviations = self._phase.steps.deviations
        found = {"weights": (self._back @ self._W).T, "U": self._U.T, "rho_of_coordinate": deviations**2}
        return {name: values[None] for name, values in found.items() if values.size}


class Chain(RuleStepper):
    """Replicas by their overlaps alone (see `meanfield.families.update_rule.particles.chain`)."""

    kept = ("_X", "_side")

    def __init__(self, phase: Phase, replicas: range) -> None:
        super().__init__(phase, replicas)
        self._X = np.stack([initial_coordinates(self._problem, replica) for replica in replicas])

    def take(self, steps: Steps, first: int, count: int) -> None:
        """See `RuleStepper.take`."""
        chain_steps(steps, self._key, self.replicas.start, first, count, self._X, self._side, self.reached)

    @property
    def overlaps(self) -> FloatArray:
        """See `RuleStepper.overlaps`."""
        X = self._X
        return np.concatenate([X[:, :, : self._phase.steps.features], X @ X.swapaxes(1, 2)], axis=2)


STEPPERS: dict[str, type[Plain] | type[Chain]] = {"plain": Plain, "chain": Chain}
"""Classes of steppers by their names in problem files."""


def prepare_steppers(problem: Problem, method: str) -> MakeStepper:
    """Function that makes steppers by one of `STEPPERS`, of all pieces of a run, with compiled functions."""
    pieces = pieces_of_samples(problem)
    makers = [partial(STEPPERS[method], Phase(piece.problem, number)) for number, piece in enumerate(pieces)]
    if len(makers) == 1:
        return makers[0]
    return partial(Phased, makers, [round(piece.stop * problem.particles.dimension) for piece in pieces])
