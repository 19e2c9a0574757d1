"""A result as a few lines of text."""

from __future__ import annotations

import numpy as np
import xarray as xr

VERDICTS = {1: "stable", 0: "marginal", -1: "unstable"}


def describe(result: xr.Dataset) -> str:
    """A line for each state, or for each branch, of a result of this room; or why there is none."""
    if result.attrs["status"] != "complete":
        return str(result.attrs["status"])
    lines = _states(result) if result.attrs["method"] == "stationary" else describe_branches(result)
    return "\n".join(lines)


def _overlap(point: xr.Dataset) -> str:
    return "q = " + ", ".join(f"{value:9.6f}" for value in np.round(point["q"].values, 6) + 0.0)


def _states(result: xr.Dataset) -> list[str]:
    states = [result.isel(state=i) for i in range(result.sizes["state"])]
    return [
        f"{_overlap(state)}   {VERDICTS[int(state['stability'])]:<9} growth rate {float(state['growth_rate']):.4g}"
        for state in states
    ]


def describe_branches(result: xr.Dataset) -> list[str]:
    """A line for each branch of stationary states or of fixed points."""
    key, lines = result["parameter"].attrs["key"], []
    for number in np.unique(result["branch"]):
        points = result.isel(point=np.flatnonzero(result["branch"] == number))
        first, last = points.isel(point=0), points.isel(point=-1)
        verdicts = points["stability"].values
        changes = int(np.count_nonzero(np.diff(verdicts[verdicts != 0])))
        turns = ", ".join(f"{p:.6g}" for p in points["parameter"].values[points["turning"].values == 1])
        lines.append(
            f"branch {number}: {points.sizes['point']} points from {key} = {float(first['parameter']):.6g} "
            f"({_overlap(first)}, {VERDICTS[int(verdicts[0])]}) to {float(last['parameter']):.6g} "
            f"({_overlap(last)}, {VERDICTS[int(verdicts[-1])]})"
            + (f", {changes} change(s) of stability" if changes else "")
            + (f", turning at {turns}" if turns else "")
        )
    return lines
