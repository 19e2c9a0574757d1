"""Trial calls of a rule in plain Python: what its functions return, and whether it follows from their arguments alone.

Compiled code checks neither the shapes of arrays nor indices, so that a wrong one would read numbers from elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from traceback import extract_tb
from typing import Any

import numpy as np

from meanfield.errors import InputError
from meanfield.families.update_rule.draws import Draw, Program
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.system import system_of
from meanfield.numerics.compiled.row_functions import Argument, Bound
from meanfield.problems.in_time import InTime
from meanfield.problems.phases import pieces_of
from meanfield.typing import FloatArray

SCALES = np.geomspace(0.1, 5.0, 50)
"""Standard deviations within which the rows of trial calls are."""

ABOUT_ARRAYS = "a name of one vector is a number, a name of several an array over them, which is not to be changed"
"""Remedy where a function may take a number for an array, or change one."""


def check_functions(problem: Problem) -> None:
    """Refuse functions that fail, return something else than they should, are random, or keep what they saw.

    Raises
    ------
    InputError
        With the function, the place and the remedy.
    """
    in_time = InTime(problem)
    for piece in pieces_of(problem):
        here = in_time(piece.start)
        system = system_of(here)
        R, Q, v = here.initial_R, here.initial_Q, here.initial_v
        constants, G = system.constants(here, piece.start, R, Q, v), system.gram(R, Q)
        first = len(constants) - sum(each.program.outputs for each in system.means)
        for draw, program in system.means:
            found = _check(program, _rows(draw, G), constants, draw)
            constants[first : first + program.outputs] = found.mean(axis=0)
            first += program.outputs
        for draw in system.draws:
            rows = _rows(draw, G)
            measured = [each.program for each in system.observables.values() if each.draw is draw]
            for program in (draw.update, *measured):
                _check(program, rows, constants, draw)


def _rows(draw: Draw, G: FloatArray) -> FloatArray:
    """Rows of a draw, closer to its means and further away than samples are, shape (scales, width)."""
    rng = np.random.default_rng(0)
    laws = draw.laws(G)
    component = rng.integers(len(laws.probability), size=len(SCALES))
    size, along = np.linalg.eigh(laws.covariance)
    z = SCALES[:, None] * rng.uniform(-1.0, 1.0, (len(SCALES), draw.width))
    factor = along * np.sqrt(np.maximum(size, 0.0))[:, None, :]
    return np.asarray(laws.mean[component] + np.einsum("ijk,ik->ij", factor[component], z))


def _check(program: Program, rows: FloatArray, constants: FloatArray, draw: Draw) -> FloatArray:
    """Values of a program, shape (rows, outputs)."""
    names, values = {place: name for name, place in draw.names.items()}, []
    for what, bound in program.functions:
        plain = getattr(bound.function, "py_func", bound.function)
        given = [[_value(place, row, constants) for place in bound.arguments] for row in rows]
        try:
            first = [_returned(plain, each, bound) for each in given]
            again = [_returned(plain, each, bound) for each in reversed(given)][::-1]  # a memory sees others before
        except _FaultError as fault:
            raise InputError(f"{what}: {fault} at {_place(names, bound, fault.given)}; {fault.remedy}") from fault
        for one, other, each in zip(first, again, given, strict=True):
            if not np.array_equal(one, other):
                raise InputError(
                    f"{what}: returns {_text(one)}, and {_text(other)} when it is called again, at "
                    f"{_place(names, bound, each)}; let it follow from its arguments alone: what is random in a sample "
                    "is a name in data.normals or data.coins, what is kept a side variable"
                )
        size = math.prod(bound.shape)
        values.append([np.broadcast_to(value.ravel(), size) for value in first])
    return np.concatenate(values, axis=1)


class _FaultError(Exception):
    """What a function does wrong, with its arguments and the remedy."""

    def __init__(self, reason: str, given: list[Any], remedy: str) -> None:
        super().__init__(reason)
        self.given, self.remedy = given, remedy


def _returned(function: Callable[..., Any], given: list[Any], bound: Bound) -> FloatArray:
    """Value of a function, a real number or numbers of the shape that it should have."""
    try:
        with np.errstate(all="ignore"):
            found = function(*given)
            value = np.asarray(found)
    except Exception as error:  # whatever a user's function raises
        lines = [
            frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == function.__code__.co_filename
        ]
        place = f", in line {lines[-1]}" if lines else ""
        remedy = ABOUT_ARRAYS if isinstance(error, IndexError | TypeError | ValueError) else "correct it"
        raise _FaultError(f"raises {type(error).__name__} ({error}{place})", given, remedy) from error
    wanted = f"return an array of shape {bound.shape}" if bound.shape else "return a number"
    if value.dtype.kind not in "biuf":
        is_complex = value.dtype.kind == "c"
        raise _FaultError(
            "returns complex numbers" if is_complex else f"returns {type(found).__name__}", given, f"{wanted}, real"
        )
    if value.shape != bound.shape and (value.shape or len(bound.shape) > 1):
        raise _FaultError(
            f"returns an array of shape {value.shape}" if value.shape else "returns a number", given, wanted
        )
    if not np.isfinite(value).all():
        raise _FaultError(f"returns {_text(value)}", given, "let it be finite everywhere")
    return value


def _value(place: Argument, row: FloatArray, constants: FloatArray) -> Any:
    """Argument of a function, an array if it has several numbers; writing into one raises an error."""
    numbers = (constants if place.constant else row)[list(place.columns)]
    if not place.shape:
        return float(numbers[0])
    numbers.flags.writeable = False
    return numbers.reshape(place.shape)


def _place(names: dict[Argument, str], bound: Bound, given: list[Any]) -> str:
    listed = (f"{names[place]} = {_text(value)}" for place, value in zip(bound.arguments, given, strict=True))
    return ", ".join(listed) or "no argument"


def _text(value: Any) -> str:
    numbers = np.asarray(value, dtype=float)
    return (
        f"{float(numbers):.4g}"
        if not numbers.shape
        else np.array2string(numbers, precision=4, separator=", ").replace("\n", "")
    )
