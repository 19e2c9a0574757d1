"""Versions of numba whose inner parts this package knows, and compilation on all others.

Our target derives from classes of numba that are no promise to its users, and that differ between its versions. On any
other version, older or newer than these, numba compiles in its own way: results are the same, and the first ones take
several times as long.
"""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Callable
from multiprocessing import parent_process
from typing import Any

import numba
from numba.core.registry import CPUDispatcher

LOWEST, HIGHEST = (0, 63), (0, 68)
"""First two numbers of the lowest and the highest version with which the tests were run."""

PLAIN_NUMBA = "MEANFIELD_PLAIN_NUMBA"
"""Environment variable that has numba compile in its own way on every version."""


def is_numba_known() -> bool:
    """Whether the inner parts of numba may be used."""
    numbers = re.match(r"(\d+)\.(\d+)", numba.__version__)
    known = numbers is not None and LOWEST <= (int(numbers[1]), int(numbers[2])) <= HIGHEST
    return known and not os.environ.get(PLAIN_NUMBA)


def _cache(function: Any) -> Any:
    """Compiled code of a function on disk, if this version of numba has what that takes."""
    from meanfield.process.own_numba.cache import Cache

    class Careful(Cache):
        """Whatever fails, code is compiled as if nothing were kept."""

        def load_overload(self, signature: Any, context: Any) -> Any:
            with contextlib.suppress(Exception):
                return super().load_overload(signature, context)
            return None

        def save_overload(self, signature: Any, compiled: Any) -> None:
            with contextlib.suppress(Exception):
                super().save_overload(signature, compiled)

    return Careful(function)


def njit(function: Any = None, cache: bool = False, **options: Any) -> Any:
    """Decorator of functions, as `numba.njit`; code is kept in the folder of this version."""
    if function is None:
        return lambda found: njit(found, cache, **options)
    made: Any = numba.njit(function, **options)
    if cache and isinstance(made, CPUDispatcher):  # not where compilation is switched off
        with contextlib.suppress(Exception):
            made._cache = _cache(function)
    return made


def cfunc(signature: Any, cache: bool = False, **options: Any) -> Callable[[Any], Any]:
    """Decorator for functions that others call by their address, as `numba.cfunc`, which are not kept."""
    return numba.cfunc(signature, **options)


def say_so() -> None:
    """Warn that compilation takes longer, once, and not in the workers of a process that has said so."""
    reason = f"numba {numba.__version__} is none of the versions with which this package was tested"
    if os.environ.get(PLAIN_NUMBA):
        reason = f"{PLAIN_NUMBA} is set"
    if parent_process() is None:
        warnings.warn(
            f"{reason}: numba compiles in its own way, with the same results, and the first ones take several times as "
            "long",
            stacklevel=3,
        )
