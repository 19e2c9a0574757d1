"""Modules of users, which may change while a process runs, and modules of packages, for which their versions stand."""

from __future__ import annotations

import sys
from dataclasses import is_dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_OWN = __name__.partition(".")[0]

_OF_PACKAGES = {"site-packages", "dist-packages"}
"""Folders that installers fill."""


def is_users(module: str, file: str | None = None) -> bool:
    """Whether a module is neither of Python, nor of this package, nor of one that an installer put into its folder.

    One that nobody knows is a user's: it was forgotten, or made by a program.

    Parameters
    ----------
    module : str
        Its name.
    file : str, optional
        Where it stands, if it is not imported yet.
    """
    top = module.partition(".")[0]
    if top == "__main__":
        return True
    if top in sys.stdlib_module_names or top == _OWN:
        return False
    file = file or getattr(sys.modules.get(module, sys.modules.get(top)), "__file__", None)
    return file is None or not _OF_PACKAGES.intersection(Path(file).parts)


def homes_of(found: Any) -> frozenset[str]:
    """Modules of an object, and of the functions that it holds, unless they are of this package.

    A function that is asked for counts with all of its module, also where that belongs to a package: its version may be
    unknown, or stay while somebody works on it.
    """
    held = [found, *(vars(found).values() if is_dataclass(found) else ())]
    modules = {str(getattr(each, "__module__", "")) for each in held if callable(each)}
    return frozenset(module for module in modules if module.partition(".")[0] not in (_OWN, *sys.stdlib_module_names))


def is_followed(found: Any, homes: frozenset[str]) -> bool:
    """Whether a function or class counts with all that it names: it is a user's, or stands in one of `homes`.

    Fingerprints and copies follow the same ones: what has another fingerprint after a change is what was copied before.
    """
    module = str(found.__module__)
    return module in homes or is_users(module)


def version_of(module: str) -> dict[str, str]:
    """Name and version of the package that has a module; nothing for modules of Python, of this package and of users.

    What the imported package says comes first: after an upgrade its files are newer than what a process runs.
    """
    top = module.partition(".")[0]
    if top == _OWN or top in sys.stdlib_module_names or top not in sys.modules or is_users(top):
        return {}
    said = getattr(sys.modules[top], "__version__", None)
    return {top: said if isinstance(said, str) else installed_version(top)}


@cache
def installed_version(package: str) -> str:
    """Version of a package as its installer noted it."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
