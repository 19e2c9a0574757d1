"""Functions by name: those of the library, with parameters, or those of a user by "package.module:name".

Problems hold copies of them, which no later change reaches.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import lru_cache
from pathlib import Path
from traceback import extract_tb
from types import CellType, FunctionType, MappingProxyType, ModuleType
from typing import Any, Protocol, TypeVar

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from meanfield.ingredients.fingerprints import fingerprint
from meanfield.ingredients.function_checks import check_function, check_slope
from meanfield.ingredients.module_sources import import_current
from meanfield.ingredients.nearest import nearest
from meanfield.ingredients.user_modules import homes_of, is_followed, is_users
from meanfield.numerics.compiled.code_objects import closed_over, globals_in, names_in
from meanfield.numerics.compiled.differences import difference
from meanfield.numerics.compiled.scalar_functions import ScalarFunction

T = TypeVar("T")


class WithSlope(Protocol):
    """A function of one number with its derivative and its kinks, such as an activation."""

    @property
    def value(self) -> ScalarFunction:
        """The function."""

    @property
    def derivative(self) -> ScalarFunction | None:
        """Derivative of the function, as it was given."""

    @property
    def slope(self) -> ScalarFunction:
        """Derivative of the function, given or by differences."""

    @property
    def kinks(self) -> tuple[float, ...]:
        """Numbers at which the derivative jumps."""


F = TypeVar("F", bound=WithSlope)


def is_address(name: str) -> bool:
    """Whether a name is the address "package.module:name" of a user's object."""
    return ":" in name


def build(table: Mapping[str, T | Callable[..., T]], name: str, parameters: Mapping[str, float]) -> T:
    """Function of the library by name; one that takes parameters is made with them.

    Raises
    ------
    ValueError
        If the name or a parameter is unknown, or a parameter's value is not allowed.
    """
    if name not in table:
        raise ValueError(f"unknown name '{name}'; {nearest(name, list(table))} (your own is 'package.module:name')")
    entry = table[name]
    known = list(inspect.signature(entry).parameters) if inspect.isfunction(entry) else []
    for key in parameters:
        if key not in known:
            hint = nearest(key, known) if known else "it takes none"
            raise ValueError(f"'{name}' has no parameter '{key}'; {hint}")
    return _built(entry, tuple(sorted(parameters.items()))) if inspect.isfunction(entry) else entry  # type: ignore[return-value]


@lru_cache(maxsize=256)
def _built(factory: Callable[..., Any], parameters: tuple[tuple[str, float], ...]) -> Any:
    """Function of the library with parameters: one object, which is compiled once."""
    return factory(**dict(parameters))


_lent: ContextVar[Mapping[str, Any]] = ContextVar("lent", default=MappingProxyType({}))


@contextmanager
def lent(objects: Mapping[str, Any]) -> Iterator[None]:
    """Context in which these objects stand at their addresses, for processes that cannot import them."""
    token = _lent.set(objects)
    try:
        yield
    finally:
        _lent.reset(token)


def address_of(content: Any) -> str:
    """Address "package.module:name" of an object of a user, by the variable of its module that holds it.

    Raises
    ------
    ValueError
        If no module holds it.
    """
    parts = [content] if inspect.isfunction(content) else vars(content).values()
    modules = {str(getattr(part, "__module__", "__main__")): None for part in parts} | {"__main__": None}
    for module in modules:
        for name, value in list(vars(sys.modules[module]).items()) if module in sys.modules else ():
            if value is content:
                return f"{module}:{name}"
    raise ValueError(
        f"{getattr(content, '__qualname__', type(content).__name__)} stands under no name in a module, so that results "
        "could not say what it is; give it a name at the top level of its module, script or notebook"
    )


def load_object(address: str, folder: Path | None = None) -> Any:
    """Object at the address "package.module:name", from the Python path, the working directory or `folder`.

    Raises
    ------
    ValueError
        If there is none.
    """
    if address in _lent.get():
        return _lent.get()[address]
    module_name, _, name = address.partition(":")
    try:
        module = import_current(module_name, folder)
    except Exception as error:  # whatever a user's module raises
        missing = isinstance(error, ModuleNotFoundError) and module_name.startswith(error.name or module_name)
        remedy = "put it on the Python path, beside the problem file or into the working directory"
        raise ValueError(
            f"'{address}': module '{module_name}' cannot be imported ({type(error).__name__}: {error}"
            f"{_place_in(module_name, error)}); " + (remedy if missing or not module_name else "correct it")
        ) from error
    if not hasattr(module, name):
        public = [word for word in vars(module) if not word.startswith("_")]
        raise ValueError(f"'{address}': module '{module_name}' has no '{name}'; {nearest(name, public)}")
    return getattr(module, name)


def _place_in(module: str, error: Exception) -> str:
    """Line of a module in which an exception was raised."""
    name = module.rpartition(".")[2]
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if Path(frame.filename).stem == name]
    return f", in line {lines[-1]}" if lines else ""


def load_own(address: str, parameters: Mapping[str, float], folder: Path | None) -> Any:
    """Object of a user, or with parameters the return value of the user's function.

    Raises
    ------
    ValueError
        If there is none, it takes other parameters, or raises an exception.
    """
    found = load_object(address, folder)
    if not parameters:
        return found
    if not inspect.isfunction(found):
        raise ValueError(f"'{address}' is {type(found).__name__} and takes no parameters; remove them")
    known = list(inspect.signature(found).parameters)
    for key in parameters:
        if key not in known:
            raise ValueError(f"'{address}' has no parameter '{key}'; {nearest(key, known)}")
    try:
        return found(**parameters)
    except Exception as error:  # whatever a user's function raises
        raise ValueError(f"'{address}' with {dict(parameters)}: {type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class _Marked:
    """Something that stands for all with the same fingerprint."""

    sha256: str
    content: Any = field(compare=False)


def make_own(
    kind: Callable[..., T],
    name: str,
    parameters: Mapping[str, float],
    folder: Path | None,
    check: Callable[[T, str], T],
) -> T:
    """Functions of a user as they are now: checked, and compiled once until they, or what they name, change.

    Parameters
    ----------
    kind : type
        What is made of a function alone.
    name, parameters, folder
        See `meanfield.ingredients.activations.make_activation`.
    check : callable
        Takes the functions and their name, raises a ValueError at what will not do, and returns them, completed.

    Raises
    ------
    ValueError
        If there is none of that name, or the check fails.
    """
    found = load_own(name, parameters, folder)
    made = found if isinstance(kind, type) and isinstance(found, kind) else kind(found)
    return _checked(name, check, _Marked(fingerprint(made), made))  # type: ignore[no-any-return]


@lru_cache(maxsize=256)
def _checked(name: str, check: Callable[[Any, str], Any], made: _Marked) -> Any:
    return check(snapshot(made.content), name)


def check_with_slope(made: F, name: str, least: float = -math.inf) -> F:
    """Function with its derivative; one that does not compile, or has another one than it says, is refused.

    Parameters
    ----------
    name : str
        How messages call it.
    least : float
        Number below which the function is never asked for a value.

    Raises
    ------
    ValueError
    """
    check_function(made.value, f"'{name}'", least=least)
    remedy = "correct the derivative, or name the point among the kinks"
    if made.derivative is None:
        remedy = f"give one by meanfield.{type(made).__name__}(value, derivative, kinks), or name the kink"
        try:
            made = replace(made, derivative=difference(made.value, made.kinks, least))  # type: ignore[type-var]
        except ValueError as error:
            raise ValueError(f"the derivative of '{name}': {error}; {remedy}") from error
    else:
        check_function(made.derivative, f"the derivative of '{name}'", made.kinks, least)
    check_slope(made.value, made.slope, made.kinks, f"the derivative of '{name}'", remedy, least)
    return made


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
