"""Points of a sweep: the problem of each, and a name for it that depends on nothing but the values of keys."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from pydantic import ValidationError

from meanfield.errors import InputError
from meanfield.problems.base import Problem
from meanfield.problems.messages import MOST_LINES, keys_at_fault
from meanfield.problems.problem_keys import value_of, with_values
from meanfield.sweep.definition import Sweep, is_within


@dataclass(frozen=True)
class Point:
    """Point of a sweep: one problem.

    Parameters
    ----------
    index : tuple of int
        Position of the point along each axis.
    values : dict
        Values of the keys at the point.
    name : str
        A hash of `values`, whatever the order of the keys: the name of its file.
    problem : Problem or None
        None where the values make no problem.
    fault : str
        Why they do not.
    """

    index: tuple[int, ...]
    values: dict[str, Any]
    name: str
    problem: Problem | None
    fault: str = ""


def points_of(sweep: Sweep) -> list[Point]:
    """All points, the last axis fastest.

    Raises
    ------
    InputError
        If a value is one that its key never takes, or none of the points is a problem.
    """
    settings = [list(enumerate(axis.settings(sweep.problem))) for axis in sweep.axes]
    found = []
    for combination in product(*settings):
        index = tuple(i for i, _ in combination)
        found.append(_point(sweep, index, {key: v for _, values in combination for key, v in values.items()}))
    _check_values(sweep, [point for point in found if point.problem is None])
    if all(point.problem is None for point in found):
        raise InputError(f"axes: none of the {len(found)} points is a problem; the first: {found[0].fault}")
    return found


def _point(sweep: Sweep, index: tuple[int, ...], values: dict[str, Any]) -> Point:
    name = name_of(values)
    try:
        problem = with_values(sweep.problem, values, sweep.problem_folder)
        seed = problem.seed_key
        if seed is not None and seed not in values:
            problem = with_values(problem, {seed: seed_of(int(value_of(problem, seed)), name)})
    except InputError as error:
        return Point(index, values, name, None, str(error))
    return Point(index, values, name, problem)


def _check_values(sweep: Sweep, failed: list[Point]) -> None:
    """Refuse values of the wrong type or out of range; others make no problem with some values of other keys only."""
    faults = []
    for number, axis in enumerate(sweep.axes):
        settings = axis.settings(sweep.problem)
        for i in sorted({point.index[number] for point in failed}):
            fault = _fault_of(sweep, settings[i])
            faults += [f"axes[{number}].{axis.way}[{i}]: {fault}"] if fault else []
    if faults:
        more = [f"and {len(faults) - MOST_LINES} faults more"] if len(faults) > MOST_LINES else []
        raise InputError("\n".join(faults[:MOST_LINES] + more))


def _fault_of(sweep: Sweep, values: dict[str, Any]) -> str:
    """Fault of values of keys by themselves, whatever other keys hold; empty if they are right."""
    try:
        with_values(sweep.problem, values, sweep.problem_folder)
    except InputError as error:
        if isinstance(error.__cause__, ValidationError):
            wrong = keys_at_fault(error.__cause__, type(sweep.problem))
            if any(key == place or is_within(place, key) for key in values for place in wrong):
                return str(error)
    return ""


def name_of(values: Mapping[str, Any]) -> str:
    """Name of a point: a hash of the values of the keys, in which 1 and 1.0 are the same."""
    text = json.dumps({key: _canonical(value) for key, value in values.items()}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]  # with 96 bits names do not collide


def _canonical(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _canonical(inner) for key, inner in value.items()}
    return [_canonical(inner) for inner in value] if isinstance(value, list | tuple) else value


def seed_of(root: int, name: str) -> int:
    """Seed of a point: independent of those of others, and the same in every sweep that holds the point."""
    (word,) = np.random.SeedSequence([root, int(name, 16)]).generate_state(1, np.uint64)
    return int(word >> np.uint64(1))  # TOML has signed integers
