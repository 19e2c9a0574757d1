"""Functions as people write them, in a form that numba compiles: with what they call, and of one argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import isfunction, signature
from types import CellType, CodeType, FunctionType
from typing import Any

import numba


def compilable(function: Any) -> Any:
    """The same function of one number, where functions that it calls are compiled, too.

    One that is compiled already is taken as it was written, and other arguments than the first keep their defaults.
    What is no function is returned as it is.
    """
    plain = getattr(function, "py_func", function)
    if not isfunction(plain):
        return function
    plain = _with_helpers(plain, ())
    if not any(argument.default is not argument.empty for argument in signature(plain).parameters.values()):
        return plain
    whole: Any = numba.njit(plain)
    return lambda x: whole(x)


def _with_helpers(function: FunctionType, callers: tuple[FunctionType, ...]) -> FunctionType:
    """The same function, which calls compiled ones; functions that call each other in a circle stay as they are."""

    def compiled(value: Any) -> Any:
        if not isfunction(value) or value in inside:
            return value
        return numba.njit(_with_helpers(value, inside))

    inside = (*callers, function)
    known = {name: function.__globals__.get(name) for name in _names(function.__code__)}
    changed = {name: found for name, value in known.items() if (found := compiled(value)) is not value}
    cells = tuple(_cell_with(compiled, cell) for cell in function.__closure__ or ())
    if not changed and cells == (function.__closure__ or ()):
        return function
    code, names = function.__code__, function.__globals__ | changed
    made = FunctionType(code, names, function.__name__, function.__defaults__, cells or None)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _cell_with(compiled: Callable[[Any], Any], cell: CellType) -> CellType:
    """A variable of the functions around a function, compiled where it is a function itself."""
    try:
        found = compiled(cell.cell_contents)
    except ValueError:  # nothing was assigned to it
        return cell
    return cell if found is cell.cell_contents else CellType(found)


def _names(code: CodeType) -> Iterator[str]:
    """Names of globals in a function and in those within it."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)
