"""Equations along a run: stretches of time in which all that changes does so smoothly."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import State, System, observables
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.mckean_vlasov.drive import Drive, drive_of, fill_numbers, piece_of, steady_drive
from meanfield.numerics.compiled.separate_calls import call
from meanfield.problems.base import schedules_of
from meanfield.problems.phases import Piece, pieces_of
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray

NUMBERS = 5
"""Length of `System.training`."""


class Leg(NamedTuple):
    """Equations from one jump or bend of a schedule, or the start of a phase, to the next.

    Parameters
    ----------
    start, stop : float
        The last stop is infinite.
    system : System
        Its `training` is that of the time at which it was last asked for.
    drive : Drive
        `training` in time.
    """

    start: float
    stop: float
    system: System
    drive: Drive


Driven = list[tuple[Piece[Problem], Drive]]
"""Stretches of time with one problem each, and its training in time."""


def driven(problem: Problem) -> Driven:
    """Stretches of a problem."""
    return [(piece, _drive_of(piece.problem)) for piece in pieces_of(problem)]


def _drive_of(problem: Problem) -> Drive:
    schedules, training, stop = schedules_of(problem).values(), problem.training, problem.time.stop
    if not schedules:
        return steady_drive(stop, NUMBERS)
    return drive_of(training.limits_at, np.array([time for each in schedules for time in each.corners]), stop)


def legs_of(stretches: Driven, make: Callable[[Problem], System]) -> list[Leg]:
    """Legs of a problem, with the equations that `make` makes for the problem of each stretch."""
    legs: list[Leg] = []
    for (start, stop, problem), drive in stretches:
        system = make(problem)
        ends = [start, *(time for time in drive.inner_corners if start < time < stop), stop]
        legs += [Leg(low, high, system, drive) for low, high in itertools.pairwise(ends)]
    legs[-1] = legs[-1]._replace(stop=np.inf)
    return legs


def numbers_at(legs: Sequence[Leg], times: FloatArray) -> IntArray:
    """Number of the leg at each time; at the end of one the next."""
    return np.searchsorted([leg.start for leg in legs], times, side="right") - 1


def observed(legs: Sequence[Leg], times: FloatArray, state: State) -> dict[str, FloatArray]:
    """Variables of a result along a path; at the end of a leg those of the next."""
    leg_at = numbers_at(legs, times)
    systems = [leg.system for leg in legs]
    if all(system is systems[0] for system in systems):
        return observables(systems[0], state)
    parts = [observables(system, State(*(part[leg_at == k] for part in state))) for k, system in enumerate(systems)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def errors_along(legs: Sequence[Leg], times: FloatArray, states: FloatArray) -> FloatArray:
    """Generalisation errors along a path of packed states; NaN where it was not reached."""
    errors, waste, leg_at = np.full(len(times), np.nan), np.empty(states.shape[1]), numbers_at(legs, times)
    for i in np.flatnonzero(np.isfinite(states).all(axis=1)):
        errors[i] = rates(np.ascontiguousarray(states[i]), legs[leg_at[i]].system, waste)
    return errors


def steadily(system: System) -> list[Leg]:
    """The one leg of equations that do not change."""
    return [Leg(0.0, np.inf, system, steady_drive(1.0, NUMBERS))]


def train_at(leg: Leg, time: float) -> None:
    """Give the equations of a leg the training of a time."""
    if leg.drive.moves:
        set_training(leg.drive, leg.start, time, leg.drive.room, leg.system)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def set_training(drive, start, time, numbers, system):  # type: ignore[no-untyped-def]
    """Give equations the training of a time in the leg from `start` on; `numbers` has room for it and its slopes."""
    low, high = piece_of(drive, start)
    call(fill_numbers, drive, time, low, high, numbers)
    for i in range(system.training.size):
        system.training[i] = numbers[i]
