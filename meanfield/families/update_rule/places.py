"""Where functions of a problem find what they read by name: in a row of numbers of a sample, or among constants."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.numerics.compiled.row_functions import Argument

if TYPE_CHECKING:
    from meanfield.families.update_rule.kinds import Kind
    from meanfield.families.update_rule.problem import Problem

FEATURES = "u"
"""What `along` and `move` call the features."""


def squeezed(*shape: int) -> tuple[int, ...]:
    """Shape without dims of one: a name of one vector stands for a number."""
    return tuple(size for size in shape if size > 1)


class Places(NamedTuple):
    """Where functions find what they read by name.

    Parameters
    ----------
    names : dict of str to Argument
    width, constants : int
        Numbers of columns of a row, and of constants.
    numbers : dict of str to float
        Values of parameters that follow no schedule.
    """

    names: dict[str, Argument]
    width: int
    constants: int
    numbers: dict[str, float]


def fields_of(problem: Problem) -> dict[str, int]:
    """Names of the fields of vectors, and how many there are of each."""
    return {"y" if name == FEATURES else name: len(each) for name, each in problem.vectors.items() if len(each)}


def names_of_mean(problem: Problem, kind: Kind, view: int | None) -> dict[str, Argument]:
    """Places of what a function may read that is averaged: no averages, and fields of its view without a number."""
    names = _own_places(problem, kind.single).names
    return names | {name: names[f"{name}{view + 1}"] for name in fields_of(problem) if view is not None}


def places_of(problem: Problem, kind: Kind) -> Places:
    """Places of all names that functions of a kind of sample may read; averages of all kinds are behind each other."""
    own = _own_places(problem, kind)
    names, first = dict(own.names), own.constants
    for other in problem.kinds:
        for name, mean in zip(other.mean_names, other.means, strict=True):
            if other.what == kind.what:
                names[name] = Argument(first, mean.shape, constant=True)
            first += math.prod(mean.shape)
    return own._replace(names=names, constants=first)


def _own_places(problem: Problem, kind: Kind) -> Places:
    """Places of names, but for averages."""
    M, K, m = len(problem.features), len(problem.students), kind.samples
    names: dict[str, Argument] = {}
    if len(kind.along):
        names["c"] = Argument(0, squeezed(m, len(kind.along)))
    names |= {name: Argument(variable) for name, variable in kind.others.items()}
    first = kind.variables
    for name in (*problem.data.normals, *problem.data.coins):
        names[name] = Argument(first, squeezed(m))
        first += m
    for view in range(kind.views):
        place = first
        for field, count in fields_of(problem).items():
            apart = M + K if m > 1 else 0
            names[f"{field}{view + 1 if kind.views > 1 else ''}"] = Argument(place, squeezed(m, count), apart=apart)
            place += count
        first += m * (M + K)
    width, first = first, 0
    for name in ("t", *problem.model.rule_parameters, *problem.side):
        names[name] = Argument(first, (), constant=True)
        first += 1
    if M:
        names["R"] = Argument(first, squeezed(K, M), constant=True)
    names["Q"] = Argument(first + K * M, squeezed(K, K), constant=True)
    given = problem.model.rule_parameters
    numbers = {name: float(value) for name, value in given.items() if not isinstance(value, Schedule)}
    return Places(names, width, first + K * (M + K), numbers)
