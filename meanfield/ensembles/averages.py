"""Averages of weights beside SGD, exponential moving averages of its iterates, for the steppers of any family.

After each step, which takes the time dt, an average moves toward the weights at the rate a,

    w' <- w' + a dt (w - w'),

from w' = w at t = 0. Nothing that trains sees it, so that all other numbers keep their bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol, cast

import numpy as np

from meanfield.ensembles.arrays import Array, State
from meanfield.ensembles.ensemble import MakeStepper
from meanfield.ensembles.stepper import Stepper
from meanfield.errors import InputError
from meanfield.problems.clock import Clock
from meanfield.typing import FloatArray, IntArray

AVERAGE = "average"
"""Name of the averages in a state."""


class WithWeights(Protocol):
    """Stepper whose weights can be averaged."""

    @property
    def trained(self) -> FloatArray:
        """Weights of all replicas, shape (replicas, ...)."""

    def rows_of_average(self, average: FloatArray) -> Mapping[str, FloatArray]:
        """Results of averages, which have the shape of `trained`, by name: arrays of shape (replicas, ...)."""


class Averaged(Stepper):
    """Replicas with averages of their weights.

    Parameters
    ----------
    share : callable
        From a step to a dt, the share of the way to the weights that averages go after it.
    make : callable
        From a range of replicas to their stepper, which has what `WithWeights` says. It is advanced step by step.
    replicas : range
    """

    def __init__(self, share: Callable[[int], float], make: MakeStepper, replicas: range) -> None:
        self._share, self._stepper = share, make(replicas)
        super().__init__(replicas)
        self._average = np.array(self._weights.trained)

    @property
    def _weights(self) -> WithWeights:
        return cast(WithWeights, self._stepper)

    @property
    def reached(self) -> IntArray:  # type: ignore[override]
        """See `Stepper`."""
        return self._stepper.reached

    @reached.setter
    def reached(self, value: IntArray) -> None:
        self._stepper.reached = value

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        for step in range(first, first + steps):
            self._stepper.advance(step, 1)
            if self.reached.max() <= step:
                return
            with np.errstate(over="ignore", invalid="ignore"):  # of replicas that blew up
                self._average += self._share(step) * (self._weights.trained - self._average)

    @property
    def rows(self) -> Mapping[str, FloatArray]:
        """See `Stepper.rows`; those of averages have names of their own."""
        return {**self._stepper.rows, **self._weights.rows_of_average(self._average)}

    @property
    def snapshot(self) -> Mapping[str, Array]:
        """See `Stepper.snapshot`."""
        return self._stepper.snapshot

    def marks(self, rows: Mapping[str, FloatArray]) -> Mapping[str, IntArray]:
        """See `Stepper.marks`."""
        return self._stepper.marks(rows)

    @property
    def state(self) -> State:
        """See `Stepper.state`."""
        return {AVERAGE: self._average, **self._stepper.state}

    def restore(self, state: State) -> None:
        """See `Stepper.restore`."""
        self._average = np.array(state[AVERAGE])
        self._stepper.restore({name: value for name, value in state.items() if name != AVERAGE})


def averaging(rate: float | None, clock: Clock | int, make: MakeStepper) -> MakeStepper:
    """Function that makes steppers with averages at a rate, or without where there is none.

    Steps are those of a clock, or a number of them takes a unit of time.
    """
    if rate is None:
        return make
    if isinstance(clock, Clock):
        return partial(Averaged, lambda step: rate * clock.length_of(step), make)
    return partial(Averaged, lambda _: rate / clock, make)


def clocked(problem: Any, make: Callable[..., Stepper]) -> MakeStepper:
    """Function that makes steppers of a problem whose steps take as much time as its learning rate is."""
    clock = Clock(problem)
    return averaging(problem.training.average_rate, clock, partial(make, problem, clock=clock))


def average_in_words(rate: float | None) -> str:
    """What `explain` says of averages."""
    return "" if rate is None else f"; beside it an average w' of the weights, dw'/dt = a (w - w'), a = {rate:g}"


def check_rates(
    training: Any, steps_per_time: float, remedy: str = "lower training.learning_rate", table: str = "training"
) -> None:
    """Refuse rates at which averages would go past the weights in one step, or a step would undo the one before.

    Parameters
    ----------
    training : Part
        With `average_rate` and `momentum_rate`.
    steps_per_time : float
    remedy : str
        What makes steps shorter.
    table : str
        Its key.

    Raises
    ------
    InputError
    """
    of_average = "each moves the average by the share {:.3g} of its distance to the weights"
    of_velocity = "each takes the share {:.3g} of the velocity away"
    for key, does in (("average_rate", of_average), ("momentum_rate", of_velocity)):
        rate = getattr(training, key)
        if rate is not None and rate > steps_per_time:
            raise InputError(
                f"{table}.{key} = {rate:g} with {steps_per_time:.15g} steps in a unit of time: "
                f"{does.format(rate / steps_per_time)}, and a share is at most 1; lower the rate to "
                f"{steps_per_time:.15g} or less, or {remedy}"
            )
