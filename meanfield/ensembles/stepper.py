"""Stepper: replicas of SGD that an ensemble can advance, read, save and restore; a family implements it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from meanfield.ensembles.arrays import Array, State
from meanfield.problems.clock import Clock
from meanfield.problems.in_time import InTime
from meanfield.typing import FloatArray, IntArray


class Stepper(ABC):
    """Interface of some replicas of one problem; a family has a class for each way to take a step.

    The numbers of a replica depend on the problem and the number of the replica alone: not on those that are advanced
    with it, nor on how the steps are cut into calls.

    Parameters
    ----------
    replicas : range
        Their numbers.

    Notes
    -----
    `kept` names the attributes that make up the state: arrays, or lists of NumPy's generators. `reached`, shape
    (replicas,), has the step after which each replica was still finite; `advance` sets it, and it is saved in any case.
    """

    kept: ClassVar[tuple[str, ...]] = ()

    def __init__(self, replicas: range) -> None:
        self.replicas = replicas
        self.reached: IntArray = np.zeros(len(replicas), dtype=np.int64)

    @abstractmethod
    def advance(self, first: int, steps: int) -> None:
        """Take steps `first`, `first` + 1, ..., of all replicas that are finite."""

    @property
    @abstractmethod
    def rows(self) -> Mapping[str, FloatArray]:
        """Results that are kept at output times, by name: arrays of shape (replicas, ...)."""

    @property
    def snapshot(self) -> Mapping[str, Array]:
        """Results that are kept at snapshots, by name: arrays of shape (replicas, ...)."""
        return {}

    def marks(self, rows: Mapping[str, FloatArray]) -> Mapping[str, IntArray]:
        """Whole numbers that are kept of each replica at its end, shape (replicas,); -1 for none.

        Parameters
        ----------
        rows : mapping of str to ndarray, shape (replicas, outputs, ...)
            The rows at all output times; NaN where a replica was no longer finite.
        """
        return {}

    @property
    def state(self) -> State:
        """State from which `restore` and `reached` go on with the same numbers."""
        return {name: _as_array(name, getattr(self, name)) for name in self.kept}

    def restore(self, state: State) -> None:
        """Restore a saved state."""
        for name in self.kept:
            value = getattr(self, name)
            if isinstance(value, list):
                for rng, saved in zip(value, json.loads(str(state[name])), strict=True):
                    rng.bit_generator.state = saved
            else:
                setattr(self, name, state[name])


class PythonStepper(Stepper):
    """Replicas whose step is a Python function, such as one of NumPy."""

    @abstractmethod
    def step(self, k: int) -> None:
        """Take step k of all replicas."""

    @property
    def finite(self) -> NDArray[np.bool_]:
        """Whether each replica is finite, shape (replicas,): by default, whether its rows are."""
        flat = [np.reshape(row, (len(self.replicas), -1)) for row in self.rows.values()]
        return np.asarray(np.isfinite(np.concatenate(flat, axis=1)).all(axis=1))

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # a blow-up is seen by its results
            for k in range(first, first + steps):
                self.step(k)
                self.reached[(self.reached == k) & self.finite] = k + 1
                if self.reached.max() <= k:
                    return


class ClockedStepper(PythonStepper):
    """Replicas of a `ClockedProblem`; `problem` has the numbers of the time of a step, or of an output."""

    def __init__(self, problem: Any, replicas: range, clock: Clock | None = None) -> None:
        super().__init__(replicas)
        self.problem, self._in_time, self._clock = problem, InTime(problem), clock or Clock(problem)
        times = problem.time.outputs_at
        self._outputs = dict(zip(self._clock.steps_at(times).tolist(), times.tolist(), strict=True))

    def _enter(self, problem: Any) -> None:
        """Go on with a problem."""
        self.problem = problem

    def _look_at_step(self, k: int) -> None:
        """Take the numbers of the time of a step."""
        if self._in_time.moves:
            self._enter(self._in_time(self._clock.time_of(k)))

    def rows_in_time(self, steps: IntArray, parts: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """Rows of replicas that are in given states after some steps.

        Parameters
        ----------
        steps : ndarray of int, shape (T,)
        parts : mapping of str to ndarray, shape (replicas, T, ...)
            Attributes that are set.

        Returns
        -------
        dict of str to ndarray, shape (replicas, T, ...)
        """
        found = []
        for at, step in enumerate(steps.tolist()):
            self.reached[:] = step
            for name, values in parts.items():
                setattr(self, name, np.ascontiguousarray(values[:, at]))
            found.append({name: np.array(row) for name, row in self.rows.items()})
        return {name: np.stack([rows[name] for rows in found], axis=1) for name in found[0]}

    def _look_at_output(self) -> None:
        """Take the numbers of the output time that was reached."""
        if self._in_time.moves:
            step = int(self.reached.max())
            self._enter(self._in_time(self._outputs.get(step, self._clock.time_of(step))))


def replica_generator(seed: int, replica: int, stream: int = 0) -> Generator:
    """NumPy's generator number `stream` of a replica; those of all replicas and streams are independent."""
    return Generator(PCG64(SeedSequence(seed, spawn_key=(replica, stream))))


def _as_array(name: str, value: Any) -> Array:
    if isinstance(value, list):
        return np.array(json.dumps([rng.bit_generator.state for rng in value]))
    if not isinstance(value, np.ndarray):
        raise TypeError(f"the state '{name}' of a stepper is {type(value)}; make it an array, or a list of generators")
    return value
