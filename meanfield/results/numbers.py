"""Numbers as text for people, in as many digits as are known."""

from __future__ import annotations

import math
from collections.abc import Iterable

DIGITS = 6
"""Number of digits of a number with an unknown error."""


def plain(value: float) -> str:
    """Text of a number in few digits."""
    return f"{value + 0.0:.4g}" if math.isfinite(value) else "not finite"


def with_error(value: float, error: float) -> str:
    """Text of a number with its error, in the digits that the error leaves: 0.70131 ± 0.00042.

    Parameters
    ----------
    value : float
    error : float
        NaN where it is not known.
    """
    if not math.isfinite(value):
        return "not finite"
    if not math.isfinite(error):
        return f"{value + 0.0:.{DIGITS}g}"
    if error <= 0:
        return f"{value + 0.0:.{DIGITS}g} ± 0"
    decimals = 1 - math.floor(math.log10(error))
    if decimals > 15 or decimals < -15:
        return f"{value + 0.0:.15g} ± {error:.2g}"
    if decimals <= 0:
        return f"{round(value, decimals):.15g} ± {round(error, decimals):.2g}"
    shown = f"{error:.{decimals}f}" if decimals <= 7 else f"{error:.1e}"
    return f"{value + 0.0:.{decimals}f} ± {shown}"


def index_text(places: Iterable[int], sizes: Iterable[int]) -> str:
    """Indices of an entry counted from 1, such as 21, or 2,13 where one of them may have two digits.

    Parameters
    ----------
    places : iterable of int
        Indices counted from 0.
    sizes : iterable of int
        Numbers of values that they take.
    """
    separator = "," if max(sizes, default=0) > 9 else ""
    return separator.join(str(place + 1) for place in places)
