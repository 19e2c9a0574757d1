"""Phases: stretches of one run in which keys of its problem have other values, such as another law of the data.

A method sees them as `pieces_of` a problem, each a stretch of time with a problem without phases. What trains goes on
from one to the next, and integrators stop there. Times, of schedules too, are those of the whole run.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, TypeVar

import numpy as np
from pydantic import AfterValidator, Field

from meanfield.errors import InputError
from meanfield.ingredients.objects import with_texts
from meanfield.ingredients.part import FieldError, NamedValues, Part, with_unchecked
from meanfield.ingredients.schedules.sampling import is_function, schedule_of
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from meanfield.problems.base import Problem

P = TypeVar("P", bound="Problem")

_INDEX = re.compile(r"\[\d+\]")


class Phase(Part):
    """Stretch of a run, from the end of the one before."""

    stop: float = Field(gt=0, le=1e12, description="last time t of the phase; of the last phase time.stop")
    set: Annotated[dict[str, Any], AfterValidator(NamedValues)] = Field(
        default=NamedValues(),
        description="keys that change and their values from then on, such as "
        '{ "model.learning_rate" = 0.01, "prior.strength" = 0.5 }',
    )


class Piece(NamedTuple, Generic[P]):
    """Stretch of time with one problem, which has no phases.

    Parameters
    ----------
    start, stop : float
    problem : Problem
        Its times and schedules are those of the whole run.
    """

    start: float
    stop: float
    problem: P


def pieces_of(problem: P) -> tuple[Piece[P], ...]:
    """Phases of a problem with the problem of each; the problem itself where it has none."""
    if problem.phases is None:
        return (Piece(0.0, float(getattr(getattr(problem, "time", None), "stop", np.inf)), problem),)
    pieces: tuple[Piece[P], ...] = problem.__dict__["_pieces"]
    return pieces


def piece_at(problem: P, time: float) -> Piece[P]:
    """Phase at a time: at the end of one the next, as a schedule has its new value where it jumps."""
    pieces = pieces_of(problem)
    return next((piece for piece in pieces if time < piece.stop), pieces[-1])


def phase_numbers(problem: Problem, times: FloatArray) -> IntArray:
    """Number of the phase at each time, from 0."""
    return np.searchsorted([piece.stop for piece in pieces_of(problem)[:-1]], times, side="right")


def checked_pieces(problem: P) -> tuple[Piece[P], ...]:
    """Phases with the problem of each, every one of them validated.

    Raises
    ------
    FieldError
        If they do not follow each other to the end of the run, or change what cannot change.
    """
    from meanfield.problems.problem_keys import with_values  # which knows problems

    assert problem.phases is not None
    _check_stops([phase.stop for phase in problem.phases], problem.time.stop)  # type: ignore[attr-defined]
    try:
        current = with_values(problem, {"phases": None})
    except InputError:
        return ()  # what is wrong with it is said without its phases
    start, pieces = 0.0, []
    for number, phase in enumerate(problem.phases):
        try:
            _check_keys(current, phase.set)
            current = with_values(current, phase.set)
        except InputError as error:
            raise ValueError(f"phases[{number}].set: {error}") from error
        pieces.append(Piece(start, phase.stop, current))
        start = phase.stop
    return tuple(pieces)


def as_files_say(phases: tuple[Phase, ...], pieces: tuple[Piece[P], ...]) -> tuple[Phase, ...]:
    """Phases with what a file would say of functions of t and of other objects of Python."""
    from meanfield.problems.problem_keys import held_by  # which knows problems

    def said(value: Any, held: Any) -> Any:
        if is_function(value) and isinstance(held, Schedule):
            return schedule_of(value)
        return with_texts(held if isinstance(held, str) else value)

    return tuple(
        with_unchecked(
            phase, set=NamedValues({key: said(value, held_by(piece.problem, key)) for key, value in phase.set.items()})
        )
        for phase, piece in zip(phases, pieces, strict=False)  # there are no pieces where something else is wrong
    )


def _check_stops(stops: list[float], last: float) -> None:
    if not stops:
        raise FieldError("phases", "is empty; add [[phases]] tables, or remove the key")
    for number, (before, after) in enumerate(itertools.pairwise([0.0, *stops])):
        if not after > before:
            raise ValueError(
                f"phases[{number}].stop: {after:g} is no later than the phase before, which ends at {before:g}; let "
                "stops increase"
            )
    if stops[-1] != last:
        raise ValueError(
            f"phases[{len(stops) - 1}].stop: the last phase ends at {stops[-1]:g}, and the run at time.stop = "
            f"{last:g}; make them equal"
        )


def _check_keys(problem: Problem, given: Mapping[str, Any]) -> None:
    """Refuse keys that there are not, that set one another, or that decide what a run keeps, such as N or its start."""
    from meanfield.problems.problem_keys import held_by  # which knows problems

    for key, value in given.items():
        held_by(problem, key)
        place = _INDEX.sub("[]", key)
        if any(place == known or place.startswith((f"{known}.", f"{known}[")) for known in problem.in_phases):
            continue
        meant = [f"{key}.{name}" for name in value] if isinstance(value, dict) else []
        if any(name in problem.in_phases for name in meant):
            raise InputError(f"'{key}' cannot be set as a whole; write a key in quotes, \"{meant[0]}\" = ...")
        raise InputError(
            f"'{key}' stays the same in all phases, because a run goes on with what it began with; what may "
            f"change: {', '.join(problem.in_phases) or 'nothing of this family'}"
        )
    for key, other in itertools.permutations(given, 2):
        if other.startswith((f"{key}.", f"{key}[")):
            raise InputError(f"'{key}' sets '{other}' as well; set either")
