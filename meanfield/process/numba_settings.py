"""Settings of numba in the environment under which the compiled loops of this package cannot run."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module

from meanfield.errors import InputError


def check_numba_settings() -> None:
    """Refuse settings with which numba ends in a traceback, or the whole process.

    Raises
    ------
    InputError
        If there is one; the message names the environment variable, its value and the remedy.
    """
    for name, (allows, wanted) in SETTINGS.items():
        value = os.environ.get(name)
        if value is not None and not allows(value):
            raise InputError(f"{name} = '{value}' in the environment: {wanted}; unset {name}")


def _whole(allows: Callable[[int], bool]) -> Callable[[str], bool]:
    def is_allowed(value: str) -> bool:
        try:
            return allows(int(value))
        except ValueError:
            return False

    return is_allowed


def _are_signed(features: str) -> bool:
    return all(feature.startswith(("+", "-")) for feature in features.split(",") if feature)


def _are_locators(names: str) -> bool:
    from numba.core import caching, config  # late, and only where it is set: help does not wait for it

    if not hasattr(config, "CACHE_LOCATOR_CLASSES"):  # older versions do not look at it
        return True
    for name in filter(None, map(str.strip, names.split(","))):
        module, _, attribute = name.rpartition(".")
        try:
            found = getattr(import_module(module) if module else caching, attribute)
        except (ImportError, AttributeError):
            return False
        if not hasattr(found, "from_function"):
            return False
    return True


SETTINGS: dict[str, tuple[Callable[[str], bool], str]] = {
    "NUMBA_DISABLE_JIT": (_whole(lambda value: value == 0), "the solvers are compiled by numba, and need it"),
    "NUMBA_NUM_THREADS": (_whole(lambda value: value > 0), "numba takes a number of threads, 1 or more"),
    "NUMBA_OPT": (lambda value: value in ("0", "1", "2", "3", "max"), "numba takes 0, 1, 2, 3 or max"),
    "NUMBA_CACHE_LOCATOR_CLASSES": (_are_locators, "numba takes classes that say where compiled code is kept"),
    "NUMBA_CPU_FEATURES": (_are_signed, "numba takes names of features, each behind + or -, with commas between them"),
}
"""Values that numba takes of each variable, as a test of its text and in words."""
