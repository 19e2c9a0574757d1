"""Checks of the arguments of public functions: an error names the argument, what was given, and what is wanted."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meanfield.errors import InputError

if TYPE_CHECKING:
    from meanfield.typing import FloatArray


def wrong(name: str, given: object, wanted: str) -> InputError:
    """Error about an argument, to be raised.

    Parameters
    ----------
    name : str
        Name of the argument.
    given : object
        Its value: messages show numbers and texts, and the type of anything larger.
    wanted : str
        What to give instead, and where to get it.

    Examples
    --------
    >>> from meanfield.arguments import wrong
    >>> str(wrong("cells", "60", "give a whole number from 2 on"))
    "cells = '60': give a whole number from 2 on"
    """
    plain = given is None or isinstance(given, str | bytes | Real)
    shown = f"{given!r:.60}" if plain else f"<{type(given).__name__}>"
    return InputError(f"{name} = {shown}: {wanted}")


def as_path(given: object, name: str, wanted: str) -> Path:
    """Path that an argument is.

    Raises
    ------
    InputError
        If it is none.
    """
    if not isinstance(given, str | PathLike) or "\0" in str(given):
        raise wrong(name, given, wanted)
    return Path(given)


def as_text(given: object, name: str, wanted: str) -> str:
    """Text that an argument is.

    Raises
    ------
    InputError
        If it is none.
    """
    if not isinstance(given, str):
        raise wrong(name, given, wanted)
    return given


def as_flag(given: object, name: str, wanted: str) -> bool:
    """True or False that an argument is.

    Raises
    ------
    InputError
        If it is neither.
    """
    if not isinstance(given, bool):
        raise wrong(name, given, wanted)
    return given


def as_whole(given: object, name: str, wanted: str, least: float = -math.inf, most: float = math.inf) -> int:
    """Whole number from `least` to `most` that an argument is.

    Raises
    ------
    InputError
        If it is none, or another one.
    """
    value = _unwrapped(given)
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= int(value) <= most:
        raise wrong(name, given, wanted)
    return int(value)


def as_number(
    given: object, name: str, wanted: str, least: float = -math.inf, above: float = -math.inf, most: float = math.inf
) -> float:
    """Finite number from `least` to `most`, or greater than `above`, that an argument is.

    Raises
    ------
    InputError
        If it is none, or another one.
    """
    value = _unwrapped(given)
    if not isinstance(value, Real) or isinstance(value, bool):
        raise wrong(name, given, wanted)
    number = float(value)
    if not (math.isfinite(number) and least <= number <= most and number > above):
        raise wrong(name, given, wanted)
    return number


def _unwrapped(given: Any) -> Any:
    """Number in an array of none but one, such as a value that was selected from a Dataset."""
    return given.item() if getattr(given, "ndim", None) == 0 else given


def as_numbers(given: object, name: str, wanted: str) -> tuple[float, ...]:
    """Finite numbers that an argument lists.

    Raises
    ------
    InputError
        If it is no list, or holds anything else.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise wrong(name, given, wanted)
    return tuple(as_number(value, f"{name}[{i}]", wanted) for i, value in enumerate(given))


def as_array(given: object, name: str, wanted: str) -> FloatArray:
    """Array of real numbers that an argument is, or a nested list of them; NaN where it is masked.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        import numpy as np

        array = np.asanyarray(given)
        if array.dtype.kind in "bcmMSU":  # a cast would make numbers of them, such as real parts
            raise TypeError(f"its entries are of the type {array.dtype}")
        return np.asarray(np.ma.filled(array.astype(float, copy=False), np.nan))
    except (TypeError, ValueError) as error:
        raise InputError(f"{wrong(name, given, wanted)} ({error})") from error
