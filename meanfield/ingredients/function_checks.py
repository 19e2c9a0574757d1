"""Checks of functions of one number that users write: that they compile, have values, and the slopes that they say."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.differentiate import derivative as numerical_derivative

from meanfield.numerics.compiled.scalar_functions import ScalarFunction, compile_scalar, evaluate

CHECK_POINTS = np.linspace(-6.0, 6.0, 61) + 0.0123
"""Numbers at which functions of users are checked."""

_NO_REASONS = ("Failed in nopython mode", "During: ", "File ", "[1m", "\x1b")
"""Beginnings of lines in numba's messages that name a place and no reason."""

_IN_WORDS = {
    "IMPORT_NAME": "imports belong to the top of its module",
    "STORE_GLOBAL": "it sets a global variable",
    "No conversion from none": "it returns None for some numbers",
    "No conversion from array": "it returns an array: write `a if x > 0 else b` for numpy.where",
    "reflected list": "it uses a list of its module: make it a tuple",
}
"""Reasons that people understand, by what numba says."""


def check_function(function: Any, what: str, kinks: tuple[float, ...] = (), least: float = -math.inf) -> None:
    """Refuse a function of one float that numba cannot compile, or without a value, always the same, for each number.

    Parameters
    ----------
    what : str
        How messages call it.
    kinks : tuple of float
        Where it may have any value, or none.
    least : float
        Number below which it is never asked for a value.
    """
    check_compiles(function, what)
    plain = getattr(function, "py_func", function)
    points = np.setdiff1d([0.0, *CHECK_POINTS[least <= CHECK_POINTS]], kinks)
    values = np.array([_value(plain, x, what) for x in points.tolist()])
    compiled = evaluate(function, points)
    off = ~(np.abs(compiled - values) <= 1e-6 * (1.0 + np.abs(values)))  # more is no rounding
    if off.any():
        x, value, other = (array[off][0] for array in (points, values, compiled))
        raise ValueError(
            f"{what} is {value:.9g} at {x:.4g}, but {other:.9g} where it is compiled; its value must "
            "follow from the number alone, so take nothing random, and nothing that changes"
        )


def _value(function: Callable[[float], Any], x: float, what: str) -> float:
    """Value of a function in Python."""
    remedy = "let it return a finite number for each number"
    try:
        with np.errstate(all="ignore"):
            value = float(function(x))
    except Exception as error:  # whatever a user's function raises
        raise ValueError(f"{what} raises {type(error).__name__} at {x:.4g} ({error}); {remedy}") from error
    if not math.isfinite(value):
        raise ValueError(f"{what} is {value} at {x:.4g}; {remedy}")
    return value


def check_compiles(function: Any, what: str) -> None:
    """Refuse what numba cannot compile as a function of one float."""
    if not inspect.isfunction(getattr(function, "py_func", function)):
        raise ValueError(f"{what} is {type(function).__name__}, not a Python function of one number")
    others = [p.name for p in list(inspect.signature(function).parameters.values())[1:] if p.default is p.empty]
    if others:
        raise ValueError(
            f"{what} takes {', '.join(others)} besides a number; for parameters write a function of them that returns "
            "one of a number"
        )
    try:
        compile_scalar(function)
    except Exception as error:  # numba raises many kinds at what it does not know
        raise ValueError(
            f"{what} cannot be compiled as a function of one number ({why_not_compiled(error, function)}); use "
            "arithmetic and functions of math or numpy"
        ) from error


def why_not_compiled(error: Exception, function: Any) -> str:
    """Why numba did not compile a function, and in which line of its module, if numba knows that."""
    code = getattr(function, "py_func", function).__code__
    found = re.findall(rf'{re.escape(Path(code.co_filename).name)}(?:"?, line | \()(\d+)', str(error))
    place = f", in line {found[-1]}" if found else ""
    for said, words in _IN_WORDS.items():
        if said in str(error):
            return words + place
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line for line in lines if line and not line.startswith(_NO_REASONS)), "unsupported") + place


def check_slope(
    function: ScalarFunction,
    slope: ScalarFunction,
    kinks: tuple[float, ...],
    what: str,
    remedy: str,
    least: float = -math.inf,
) -> None:
    """Refuse a derivative that differs from the numerical one between -6, or `least`, and 6, except at kinks."""
    away = np.array([min((abs(x - kink) for kink in kinks), default=np.inf) for x in CHECK_POINTS])
    points = CHECK_POINTS[(away > 0.06) & (least < CHECK_POINTS - 0.06)]
    numerical: Any = numerical_derivative(partial(evaluate, function), points, initial_step=0.05, order=8)
    given = evaluate(slope, points)
    with np.errstate(invalid="ignore"):
        # Differences are good to 1e-6, or to ten times the error that they estimate.
        wrong = ~(np.abs(given - numerical.df) <= 1e-6 * (1 + np.abs(numerical.df)) + 10 * numerical.error)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{what} is {given[at]:.9g} at {points[at]:.4g}, where the numerical derivative is {numerical.df[at]:.9g}; "
            f"{remedy}"
        )
