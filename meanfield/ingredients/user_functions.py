"""Functions by name: those of the library, with parameters, or those of a user by "package.module:name".

Problems hold copies of them, which no later change reaches.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from traceback import extract_tb
from typing import Any, Generic, TypeVar

from meanfield.arguments import as_numbers
from meanfield.ingredients.fingerprints import fingerprint
from meanfield.ingredients.function_checks import check_function, check_slope
from meanfield.ingredients.module_sources import import_current
from meanfield.ingredients.nearest import nearest
from meanfield.ingredients.objects import given_at
from meanfield.ingredients.snapshots import snapshot
from meanfield.numerics.compiled.differences import difference
from meanfield.numerics.compiled.scalar_functions import ScalarFunction

T = TypeVar("T")


@dataclass(frozen=True)
class WithSlope:
    """A function of one number with its derivative and its kinks, such as an activation.

    Parameters
    ----------
    value : callable
    derivative : callable, optional
        Without it differences are taken, for which the function must be smooth between kinks.
    kinks : tuple of float
        Numbers at which the function or its derivative jumps.
    """

    value: ScalarFunction
    derivative: ScalarFunction | None = None
    kinks: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinks", as_numbers(self.kinks, "kinks", "give a list of numbers, such as [0.0]"))

    @cached_property
    def slope(self) -> ScalarFunction:
        """Derivative of the function, given or by differences."""
        return difference(self.value, self.kinks) if self.derivative is None else self.derivative


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


def load_object(address: str, folder: Path | None = None) -> Any:
    """Object at the address "package.module:name", from the Python path, the working directory or `folder`.

    Raises
    ------
    ValueError
        If there is none.
    """
    if (given := given_at(address)) is not None:
        return given.content
    module_name, _, name = address.partition(":")
    try:
        module = import_current(module_name, folder)
    except (Exception, SystemExit) as error:  # whatever a user's module raises
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


def _place_in(module: str, error: BaseException) -> str:
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
        See `Catalogue`.
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


@dataclass(frozen=True)
class Catalogue(Generic[T]):
    """Functions that a problem file may name; a call finds them.

    Parameters
    ----------
    table : mapping of str to object
        Functions of the library; those that take parameters are functions of them.
    kind : type
        What is made of a user's function alone.
    check : callable
        See `make_own`.
    """

    table: Mapping[str, T | Callable[..., T]]
    kind: Callable[..., T]
    check: Callable[[T, str], T]

    def __call__(self, name: str, parameters: tuple[tuple[str, float], ...] = (), folder: Path | None = None) -> T:
        """Functions with a name.

        Parameters
        ----------
        name : str
            A key of the table, or "package.module:name" of a user's function, of an object of the kind, or, with
            parameters, of a function that takes them and returns one of these.
        parameters : tuple of (str, float)
        folder : Path, optional
            Where to look for the module besides the Python path and the working directory.

        Raises
        ------
        ValueError
            If there is none of that name, or a user's own does not compile or is not what it says.
        """
        if is_address(name):
            return make_own(self.kind, name, dict(parameters), folder, self.check)
        return build(self.table, name, dict(parameters))


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
            made = replace(made, derivative=difference(made.value, made.kinks, least))
        except ValueError as error:
            raise ValueError(f"the derivative of '{name}': {error}; {remedy}") from error
    else:
        check_function(made.derivative, f"the derivative of '{name}'", made.kinks, least)
    check_slope(made.value, made.slope, made.kinks, f"the derivative of '{name}'", remedy, least)
    return made
