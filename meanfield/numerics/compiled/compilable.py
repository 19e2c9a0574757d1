"""Functions as people write them, in a form that numba compiles: with what they call, and of one argument."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from inspect import isfunction, signature
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType
from typing import Any

from meanfield.numerics.compiled.code_objects import closed_over, names_in
from meanfield.process import own_numba as numba


def compilable(function: Any, instead: Mapping[Any, Any] | None = None) -> Any:
    """The same function of one number, where functions that it calls are compiled, too.

    One that is compiled already is taken as it was written, and other arguments than the first keep their defaults.
    What is no function is returned as it is.

    Parameters
    ----------
    function : object
    instead : mapping, optional
        What it takes in place of modules and builtin functions.
    """
    plain = getattr(function, "py_func", function)
    if not isfunction(plain):
        return function
    plain = _Changed(instead or {}).of(plain, ())
    if not any(argument.default is not argument.empty for argument in signature(plain).parameters.values()):
        return plain
    whole: Any = numba.njit(plain)
    return lambda x: whole(x)


class _Changed:
    """Functions that name other things than they were written with."""

    def __init__(self, instead: Mapping[Any, Any]) -> None:
        self._instead = instead

    def of(self, function: FunctionType, callers: tuple[FunctionType, ...]) -> FunctionType:
        """The changed function; functions that call each other in a circle stay as they are."""
        inside = (*callers, function)
        known = {name: function.__globals__.get(name, vars(builtins).get(name)) for name in names_in(function.__code__)}
        changed, inner = self._others(known, inside), self._others(closed_over(function), inside)
        if not changed and not inner:
            return function
        code, names = function.__code__, function.__globals__ | changed
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        closure = tuple(CellType(inner[name]) if name in inner else cell for name, cell in cells) or None
        made = FunctionType(code, names, function.__name__, function.__defaults__, closure)
        made.__kwdefaults__ = function.__kwdefaults__
        return made

    def _others(self, named: Mapping[str, Any], inside: tuple[FunctionType, ...]) -> dict[str, Any]:
        """What stands for the things with some names, where it is something else."""
        return {name: found for name, value in named.items() if (found := self._thing(value, inside)) is not value}

    def _thing(self, value: Any, inside: tuple[FunctionType, ...]) -> Any:
        """What stands for what a function names."""
        if isinstance(value, ModuleType | BuiltinFunctionType):
            return self._instead.get(value, value)
        if not isfunction(value) or value in inside:
            return value
        return numba.njit(self.of(value, inside))
