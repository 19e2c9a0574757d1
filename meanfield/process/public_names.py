"""Public names of a module, each imported when it is first used, because numba, scipy and xarray take seconds."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import FunctionType

from meanfield.process.floating_point import with_own_errstate
from meanfield.process.numba_settings import check_numba_settings


def public_names(module: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a module that has a type stub beside it.

    Parameters
    ----------
    module, file : str
        `__name__` and `__file__` of the module.
    """
    homes = homes_in_stub(file)
    return importer(module, homes), lambda: sorted(homes), sorted(homes)


def homes_in_stub(file: str) -> dict[str, str]:
    """Module that each public name is imported from, by the type stub beside a module.

    Parameters
    ----------
    file : str
        `__file__` of the module, whose stub says `from home import name as name`; a module is its own home, by
        `from . import name as name`.
    """
    tree = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or f".{alias.name}" for node in imports for alias in node.names if alias.asname}


def importer(module: str, homes: dict[str, str]) -> Callable[[str], object]:
    """Function that imports a public name of a module, for its `__getattr__`.

    Nothing is imported where the compiled loops that most names need cannot run, and functions run within
    `own_errstate`.

    Parameters
    ----------
    homes : dict
        From `homes_in_stub`.
    """

    def found(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module '{module}' has no attribute '{name}'", name=name, obj=sys.modules[module])
        check_numba_settings()
        if homes[name].startswith("."):
            return import_module(homes[name], module)
        value = getattr(import_module(homes[name]), name, None) or import_module(f"{homes[name]}.{name}")
        if isinstance(value, FunctionType):
            value = with_own_errstate(value, module)
        setattr(sys.modules[module], name, value)
        return value

    return found
