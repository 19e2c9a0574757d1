"""What a result says of a compared quantity: values with their errors, runs one by one, or moments over runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield.comparison.judgement import EXACT_START, FEWEST, NO_SPREAD
from meanfield.results.schema import family_of_result, kind_of, label_of
from meanfield.typing import FloatArray

SPREAD_OF_ROUNDING = 8
"""Largest scatter of equal numbers that are computed and then rounded, in units of the error of a single rounding."""


class Moments(NamedTuple):
    """Mean of a quantity over runs, the variance of that mean, and the number of runs that the variance is known from.

    The variance is NaN where it is not known, and that of rounding, from infinitely many runs, of a prediction.
    """

    mean: FloatArray
    variance: FloatArray
    runs: float


def has_runs(dataset: xr.Dataset) -> bool:
    """Whether a result holds compared quantities of runs one by one."""
    return any("replica" in dataset[name].dims for name in family_of_result(dataset).compared if name in dataset)


def is_prediction(dataset: xr.Dataset) -> bool:
    """Whether a result holds compared quantities without runs."""
    return not has_runs(dataset) and not any(f"{name}_mean" in dataset for name in family_of_result(dataset).compared)


def finished_runs(dataset: xr.Dataset) -> xr.Dataset:
    """Runs that reached the end, or, if these are too few, all that began."""
    names = [name for name in family_of_result(dataset).compared if name in dataset]
    finite = [np.isfinite(dataset[name].transpose("replica", ...).values) for name in names]
    finite = [values.reshape(len(values), -1) for values in finite]
    finished = np.all([values.all(axis=1) for values in finite], axis=0)
    begun = np.all([values.any(axis=1) for values in finite], axis=0)
    return dataset.isel(replica=np.flatnonzero(finished if finished.sum() >= FEWEST else begun))


def moments(dataset: xr.Dataset, name: str) -> Moments | None:
    """Moments of a quantity over runs, None if the result does not hold it."""
    if f"{name}_mean" in dataset:
        count = int(dataset["count"])
        variance = _scaled_variance(dataset, name) / (max(count, 1) * label_of(dataset, "dimension"))
        return Moments(dataset[f"{name}_mean"].values, variance, count)
    if name not in dataset:
        return None
    values = dataset[name].astype(float)
    floor = (rounding(dataset[name]) * float(np.nan_to_num(np.abs(values.values)).max(initial=0.0))) ** 2
    if "replica" not in values.dims:
        return Moments(values.values, np.full(values.shape, floor), np.inf)
    runs = values.count("replica").values
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = values.sum("replica").values / runs
        variance = ((values - mean) ** 2).sum("replica").values / (runs - 1) / runs
    return Moments(mean, np.where(runs > 1, variance + floor, np.nan), float(runs.max(initial=0)))


def predicted_variance(prediction: xr.Dataset, name: str) -> FloatArray | None:
    """Variance of a quantity over runs of SGD times N, where a result predicts it."""
    if is_prediction(prediction) and {f"{name}_variance", f"{name}_covariance"} & set(prediction):
        return _scaled_variance(prediction, name)
    return None


def measurement_variance(dataset: xr.Dataset, name: str) -> FloatArray | float:
    """Variance of the mean over runs by how their values were measured, as on samples; zero where that is exact."""
    if f"{name}_error" not in dataset or "replica" not in dataset[f"{name}_error"].dims:
        return 0.0
    square = dataset[f"{name}_error"] ** 2
    return np.asarray(square.mean("replica").values / np.maximum(square.count("replica").values, 1))


def _scaled_variance(dataset: xr.Dataset, name: str) -> FloatArray:
    """Variance over runs times N, which results hold for a single number or as a part of a covariance."""
    if f"{name}_variance" in dataset:
        return np.asarray(dataset[f"{name}_variance"].values)
    covariance = dataset[f"{name}_covariance"]
    dims = dataset[f"{name}_mean" if f"{name}_mean" in dataset else name].dims
    taken = {str(dim) for dim in dims}
    for dim in [str(dim) for dim in dims if dim in covariance.dims and dim != "time"]:
        again = f"{dim}_"
        while again in taken:  # a quantity may have a dim twice itself
            again += "_"
        taken.add(again)
        diagonal = xr.DataArray(np.arange(covariance.sizes[dim]), dims=dim)
        covariance = covariance.isel({dim: diagonal, again: diagonal})
    return np.asarray(covariance.transpose(*(dim for dim in dims if dim in covariance.dims)).values)


def stated_error(dataset: xr.Dataset, name: str) -> FloatArray | None:
    """Error of a predicted quantity, as its result or its kind states it, None where nobody does; of runs, rounding.

    The largest one up to a time: an estimate that passes through zero on its way from plus to minus is no better there.
    """
    values = held_values(dataset, name)
    shape = tuple(size for dim, size in values.sizes.items() if dim != "replica")
    rounded = rounding(values) * float(np.nan_to_num(np.abs(values.values)).max(initial=0.0))
    if not is_prediction(dataset):
        return np.full(shape, rounded)
    if f"{name}_error" in dataset:
        error = np.nan_to_num(dataset[f"{name}_error"].values, nan=0.0, posinf=np.inf)
        return rounded + np.asarray(np.maximum.accumulate(error) if "time" in values.dims else error, dtype=float)
    accuracy = kind_of(dataset).accuracy
    return None if accuracy is None else np.full(shape, rounded + accuracy)


def least_spread(first: xr.Dataset, second: xr.Dataset, name: str) -> FloatArray:
    """Least scatter, relative to values above 1, that is more than rounding: at each time, and 1 for other dims."""
    held = [held_values(dataset, name) for dataset in (first, second)]
    at_each = np.full(first.sizes["time"], max(NO_SPREAD, *(SPREAD_OF_ROUNDING * rounding(x) for x in held)))
    at_each[first["time"].values == 0.0] = EXACT_START
    return at_each.reshape(-1, *(1 for dim in held[0].dims if dim not in ("time", "replica")))


def held_values(dataset: xr.Dataset, name: str) -> xr.DataArray:
    """A quantity of runs or of a prediction, or its mean in statistics."""
    return dataset[name if name in dataset else f"{name}_mean"]


def rounding(values: xr.DataArray) -> float:
    """Relative rounding error of numbers of their type, such as 1e-7 of those that were saved in single precision."""
    return float(np.finfo(values.dtype).eps) if values.dtype.kind == "f" else 0.0


def largest_value(first: xr.Dataset, second: xr.Dataset, name: str) -> float:
    """Largest absolute value of a quantity in two results."""
    values = [np.abs(found.mean) for found in (moments(first, name), moments(second, name)) if found is not None]
    return float(np.max(np.nan_to_num(values), initial=0.0))
