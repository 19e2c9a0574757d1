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

Share = Callable[[int], float]
"""From a step to a dt, the share of the way to the weights that averages go after it."""

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
    make : callable
        From a range of replicas to their stepper, which has what `WithWeights` says. It is advanced step by step.
    replicas : range
    """

    def __init__(self, share: Share, make: MakeStepper, replicas: range) -> None:
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


def averaging(share: Share | None, make: MakeStepper) -> MakeStepper:
    """Function that makes steppers with averages, or without where there is no share."""
    return make if share is None else partial(Averaged, share, make)


def share_of(rate: float | None, N: int) -> Share | None:
    """Share of steps of the time 1/N, at the rate of a problem that may have none."""
    if rate is None:
        return None
    share = rate / N
    return lambda _: share


def share_by_step(rate: float | None, clock: Clock) -> Share | None:
    """Share of steps that take as much time as their learning rate is."""
    return None if rate is None else lambda step: rate * clock.length_of(step)


def average_in_words(rate: float | None, share: str = "a eta ") -> str:
    """What `explain` says of averages."""
    return "" if rate is None else f"; beside it an average of the weights, w' <- w' + {share}(w - w'), a = {rate:g}"


def check_average(rate: float | None, N: int, key: str) -> None:
    """Refuse a rate at which averages would go past the weights in one step.

    Parameters
    ----------
    rate : float or None
    N : int
    key : str
        Of the rate.

    Raises
    ------
    InputError
    """
    _check_share(rate, N, key, f"particles.dimension = {N}", "raise particles.dimension")


def check_average_by_step(problem: Any) -> None:
    """The same of a `ClockedProblem`, whose steps take the time `training.learning_rate`."""
    per_time, key = problem.steps_per_time, "training.learning_rate"
    longest = f"steps of {key} = {1.0 / per_time:g}"
    _check_share(problem.training.average_rate, per_time, "training.average_rate", longest, f"lower {key}")


def _check_share(rate: float | None, per_time: float, key: str, step: str, remedy: str) -> None:
    if rate is not None and rate > per_time:
        raise InputError(
            f"{key} = {rate:g} with {step}: a step moves the average by the share {rate / per_time:.3g} of its "
            f"distance to the weights, which is at most 1; lower the rate to {per_time:.15g} or less, or {remedy}"
        )
