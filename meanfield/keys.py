"""Numbers of a problem by the key under which messages name them, such as `features[0].hidden.second_moment`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from meanfield.base import NamedNumbers, Part, nearest
from meanfield.errors import InputError
from meanfield.problem import Problem
from meanfield.problem_file import problem_from

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def number_keys(problem: Problem) -> list[str]:
    """Keys of all numbers that the problem has."""
    return list(_keys_in(problem, ""))


def value_of(problem: Problem, key: str) -> float:
    """The number under a key.

    Raises
    ------
    InputError
        If there is no such key, or it holds anything but one number.
    """
    return _find(problem, key)  # type: ignore[no-any-return]


def with_value(problem: Problem, key: str, value: float) -> Problem:
    """A copy of the problem, validated, in which one number is another.

    Parameters
    ----------
    problem : Problem
    key : str
        Such as `prior.strength` or `features[0].hidden.second_moment`.
    value : float

    Raises
    ------
    InputError
        If there is no such key, it holds anything but one number, or the value is not allowed there.
    """
    before = _find(problem, key)
    given = int(value) if isinstance(before, int) and float(value).is_integer() else value
    steps = _steps(key)
    changed = problem_from(_replaced(problem, steps, given))
    _keep_functions(problem, changed, steps)
    return changed


def check_range(
    problem: Problem, key: str, start: float, stop: float, points: int, parts: Sequence[str], what: str
) -> None:
    """Refuse ranges of a number over which no branches can be followed.

    Parameters
    ----------
    problem : Problem
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

    Raises
    ------
    InputError
        If there is no such key, it holds no real number, nothing depends on it, or a value is not allowed.
    """
    value = value_of(problem, key)
    part = key.replace("[", ".").split(".")[0]
    if part not in parts or key.endswith("initial_overlap"):
        raise InputError(f"'{key}': {what} do not depend on it; vary a number of {', '.join(parts)}")
    if isinstance(value, int):
        raise InputError(f"'{key}' = {value} takes whole numbers only, and branches need one that varies continuously")
    if start == stop:
        raise InputError(f"'{key}' from {start:g} to {stop:g}: the ends of the range are equal; give two numbers")
    if points < 2:
        raise InputError(f"points = {points}: give at least 2, the ends of the range")
    for end in (start, stop):
        with_value(problem, key, end)


def _steps(key: str) -> list[str | int]:
    return [int(index) if index else name for name, index in _STEP.findall(key)]


def _find(problem: Problem, key: str) -> Any:
    """The number under a key, of the type that it has."""
    steps = _steps(key)
    spelt = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
    if spelt != key:
        raise InputError(f"'{key}' is no key; write it like prior.strength or features[0].hidden.second_moment")
    found: Any = problem
    for step in steps:
        try:
            found = getattr(found, str(step)) if _has_field(found, step) else found[step]
        except (KeyError, IndexError, TypeError):
            raise InputError(f"the problem has no number '{key}'; {nearest(key, number_keys(problem))}") from None
    if not _is_number(found):
        raise InputError(f"'{key}' holds {_described(found)}, not one number; {nearest(key, number_keys(problem))}")
    return found


def _described(found: Any) -> str:
    if found is None:
        return "nothing in this problem"
    return "a table" if isinstance(found, Part | dict) else "a list" if isinstance(found, tuple) else repr(found)


def _has_field(part: Any, step: str | int) -> bool:
    return isinstance(part, Part) and step in type(part).model_fields


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _keys_in(value: Any, path: str) -> Iterator[str]:
    if _is_number(value):
        yield path
    elif isinstance(value, Part):
        for name in type(value).model_fields:
            yield from _keys_in(getattr(value, name), f"{path}.{name}" if path else name)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _keys_in(inner, f"{path}.{name}")
    elif isinstance(value, tuple):
        for index, inner in enumerate(value):
            yield from _keys_in(inner, f"{path}[{index}]")


def _replaced(value: Any, steps: list[str | int], number: float) -> Any:
    """Plain data on the way to the number, and everything else as it is."""
    if not steps:
        return number
    first, rest = steps[0], steps[1:]
    if isinstance(value, Part):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        return fields | {first: _replaced(fields[str(first)], rest, number)}
    if isinstance(value, dict):
        return dict(value) | {first: _replaced(value[first], rest, number)}
    return tuple(_replaced(inner, rest, number) if index == first else inner for index, inner in enumerate(value))


def _keep_functions(before: Any, after: Any, steps: list[str | int]) -> None:
    """Hand on the functions of a user that were found beside the problem file; see `NamesFunctions`."""
    for step in steps:
        if isinstance(before, Part):
            after.__dict__.update({"_found": before.__dict__["_found"]} if "_found" in before.__dict__ else {})
            before, after = getattr(before, str(step)), getattr(after, str(step))
        elif not isinstance(before, NamedNumbers):
            before, after = before[step], after[step]
