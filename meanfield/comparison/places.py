"""Places at which results are compared: times and other coordinates that all of them have, matched by value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.errors import InputError
from meanfield.problems.base import SAME_TIME
from meanfield.results.schema import family_of_result, problem_of
from meanfield.typing import FloatArray


def at_common_places(datasets: Sequence[xr.Dataset], names: Sequence[str]) -> list[xr.Dataset]:
    """Results at the output times, and other places of compared variables, that all have.

    Parameters
    ----------
    datasets : sequence of xarray.Dataset
        Results in time, each of which has output times of its problem.
    names : sequence of str
        Their names in messages.

    Raises
    ------
    InputError
        If they have no time after the start in common.
    """
    family, times = family_of_result(datasets[0]), _common_times(datasets)
    if times[-1] == 0.0:
        spans = " and ".join(f"those of {name}: {_span(d)}" for name, d in zip(names, datasets, strict=True))
        raise InputError(
            f"{', '.join(names)} have no output time after the start in common ({spans}); "
            "give their problems the same time.stop and time.outputs"
        )
    found = [_at_times(dataset, times) for dataset in datasets]
    dims = {dim for variable in family.compared.values() for dim in variable.dims} & set(family.variables) - {"time"}
    others = {dim for dataset in found for dim in dataset.dims} - dims
    aligned: Sequence[xr.Dataset] = xr.align(*found, join="inner", exclude=others)
    return list(aligned)


def _common_times(datasets: Sequence[xr.Dataset]) -> FloatArray:
    """Output times that all results have, as the first has them."""
    times = own_times(datasets[0])
    for dataset in datasets[1:]:
        times = times[_nearest(own_times(dataset), times)[1]]
    return times


def own_times(dataset: xr.Dataset) -> FloatArray:
    """Output times of a result as its problem has them, without the rounding of a file or of steps."""
    time = getattr(problem_of(dataset), "time", None)
    if time is None:
        return np.asarray(dataset["time"].values, dtype=float)
    steps = problem_of(dataset).labels.get("dimension", np.inf)
    outputs: FloatArray = time.outputs_at[time.output_of(dataset["time"].values, 0.5 / steps)]
    return outputs


def _nearest(times: FloatArray, wanted: FloatArray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the times that are nearest to wanted ones, and whether they are the same but for rounding."""
    right = np.searchsorted(times, wanted).clip(1, max(len(times) - 1, 1)) % len(times)
    left = np.maximum(right - 1, 0)
    position = np.where(np.abs(times[left] - wanted) <= np.abs(times[right] - wanted), left, right)
    spacing = np.diff(times).min() if len(times) > 1 else times[-1]
    return position, np.abs(times[position] - wanted) <= min(SAME_TIME * times[-1], 0.25 * spacing)


def _at_times(dataset: xr.Dataset, times: FloatArray) -> xr.Dataset:
    """Result at some of its times, and of its snapshots those that are at one of them."""
    found = dataset.isel(time=_nearest(own_times(dataset), times)[0])
    found = found.assign_coords(time=("time", times, dataset["time"].attrs))
    if "snapshot_time" not in dataset.dims:
        return found
    snapshots = np.asarray(dataset["snapshot_time"].values, dtype=float)
    position, is_there = _nearest(times, snapshots)
    found = found.isel(snapshot_time=np.flatnonzero(is_there))
    return found.assign_coords(snapshot_time=("snapshot_time", times[position[is_there]], found["snapshot_time"].attrs))


def _span(dataset: xr.Dataset) -> str:
    times = dataset["time"].values
    return f"{len(times)} from {times[0]:g} to {times[-1]:g}"
