"""Numbers as text for people, in as many digits as are known."""

from __future__ import annotations

import math

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
