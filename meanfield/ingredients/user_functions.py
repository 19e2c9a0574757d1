"""Functions that a problem file names: one of ours with parameters, or a user's own by "package.module:name"."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numba.core.errors import NumbaError
from scipy.differentiate import derivative as numerical_derivative

from meanfield.ingredients.nearest import nearest
from meanfield.numerics.compiled.scalar_functions import ScalarFunction, compile_scalar, evaluate

T = TypeVar("T")

SAME_SLOPE = 1e-6
"""Largest difference of a derivative from the numerical one, relative to 1 plus its size."""


def is_address(name: str) -> bool:
    """Whether a name stands for a user's own object."""
    return ":" in name


def build(table: Mapping[str, T | Callable[..., T]], name: str, parameters: Mapping[str, float]) -> T:
    """One of our own entries; one that takes parameters is a function of them.

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
    return entry(**parameters) if inspect.isfunction(entry) else entry  # type: ignore[return-value]


def load_object(address: str, folder: Path | None = None) -> Any:
    """The object that "package.module:name" names, from the Python path, the working directory or `folder`.

    Raises
    ------
    ValueError
        If there is none.
    """
    module_name, _, name = address.partition(":")
    top = module_name.partition(".")[0]
    if folder is not None:
        folder = folder.resolve()
        _forget_other(top, folder)
    with _on_path([Path.cwd(), *([folder] if folder else [])]):
        try:
            module = importlib.import_module(module_name)
        except Exception as error:  # whatever a user's module raises
            missing = isinstance(error, ModuleNotFoundError) and module_name.startswith(error.name or module_name)
            remedy = "put it on the Python path, beside the problem file or into the working directory"
            raise ValueError(
                f"'{address}': module '{module_name}' cannot be imported ({type(error).__name__}: {error}); "
                + (remedy if missing or not module_name else "correct it")
            ) from error
    if not hasattr(module, name):
        public = [word for word in vars(module) if not word.startswith("_")]
        raise ValueError(f"'{address}': module '{module_name}' has no '{name}'; {nearest(name, public)}")
    origin = getattr(sys.modules[top], "__file__", None)
    if origin is not None and Path(origin).parent in (folder, Path.cwd()):
        _BESIDE[top] = Path(origin).parent
    return getattr(module, name)


_BESIDE: dict[str, Path] = {}
"""Folders of problem files from which modules were imported, by module."""


def _forget_other(module: str, folder: Path) -> None:
    """Make room for a module beside the problem file where one of that name came from beside another."""
    known = _BESIDE.get(module, folder)
    if known != folder and ((folder / f"{module}.py").exists() or (folder / module).is_dir()):
        for name in [name for name in sys.modules if name.partition(".")[0] == module]:
            del sys.modules[name]
        importlib.invalidate_caches()


def load_own(address: str, parameters: Mapping[str, float], folder: Path | None) -> Any:
    """A user's object, or with parameters what the user's function of them returns.

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


@contextmanager
def _on_path(folders: Iterable[Path]) -> Iterator[None]:
    """Search `folders` last while importing."""
    before = list(sys.path)
    sys.path += [str(folder) for folder in folders]
    try:
        yield
    finally:
        sys.path[:] = before


_NO_REASONS = ("Failed in nopython mode", "During: ", "File ", "[1m", "\x1b")
"""How lines of numba's messages begin that say where, not why."""


def check_compiles(function: Any, what: str, remedy: str = "use arithmetic and functions of math or numpy") -> None:
    """Refuse what numba cannot compile as a function of one float.

    Raises
    ------
    ValueError
    """
    if not inspect.isfunction(function):
        raise ValueError(f"{what} is {type(function).__name__}, not a Python function of one number")
    try:
        compile_scalar(function)
    except (NumbaError, TypeError, NotImplementedError) as error:
        lines = [line.strip() for line in str(error).splitlines()]
        reason = next((line for line in lines if line and not line.startswith(_NO_REASONS)), "unsupported")
        raise ValueError(f"{what} cannot be compiled as a function of one number ({reason}); {remedy}") from error


def check_slope(
    function: ScalarFunction, slope: ScalarFunction, kinks: tuple[float, ...], what: str, remedy: str
) -> None:
    """Refuse a derivative that differs from the numerical one anywhere between -6 and 6, kinks apart.

    Raises
    ------
    ValueError
    """
    points = np.linspace(-6.0, 6.0, 61) + 0.0123
    away = np.array([min((abs(x - kink) for kink in kinks), default=np.inf) for x in points])
    points = points[away > 0.06]
    numerical: Any = numerical_derivative(partial(evaluate, function), points, initial_step=0.05, order=8)
    given = evaluate(slope, points)
    with np.errstate(invalid="ignore"):
        wrong = ~(np.abs(given - numerical.df) <= SAME_SLOPE * (1 + np.abs(numerical.df)) + 10 * numerical.error)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{what} is {given[at]:.9g} at {points[at]:.4g}, where the numerical derivative is {numerical.df[at]:.9g}; "
            f"{remedy}"
        )
