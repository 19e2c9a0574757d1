"""Floating-point exceptions of NumPy within the library, whatever the program around it does with its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


def own_errstate() -> np.errstate:
    """Context of NumPy's default, in which an underflow to zero is no error.

    A program that raises on all of them, by `np.errstate(all="raise")`, would end in one that is harmless here.
    """
    import numpy as np  # late: help in the terminal does not wait for it

    return np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")


def with_own_errstate(function: Callable[P, R], module: str) -> Callable[P, R]:
    """Public function that runs within `own_errstate`.

    Parameters
    ----------
    module : str
        The module that offers it, by which it is pickled.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with own_errstate():
            return function(*args, **kwargs)

    call.__module__, call.__qualname__ = module, function.__name__
    return call
