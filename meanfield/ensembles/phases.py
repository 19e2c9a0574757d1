"""Stepper of several phases: that of each phase goes on with the state of the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from meanfield.ensembles.arrays import Array, State
from meanfield.ensembles.ensemble import MakeStepper
from meanfield.ensembles.stepper import Stepper
from meanfield.typing import FloatArray, IntArray

NUMBER = "phase"
"""Name of the number of the phase in a state."""


class Phased(Stepper):
    """Replicas whose steps are others in each phase.

    Parameters
    ----------
    makers : sequence of callable
        From a range of replicas to their stepper, for each phase. All keep states with the same names. From the second
        one on their random numbers must be none of those that a phase before has drawn.
    ends : sequence of int
        Number of the step after the last one of each phase.
    replicas : range
    """

    def __init__(self, makers: Sequence[MakeStepper], ends: Sequence[int], replicas: range) -> None:
        self._makers, self._ends, self._number = makers, ends, 0
        self._current = makers[0](replicas)
        super().__init__(replicas)

    @property
    def reached(self) -> IntArray:  # type: ignore[override]
        """See `Stepper`."""
        return self._current.reached

    @reached.setter
    def reached(self, value: IntArray) -> None:
        self._current.reached = value

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        last = first + steps
        for number in range(self._number, len(self._makers)):
            is_last = number + 1 == len(self._makers)
            end = last if is_last else min(last, self._ends[number])
            if end > first:
                self._current.advance(first, end - first)
            first = end
            if is_last or end < self._ends[number]:
                return
            self._enter(number + 1, self._current.state)

    def _enter(self, number: int, state: State) -> None:
        """Go on with the stepper of a phase from a state."""
        reached = self.reached
        self._number, self._current = number, self._makers[number](self.replicas)
        self._current.restore(state)
        self.reached = reached

    @property
    def rows(self) -> Mapping[str, FloatArray]:
        """See `Stepper.rows`; at the end of a phase those of the next one."""
        return self._current.rows

    @property
    def snapshot(self) -> Mapping[str, Array]:
        """See `Stepper.snapshot`."""
        return self._current.snapshot

    def marks(self, rows: Mapping[str, FloatArray]) -> Mapping[str, IntArray]:
        """See `Stepper.marks`."""
        return self._current.marks(rows)

    @property
    def state(self) -> State:
        """See `Stepper.state`."""
        return {NUMBER: np.array(self._number), **self._current.state}

    def restore(self, state: State) -> None:
        """See `Stepper.restore`."""
        self._enter(int(state[NUMBER]), {name: value for name, value in state.items() if name != NUMBER})
