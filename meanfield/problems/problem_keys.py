"""Keys of a problem, such as `features[0].hidden.second_moment`, and the values under them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from meanfield.arguments import as_number, as_text, as_whole
from meanfield.errors import InputError
from meanfield.ingredients.nearest import nearest
from meanfield.ingredients.part import Part
from meanfield.problems.base import Problem, check_problem, parts_in, schedules_of
from meanfield.problems.file import P, validated
from meanfield.problems.phases import piece_at

_INDEX = re.compile(r"\[\d+\]")

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")

_SET_BY_PHASE = re.compile(r"phases\[(\d+)\]\.set\.(.+)")
"""Key of a value that a phase sets, which has the name of another key."""


def number_keys(problem: Problem) -> list[str]:
    """Keys of all numbers of a problem."""
    return list(_keys_in(problem, "", _is_number))


def settable_keys(problem: Problem) -> list[str]:
    """Keys of everything that can be set by itself: numbers, words, and optional values that the problem leaves out."""
    return list(_keys_in(problem, "", lambda value: value is None or isinstance(value, int | float | str)))


def without_numbers(key: str) -> str:
    """Key with [] for any number in brackets, as declarations name keys."""
    return _INDEX.sub("[]", key)


def value_of(problem: Problem, key: str) -> float:
    """Number under a key.

    Raises
    ------
    InputError
        If there is no such key, or it holds anything but one number.
    """
    found = held_by(problem, key)
    if not _is_number(found):
        raise InputError(f"'{key}' holds {_described(found)}, not one number; {nearest(key, number_keys(problem))}")
    return found  # type: ignore[no-any-return]


def with_value(problem: P, key: str, value: Any) -> P:
    """Copy of the problem, validated, with another value under one key; see `with_values`."""
    return with_values(problem, {key: value})


def with_values(problem: P, values: Mapping[str, Any], folder: Path | None = None) -> P:
    """Copy of the problem with other values under some keys, validated once all of them are in place.

    Parameters
    ----------
    problem : Problem
    values : mapping
        From keys, such as `prior.strength`, `model.activation` or `features[0].hidden`, to what a problem file may say
        there. Keys of tables that the problem leaves out begin such a table. A copy of a problem that was read from a
        result imports and opens as little as that one, also if the values name something.
    folder : Path, optional
        Where files and modules that the values name are looked for; by default the folder of the problem file.

    Raises
    ------
    InputError
        If there is no such key, or a value is not allowed there.
    """
    data: Any = problem
    for key, value in values.items():
        held_by(problem, key)  # refuses keys that there are not
        whole = isinstance(value, Integral) and not isinstance(value, bool)  # numpy's, too, which are no int
        data = _replaced(data, steps_of(key), int(value) if whole else value)
    if not values:
        return problem
    kept = [part for path, part in parts_in(problem) if not _asks_anew(part, path, values)]
    return validated(type(problem), data, folder or problem.folder, problem.trusted, kept)


def _asks_anew(part: Part, path: str, values: Mapping[str, Any]) -> bool:
    """Whether values set what a part names, so that it is looked up again."""
    keys = [f"{path}.{key}".removeprefix(".") for key in part.named_outside()]
    return any(key == value or key.startswith((f"{value}.", f"{value}[")) for key in keys for value in values)


def at_time(problem: P, time: float) -> P:
    """Problem with what its phases and schedules say at one time, which does not change any more.

    Parameters
    ----------
    problem : Problem
        Of any family.
    time : float
        Time t = k/N, at least 0.

    Returns
    -------
    Problem
        The problem itself, if nothing of it changes in time.

    Raises
    ------
    InputError
        If the time is negative or no number.
    """
    check_problem(problem)
    as_number(time, "time", "give a time t = k/N", least=0.0)
    problem = piece_at(problem, time).problem
    values = {key: each.value_at(float(time)) for key, each in schedules_of(problem).items()}
    return with_values(problem, values)


def check_range(
    problem: Problem,
    key: str,
    start: float,
    stop: float,
    points: int,
    parts: Sequence[str],
    what: str,
    at: Callable[[Problem, str, float], Problem] | None = None,
) -> None:
    """Refuse a range of a number over which no branches can be followed.

    Parameters
    ----------
    key : str
        What is varied.
    start, stop : float
        Ends of its range.
    points : int
        Along a branch.
    parts : sequence of str
        Parts of the problem that the branches depend on.
    what : str
        What the branches consist of, for the message.
    at : callable, optional
        Problem with a value of the number, if others change with it.

    Raises
    ------
    InputError
        If there is no such key, it holds no real number, nothing depends on it, or a value is not allowed.
    """
    value = value_of(problem, key)
    part = key.replace("[", ".").split(".")[0]
    if part not in parts or key.endswith(("initial_overlap", "initial_channel_overlap")):
        raise InputError(f"'{key}': {what} do not depend on it; vary a number of {', '.join(parts)}")
    if isinstance(value, int):
        raise InputError(f"'{key}' = {value} takes whole numbers only, and branches need one that varies continuously")
    for name, end in (("start", start), ("stop", stop)):
        as_number(end, name, f"give a number, one end of the range of '{key}'")
    if start == stop:
        raise InputError(f"'{key}' from {start:g} to {stop:g}: the ends of the range are equal; give two numbers")
    as_whole(points, "points", "give a whole number, at least 2 for the ends of the range", least=2)
    for end in (start, stop):
        (at or with_value)(problem, key, end)


def steps_of(key: str) -> list[str | int]:
    """Names and indices that a key goes through."""
    if set_by_phase := _SET_BY_PHASE.fullmatch(key):
        return ["phases", int(set_by_phase[1]), "set", set_by_phase[2]]
    return [int(index) if index else name for name, index in _STEP.findall(key)]


def held_by(problem: Problem, key: str) -> Any:
    """Value of the problem under a key, None for one that it leaves out.

    Raises
    ------
    InputError
        If there is no such key.
    """
    check_problem(problem)
    as_text(key, "key", "give a text, such as 'prior.strength' or 'features[0].hidden.second_moment'")
    steps = steps_of(key)
    spelt = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
    if spelt != key or not key:
        raise InputError(f"'{key}' is no key; write it like prior.strength or features[0].hidden.second_moment")
    found: Any = problem
    for step in steps:
        if found is None or (isinstance(found, dict) and step not in found):
            return None
        try:
            is_field = isinstance(found, Part) and step in type(found).model_fields
            found = getattr(found, str(step)) if is_field else found[step]
        except (KeyError, IndexError, TypeError):
            raise InputError(f"the problem has no key '{key}'; {nearest(key, settable_keys(problem))}") from None
    return found


def _described(found: Any) -> str:
    if found is None:
        return "nothing in this problem"
    return "a table" if isinstance(found, Part | dict) else "a list" if isinstance(found, tuple) else repr(found)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _keys_in(value: Any, path: str, chosen: Callable[[Any], bool]) -> Iterator[str]:
    if chosen(value):
        yield path
    elif isinstance(value, Part):
        for name in type(value).model_fields:
            yield from _keys_in(getattr(value, name), f"{path}.{name}" if path else name, chosen)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _keys_in(inner, f"{path}.{name}", chosen)
    elif isinstance(value, tuple):
        for index, inner in enumerate(value):
            yield from _keys_in(inner, f"{path}[{index}]", chosen)


def _fields(part: Part) -> dict[str, Any]:
    """Values under the keys of a part, without keys that are left out and have no default."""
    fields = {name: getattr(part, name) for name in type(part).model_fields}
    return {name: value for name, value in fields.items() if value is not None or name in part.model_fields_set}


def _set_as_a_whole(fields: dict[Any, Any], key: str | int) -> str | None:
    """Key of the table or list that a phase sets as a whole, of which another key is a part."""
    if not isinstance(key, str) or key in fields:
        return None
    return next((name for name in fields if key.startswith((f"{name}.", f"{name}["))), None)


def _replaced(held: Any, steps: list[str | int], value: Any) -> Any:
    """Copy of plain data with another value at the end of a path."""
    if not steps:
        return value
    first, rest = steps[0], steps[1:]
    if isinstance(held, tuple | list):
        return tuple(_replaced(inner, rest, value) if index == first else inner for index, inner in enumerate(held))
    fields: dict[Any, Any] = _fields(held) if isinstance(held, Part) else held or {}
    whole = _set_as_a_whole(fields, first)
    if whole:  # a part of what a phase sets
        first, rest = whole, [*steps_of(str(first)[len(whole) :].removeprefix(".")), *rest]
    return fields | {first: _replaced(fields.get(first), rest, value)}
