"""Check of methods that go on from results of their own: as the unbroken run does, or with its law."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import meanfield.methods
from meanfield.problems.base import Problem
from meanfield.problems.problem_keys import held_by, value_of, with_value, with_values
from meanfield.results.files import save
from meanfield.results.initial_state import said_by_keys
from meanfield.results.result import Result
from meanfield.testing.methods import Example

ROUNDING = 1e-9
"""Largest difference of what runs are made of at the same time."""


def check_start(example: Example, method: str, folder: Path) -> None:
    """Check that a result is the start of the method that made it, where that is declared."""
    if not example.family.methods[method].goes_on:
        return
    problem, snapshots = example.problem, "particles.snapshots"
    if held_by(problem, snapshots) is None:
        whole = example.result(method)
    else:  # which may leave out the middle
        problem = with_value(problem, snapshots, None)
        whole = meanfield.methods.solve(problem, method)
    save(whole, folder / "whole.nc")
    middle = (len(whole["time"]) - 1) // 2
    rest = second_half(problem, middle, folder / "whole.nc")
    found = meanfield.methods.solve(rest, method)
    assert found.attrs["status"] == "complete", f"'{method}' from its own result: {found.attrs['status']}"
    known = whole.isel(time=slice(middle, None))
    if Result.of(found).is_prediction:
        _goes_on(found, known, method)
        return
    assert rest.seed_key is not None, f"'{method}' has runs, and the problem no seed_key"
    other = meanfield.methods.solve(with_value(rest, rest.seed_key, value_of(rest, rest.seed_key) + 1), method)
    same = _begins_with_runs(found, other, known, method)
    again = meanfield.methods.solve(second_half(problem, 0, folder / "whole.nc"), method)
    apart = any(not np.array_equal(again[name].isel(time=-1), whole[name].isel(time=-1)) for name in same)
    assert apart, f"'{method}' from the start of its own result draws the numbers that it drew before"


def second_half(problem: Problem, middle: int, path: Path) -> Problem:
    """Problem from one of its output times on, whose start is a result of it in a file."""
    times = problem.time.outputs_at  # type: ignore[attr-defined]
    values: dict[str, Any] = {"initial": {"from": str(path), "time": float(times[middle])}}
    values |= {"time.stop": float(times[-1] - times[middle]), "time.outputs": len(times) - middle}
    if "common_start" in type(held_by(problem, "particles")).model_fields:
        values["particles.common_start"] = False
    return with_values(problem, said_by_keys(problem) | values)


def _goes_on(found: xr.Dataset, known: xr.Dataset, method: str) -> None:
    """Check that a prediction is that of the unbroken run."""
    result = Result.of(found)
    for name in result.family.compared:
        if name in found and name in known and "time" in found[name].dims:
            allowed: Any = result.kind.accuracy or 1e-7  # they start with a step of their own length
            if f"{name}_error" in found:
                allowed = found[f"{name}_error"].values + known[f"{name}_error"].values
            gap = np.abs(found[name].values - known[name].values)
            assert not (gap > allowed).any(), f"'{name}' of '{method}' from its own result is off by {gap.max():.2g}"


def _begins_with_runs(found: xr.Dataset, other: xr.Dataset, known: xr.Dataset, method: str) -> list[str]:
    """Names of variables with which runs begin as those of a result have them, which is checked.

    What they are made of is the same for any seed; the rest is measured on samples.
    """
    same = []
    for name in set(found.data_vars) & set(known.data_vars):
        if found[name].dims != known[name].dims or "time" not in found[name].dims or found[name].dtype.kind != "f":
            continue
        at = [each[name].isel(time=0).values for each in (found, other, known)]
        if np.allclose(at[0], at[1], rtol=0.0, atol=ROUNDING, equal_nan=True):
            gap = np.nanmax(np.abs(at[0] - at[2]), initial=0.0)
            assert gap <= ROUNDING, f"'{name}' of '{method}' begins {gap:.2g} from where the result ended"
            same.append(str(name))
    assert same, f"nothing of '{method}' from its own result begins with the runs of that"
    return same
