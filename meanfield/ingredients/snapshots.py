"""Copies of functions, and of dataclasses of functions, which no later change of their modules reaches."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from types import CellType, FunctionType, ModuleType
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from meanfield.ingredients.user_modules import homes_of, is_followed, is_users
from meanfield.numerics.compiled.code_objects import closed_over, globals_in, names_in

T = TypeVar("T")


def snapshot(found: T) -> T:
    """Copy of a function, or of a dataclass of functions, with copies of all functions, constants and arrays it names.

    What packages hold is named as before; so are objects of other classes, and functions that numba has compiled for
    the types of arguments that their author wrote down.
    """
    return _Snapshot(homes_of(found)).of(found)  # type: ignore[no-any-return]


class _Snapshot:
    """Copies of one snapshot: functions that call each other stay together."""

    def __init__(self, homes: frozenset[str]) -> None:
        self._homes = homes
        self._copies: dict[int, Any] = {}
        self._kept: list[Any] = []
        self._globals: dict[int, dict[str, Any]] = {}

    def of(self, value: Any, attributes: frozenset[str] = frozenset()) -> Any:
        """The copy of a value; of a module, as far as functions take these attributes of it."""
        if isinstance(value, ModuleType):
            return self._module(value, attributes) if is_users(value.__name__) else value
        if id(value) in self._copies:
            return self._copies[id(value)]
        self._kept.append(value)  # or its identity could become that of another
        if isinstance(value, FunctionType):
            return self._function(value) if is_followed(value, self._homes) else value
        if type(value) is tuple:
            return tuple(self.of(part, attributes) for part in value)
        if type(value) is np.ndarray:
            return self._copies.setdefault(id(value), value.copy())
        if is_dataclass(value) and not isinstance(value, type):
            return self._dataclass(value)
        if isinstance(value, Dispatcher) and is_followed(value, self._homes) and getattr(value, "_can_compile", True):
            options = {name: option for name, option in value.targetoptions.items() if option is not None}
            return self._copies.setdefault(id(value), numba.jit(**options)(self.of(value.py_func)))
        return value

    def _dataclass(self, value: Any) -> Any:
        """Copy of a dataclass; what it has computed is left behind."""
        copy = object.__new__(type(value))
        for part in fields(value):
            object.__setattr__(copy, part.name, self.of(getattr(value, part.name)))
        return copy

    def _function(self, function: FunctionType) -> FunctionType:
        """Copy of a function, whose globals are those that it names; functions of one module share theirs."""
        if id(function.__globals__) not in self._globals:
            own = {name: value for name, value in function.__globals__.items() if name.startswith("__")}
            self._globals[id(function.__globals__)] = own
        names = self._globals[id(function.__globals__)]
        cells = tuple(CellType() for _ in function.__closure__ or ())
        copy = FunctionType(function.__code__, names, function.__name__, closure=cells or None)
        self._copies[id(function)] = copy
        copy.__qualname__, copy.__module__, copy.__doc__ = function.__qualname__, function.__module__, function.__doc__
        copy.__dict__.update(function.__dict__)
        attributes = frozenset(names_in(function.__code__))
        copy.__defaults__ = self.of(function.__defaults__)
        copy.__kwdefaults__ = function.__kwdefaults__ and {k: self.of(v) for k, v in function.__kwdefaults__.items()}
        new = dict(zip(function.__code__.co_freevars, cells, strict=True))
        for name, value in closed_over(function).items():
            new[name].cell_contents = self.of(value, attributes)
        for name in globals_in(function.__code__) & set(function.__globals__):
            names[name] = self.of(function.__globals__[name], attributes)
        return copy

    def _module(self, module: ModuleType, attributes: frozenset[str]) -> ModuleType:
        """Copy of a module that has what functions take of it."""
        copy = self._copies.setdefault(id(module), ModuleType(module.__name__))
        for name in attributes - set(vars(copy)):
            if hasattr(module, name):
                setattr(copy, name, None)  # a module may name itself
                setattr(copy, name, self.of(getattr(module, name), attributes))
        return copy  # type: ignore[no-any-return]
