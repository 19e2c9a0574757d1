"""Numbers and states as text for people: as many digits as are known, and a line for each state or branch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import xarray as xr

from meanfield.numerics.growth_rates import VERDICTS
from meanfield.results.states import branches_of
from meanfield.typing import FloatArray

DIGITS = 6
"""Number of digits of a number with an unknown error."""


def plain(value: float) -> str:
    """Text of a number in few digits."""
    return f"{value + 0.0:.4g}" if math.isfinite(value) else "not finite"


def with_error(value: float, error: float) -> str:
    """Text of a number with its error, in the digits that the error leaves: 0.70131 ± 0.00042.

    Parameters
    ----------
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


def last_values(dataset: xr.Dataset, curves: Iterable[tuple[str, FloatArray]]) -> Iterator[tuple[str, str]]:
    """Curves in time, with words for them, at the last time that each of them reached."""
    for words, curve in curves:
        reached = np.flatnonzero(np.isfinite(curve))
        if len(reached):
            yield f"{words} at t = {float(dataset['time'][reached[-1]]):g}", plain(float(curve[reached[-1]]))


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


def describe(result: xr.Dataset) -> str:
    """Description of a result: a line for each state, or for each branch of states; or why there is none."""
    if result.attrs["status"] != "complete":
        return str(result.attrs["status"])
    return "\n".join(describe_states(result) if "state" in result.dims else describe_branches(result))


def describe_states(result: xr.Dataset) -> list[str]:
    """Description of stationary states or fixed points, with a line for each."""
    return [_state(result.isel(state=i)) for i in range(result.sizes["state"])]


def _state(state: xr.Dataset) -> str:
    word = f"{state['kind'].values!s:<13}" if "kind" in state else f"{_verdict(state):<9}"
    parts = [f"{_overlap(state)}   {word} growth rate {float(state['growth_rate']):.4g}"]
    if "arrangement" in state:
        parts.insert(0, f"{state['arrangement'].values!s}: {parts.pop(0)}")
    if "region_share" in state and float(state["region_share"]) > 0:
        parts.append(f"attracts {float(state['region_share']):.1%}")
    if "limit_share" in state and float(state["limit_share"]) > 0:
        parts.append(f"{float(state['limit_share']):.1%} of starts from nothing")
    if "copies" in state:
        copies = float(state["copies"])
        parts.append("one of a continuum" if np.isinf(copies) else f"{copies:.0f} by symmetry")
    if "q_covariance" in state and np.isfinite(state["q_covariance"].values).all():
        spread = np.sqrt(np.maximum(np.diag(state["q_covariance"].values), 0.0))
        parts.append("spread of SGD " + ", ".join(f"{value:.3g}" for value in spread) + " / sqrt(N)")
    return ", ".join(parts)


def describe_branches(result: xr.Dataset) -> list[str]:
    """Description of branches of stationary states or of fixed points, with a line for each."""
    key, lines = result["parameter"].attrs["key"], []
    for points in branches_of(result):
        first, last = points.isel(point=0), points.isel(point=-1)
        verdicts = points["stability"].values
        changes = int(np.count_nonzero(np.diff(verdicts[verdicts != 0])))
        turns = ", ".join(f"{p:.6g}" for p in points["parameter"].values[points["turning"].values == 1])
        lines.append(
            f"branch {int(first['branch'])}: {points.sizes['point']} points from {key} = "
            f"{float(first['parameter']):.6g} ({_overlap(first)}, {_verdict(first)}) to "
            f"{float(last['parameter']):.6g} ({_overlap(last)}, {_verdict(last)})"
            + (f", {changes} change(s) of stability" if changes else "")
            + (f", turning at {turns}" if turns else "")
        )
    return lines


def _overlap(point: xr.Dataset) -> str:
    if "q" not in point:
        parts = ((name, np.round(point[name].values.ravel(), 6) + 0.0) for name in ("R", "Q", "v") if name in point)
        return ", ".join(f"{name} = {' '.join(f'{value:.6f}' for value in values)}" for name, values in parts)
    if "channel" not in point.dims:
        return "q = " + ", ".join(f"{value:9.6f}" for value in np.round(point["q"].values, 6) + 0.0)
    M = point["M"].transpose("channel", "channel_").values
    columns = np.round(point["q"].transpose("channel", "feature").values, 4) + 0.0
    overlaps = [f"({', '.join(f'{value:.4f}' for value in column)})" for column in columns]
    pairs = [f"{value:.4f}" for value in np.round(M[np.triu_indices(len(M), 1)], 4) + 0.0]
    return f"q = {', '.join(overlaps)}, M = {', '.join(pairs)}"


def _verdict(point: xr.Dataset) -> str:
    return VERDICTS[int(point["stability"])]
