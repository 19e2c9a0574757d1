"""Places at which results are compared: times and other coordinates that all of them have, matched by value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.errors import InputError
from meanfield.problems.base import same_times
from meanfield.results.result import Result
from meanfield.typing import FloatArray


def at_common_places(results: Sequence[Result], names: Sequence[str]) -> list[Result]:
    """Results at the output times, and other places of compared variables, that all have.

    Parameters
    ----------
    results : sequence of Result
        Results in time, each of which has output times of its problem.
    names : sequence of str
        Their names in messages.

    Raises
    ------
    InputError
        If they have no time after the start in common.
    """
    own = [own_times(result) for result in results]
    times = own[0]
    for known in own[1:]:
        times = times[same_times(known, times) >= 0]
    if not times.any():
        spans = " and ".join(f"those of {name}: {_span(r.dataset)}" for name, r in zip(names, results, strict=True))
        raise InputError(
            f"{', '.join(names)} have no output time after the start in common ({spans}); "
            "give their problems the same time.stop and time.outputs"
        )
    positions = [same_times(known, times) for known in own]
    found = [
        _at_times(result.part(result.dataset.isel(time=at)), times)
        for result, at in zip(results, positions, strict=True)
    ]
    family = results[0].family
    dims = {dim for variable in family.compared.values() for dim in variable.dims} & set(family.variables) - {"time"}
    others = {dim for dataset in found for dim in dataset.dims} - dims
    aligned: Sequence[xr.Dataset] = xr.align(*found, join="inner", exclude=others)
    return [result.part(dataset) for result, dataset in zip(results, aligned, strict=True)]


def own_times(result: Result, name: str = "time") -> FloatArray:
    """Output times or snapshots of a result as its problem has them, without the rounding of a file or of steps."""
    dataset, problem = result.dataset, result.problem
    time = getattr(problem, "time", None)
    if time is None:
        return np.asarray(dataset[name].values, dtype=float)
    half_a_step = 0.5 / problem.labels.get("dimension", np.inf)
    outputs: FloatArray = time.outputs_at[time.output_of(dataset[name].values, half_a_step)]
    return outputs


def _at_times(result: Result, times: FloatArray) -> xr.Dataset:
    """Result whose times are named by their exact values, and of its snapshots those that are at one of them."""
    dataset = result.dataset
    found = dataset.assign_coords(time=("time", times, dataset["time"].attrs))
    if "snapshot_time" not in dataset.dims:
        return found
    position = same_times(times, own_times(result, "snapshot_time"))
    found = found.isel(snapshot_time=np.flatnonzero(position >= 0))
    at = times[position[position >= 0]]
    return found.assign_coords(snapshot_time=("snapshot_time", at, found["snapshot_time"].attrs))


def _span(dataset: xr.Dataset) -> str:
    times = dataset["time"].values
    return f"{len(times)} from {times[0]:g} to {times[-1]:g}"
