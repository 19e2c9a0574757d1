"""Checks of methods that follow schedules and phases: what does not change gives the same numbers, and runs go on."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import meanfield.methods
from meanfield.ensembles.checkpoint import Checkpoint
from meanfield.problems.base import Problem
from meanfield.problems.phases import phase_numbers
from meanfield.problems.problem_keys import held_by, number_keys, value_of, with_values, without_numbers
from meanfield.results.files import load, save
from meanfield.results.result import Result
from meanfield.testing.methods import Example, Interrupting, refusal
from meanfield.testing.verdicts import rate_key


def check_schedules(example: Example, method: str, folder: Path) -> None:
    """Check that a schedule that is constant gives the bits of its number."""
    followed = example.family.methods[method].does_follow
    keys = [key for key in number_keys(example.problem) if followed(without_numbers(key))]
    steady = {key: {"times": [0.0], "values": [float(value_of(example.problem, key))]} for key in keys}
    for key, schedule in list(steady.items()):
        said = refusal(lambda each: with_values(example.problem, each), {key: schedule})
        if "belongs to" in said:  # another kind of a part, which the example does not have
            del steady[key]
    if steady:
        found, known = meanfield.methods.solve(with_values(example.problem, steady), method), example.result(method)
        for name in set(found.variables) & set(known.variables):
            same = np.array_equal(found[name].values, known[name].values, equal_nan=found[name].dtype.kind == "f")
            assert same, f"constant schedules of {', '.join(steady)} give another '{name}'"


def check_phases(example: Example, method: str, folder: Path) -> None:
    """Check that a run goes through two phases, the first of which is that of the problem without them."""
    if not example.problem.in_phases:
        return
    problem = two_phases(example.problem)
    if not example.family.methods[method].phases:
        said = refusal(lambda each: meanfield.methods.solve(each, method), problem)
        assert said.startswith("phases"), f"'{method}' knows no phases and does not say so: {said}"
        return
    found, known = meanfield.methods.solve(problem, method), example.result(method)
    assert found.attrs["status"] == "complete", f"'{method}' of two phases: {found.attrs['status']}"
    assert np.array_equal(found["phase"], phase_numbers(problem, found["time"].values)), "'phase' has other numbers"
    save(found, folder / "phases.nc")
    assert load(folder / "phases.nc").equals(found), "a result of two phases is another one when it is read again"
    _begins_alike(found, known, method)
    _is_followed_alike(problem, found, method)
    if example.family.methods[method].resumes:
        _goes_on(problem, found, method, folder)


def two_phases(problem: Problem) -> Problem:
    """Problem whose learning rate, or the first number that may change there, doubles halfway."""
    stop = value_of(problem, "time.stop")
    key = rate_key(problem) or next(key for key in problem.in_phases if isinstance(held_by(problem, key), float))
    phases = [{"stop": 0.5 * stop}, {"stop": stop, "set": {key: 2.0 * value_of(problem, key)}}]
    return with_values(problem, {"phases": phases})


def _begins_alike(found: xr.Dataset, known: xr.Dataset, method: str) -> None:
    """Check that variables in time are those of one phase until it ends, and runs in all bits."""
    result = Result.of(found)
    before = found["phase"].values == 0
    for name in set(found.data_vars) & set(known.data_vars):
        if found[name].dims != known[name].dims or "time" not in found[name].dims or found[name].dtype.kind != "f":
            continue
        # Integrators end a step at the end of a phase, which moves their error: below their usual tolerance.
        allowed: Any = result.kind.accuracy or (1e-9 if result.is_prediction else 0.0)
        if f"{name}_error" in found:
            allowed = found[f"{name}_error"] + known[f"{name}_error"]
        elif result.is_prediction and name not in result.family.compared:
            continue
        gap = (found[name] - known[name]).isel(time=before).pipe(abs)
        assert not (gap > allowed).any(), f"'{name}' of '{method}' in the first phase is off by {float(gap.max()):.2g}"


def _is_followed_alike(problem: Problem, found: xr.Dataset, method: str) -> None:
    """Check that twice as many outputs change nothing at the times that are there already."""
    finer = meanfield.methods.solve(with_values(problem, {"time.outputs": 2 * found.sizes["time"] - 1}), method)
    result = Result.of(found)
    for name in set(found.data_vars) & set(result.family.compared):
        if "time" in found[name].dims and found[name].dtype.kind == "f":
            gap = np.abs(found[name].values - finer[name].isel(time=slice(None, None, 2)).values)
            allowed = 1e-10 if result.is_prediction else 0.0
            assert not (gap > allowed).any(), f"'{name}' of '{method}' is off by {gap.max():.2g} with twice the outputs"


def _goes_on(problem: Problem, whole: xr.Dataset, method: str, folder: Path) -> None:
    """Check that a run that was interrupted inside of either phase is resumed with the same bits."""
    counted = Interrupting(folder / "whole", sys.maxsize)
    meanfield.methods.solve(problem, method, record=counted)
    for states in (max(1, counted.saved // 4), max(1, 3 * counted.saved // 4)):
        place = folder / str(states)
        with suppress(KeyboardInterrupt):
            meanfield.methods.solve(problem, method, record=Interrupting(place, states))
        with Checkpoint(place) as record:
            again = meanfield.methods.solve(problem, method, record=record)
        assert again.drop_attrs().equals(whole.drop_attrs()), f"going on after {states} state(s) gives other numbers"
