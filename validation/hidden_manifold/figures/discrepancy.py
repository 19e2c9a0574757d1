"""Discrepancies of SGD from a theory: the paper's tLog-RMSE, and verdicts by standard errors over starts."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from validation.study import Statement

STANDARD_ERRORS = 3.0
"""Standard errors within which numbers are not told apart. Over 20 starts chance leaves them once in 135 looks, by
Student's law; where one look decides, that is once in 270 on either side."""

ALIKE = 4 / 3
"""Ratio of two discrepancies up to which they are alike: rows of one column of the paper's tables differ by as much."""


def log_rmse(found: xr.DataArray, theory: xr.DataArray) -> xr.DataArray:
    """Root mean square over the log-spaced times of the difference, which the paper's (18) is taken for."""
    return np.sqrt(((found - theory) ** 2).mean("time"))


def printed_log_rmse(found: xr.DataArray, theory: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """The paper's (18) as printed, the mean over times of sqrt(X^2 - Y^2), and the share of times where it is real.

    X is the ODE and Y is SGD. The mean is over all times, and takes the root of the absolute value where there is none.
    """
    square = theory**2 - found**2
    return np.sqrt(np.abs(square)).mean("time"), (square >= 0).mean("time")


def over_units(values: xr.DataArray) -> xr.DataArray:
    """Mean over the entries of a matrix or vector of order parameters: the paper's (20)."""
    return values.mean([dim for dim in ("student", "student_", "teacher") if dim in values.dims])


def mean_and_error(values: xr.DataArray) -> tuple[float, float]:
    """Mean over starts, and its standard error; other dims are averaged first."""
    each = values.mean([dim for dim in values.dims if dim != "start"])
    return float(each.mean()), float(each.std(ddof=1)) / math.sqrt(each.size)


def with_error(values: xr.DataArray) -> str:
    """Mean with its standard error in units of the last digit."""
    return written(*mean_and_error(values))


def written(mean: float, error: float) -> str:
    """A number with its standard error in units of the last digit, of which two are shown where the first is 1."""
    if not error > 0 or not math.isfinite(error):
        return f"{mean:.3g}"
    error = float(f"{error:.1e}")  # 0.0199 is 0.02, of which one digit is shown
    digits = max(0, 1 - math.floor(math.log10(error)) - (error >= 2 * 10 ** math.floor(math.log10(error))))
    return f"{mean:.{digits}f}({round(error * 10**digits)})"


def above(values: xr.DataArray, level: float = 0.0) -> bool | None:
    """Whether a mean over starts is above a level; None where standard errors cannot tell."""
    mean, error = mean_and_error(values)
    if not math.isfinite(mean):
        return None
    return None if abs(mean - level) <= STANDARD_ERRORS * error else mean > level


def alike(ratios: xr.DataArray, allowed: float = ALIKE) -> bool | None:
    """Whether ratios are 1 within a factor: true if their whole interval is, false if none of it is."""
    mean, error = mean_and_error(np.log(ratios))
    if abs(mean) + STANDARD_ERRORS * error < math.log(allowed):
        return True
    return False if abs(mean) - STANDARD_ERRORS * error > math.log(allowed) else None


def ratio_with_error(ratios: xr.DataArray) -> str:
    """Geometric mean over starts with its standard error."""
    mean, error = mean_and_error(np.log(ratios))
    return written(math.exp(mean), math.exp(mean) * error)


def all_of(verdicts: list[bool | None]) -> bool | None:
    """Whether all hold; None if some cannot be told and none fails."""
    return False if False in verdicts else None if None in verdicts else True


def statement(text: str, source: str, verdicts: dict[str, bool | None], numbers: dict[str, str]) -> Statement:
    """A claim on several quantities, with the number of each."""
    shown = ", ".join(f"{name}: {number}" for name, number in numbers.items())
    return Statement(text, source, all_of(list(verdicts.values())), shown)
