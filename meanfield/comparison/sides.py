"""Moments, runs and stated errors of a compared quantity in one result."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.special import stdtr, stdtrit

from meanfield.comparison.judgement import EXACT_START_SCATTER, FEWEST_RUNS, SOLVER_ROUNDING
from meanfield.results.result import Result
from meanfield.typing import FloatArray


class Moments(NamedTuple):
    """Mean of a quantity over runs, the variance of that mean, and the number of runs that the variance is known from.

    The variance is NaN where it is not known, and that of rounding, from infinitely many runs, of a prediction.
    """

    mean: FloatArray
    variance: FloatArray
    runs: float


def finished_runs(result: Result) -> Result:
    """Runs that reached the end, or, if these are too few, all that began."""
    dataset = result.dataset
    names = [name for name in result.family.compared if name in dataset]
    finite = [np.isfinite(dataset[name].transpose("replica", ...).values) for name in names]
    finite = [values.reshape(len(values), -1) for values in finite]
    finished = np.all([values.all(axis=1) for values in finite], axis=0)
    begun = np.all([values.any(axis=1) for values in finite], axis=0)
    kept = finished if finished.sum() >= FEWEST_RUNS else begun
    return result if kept.all() else result.part(dataset.isel(replica=np.flatnonzero(kept)))


def share_features(runs: xr.Dataset) -> bool:
    """Whether all runs have the same features, whose draw is then in no scatter of their weights."""
    U = runs["U"].transpose("replica", ...).values if "U" in runs else np.empty(0)
    return len(U) > 1 and all(np.array_equal(each, U[0]) for each in U[1:])


def moments(result: Result, name: str) -> Moments | None:
    """Moments of a quantity over runs, None if the result does not hold it."""
    dataset = result.dataset
    if f"{name}_mean" in dataset:
        count = int(dataset["count"])
        variance = _scaled_variance(dataset, name) / (max(count, 1) * result.steps_per_time)
        return Moments(dataset[f"{name}_mean"].values, variance, count)
    if name not in dataset:
        return None
    held = dataset.variables[name]  # sums of NumPy: those of xarray take most of the time of comparisons
    values = held.values.astype(float)
    floor = (rounding(held) * float(np.nan_to_num(np.abs(values)).max(initial=0.0))) ** 2
    if "replica" not in held.dims:
        return Moments(values, np.full(values.shape, floor), np.inf)
    axis = held.dims.index("replica")
    runs = np.sum(~np.isnan(values), axis=axis)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(values, axis=axis) / runs
        variance = np.nansum((values - np.expand_dims(mean, axis)) ** 2, axis=axis) / (runs - 1) / runs
    return Moments(mean, np.where(runs > 1, variance + floor, np.nan), float(runs.max(initial=0)))


def predicted_variance(result: Result, name: str) -> FloatArray | None:
    """Variance of a quantity over runs of SGD times N, where a result predicts it."""
    if result.is_prediction and {f"{name}_variance", f"{name}_covariance"} & set(result.dataset):
        return _scaled_variance(result.dataset, name)
    return None


def measurement_variance(result: Result, name: str) -> FloatArray | float:
    """Variance of the mean over runs by how their values were measured, as on samples; zero where that is exact."""
    dataset = result.dataset
    if f"{name}_error" not in dataset or "replica" not in dataset[f"{name}_error"].dims:
        return 0.0
    square = dataset[f"{name}_error"] ** 2
    return np.asarray(square.mean("replica").values / np.maximum(square.count("replica").values, 1))


def _scaled_variance(dataset: xr.Dataset, name: str) -> FloatArray:
    """Variance over runs times N, which results hold for a single number or as a part of a covariance."""
    if f"{name}_variance" in dataset:
        return dataset[f"{name}_variance"].values
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
    return covariance.transpose(*(dim for dim in dims if dim in covariance.dims)).values


def stated_error(result: Result, name: str) -> FloatArray | None:
    """Error of a predicted quantity, as its result or its kind states it, None where nobody does; of runs, rounding.

    The largest one up to a time: an estimate that passes through zero on its way from plus to minus is no better there.
    """
    dataset, values = result.dataset, held_values(result, name)
    shape = tuple(size for dim, size in values.sizes.items() if dim != "replica")
    rounded = rounding(values) * float(np.nan_to_num(np.abs(values.values)).max(initial=0.0))
    if not result.is_prediction:
        return np.full(shape, rounded)
    if f"{name}_error" in dataset:
        error = np.nan_to_num(dataset[f"{name}_error"].values, nan=0.0, posinf=np.inf)
        return rounded + np.asarray(np.maximum.accumulate(error) if "time" in values.dims else error, dtype=float)
    accuracy = result.kind.accuracy
    return None if accuracy is None else np.full(shape, rounded + accuracy)


def beyond_errors(
    difference: FloatArray, allowed: FloatArray | float, error: FloatArray, freedom: FloatArray | float
) -> FloatArray:
    """Differences that chance alone shows as rarely as chance and errors of a prediction show the given ones.

    Of a prediction that is off by `allowed`, (D - a)/s of a difference D has Student's law, so that |D| is exceeded in
    the cases P[t > (|D| - a)/s] + P[t > (|D| + a)/s], as chance has both signs and an error one. A small a takes off a
    part of order a^2/s, so that exact predictions hardly differ less often than without it; |D| - a would take off all
    of it, as if errors added to both signs. At most twice as often are exceeded errors that differ in sign from place
    to place and are as large as stated at all of them.

    Parameters
    ----------
    difference, error : ndarray
        Differences of means, and their standard errors.
    allowed : ndarray or float
        Largest errors of predictions.
    freedom : ndarray or float
        Degrees of freedom of the standard errors.
    """
    size = np.abs(difference)
    with np.errstate(invalid="ignore", divide="ignore"):
        chance = stdtr(freedom, (allowed - size) / error) + stdtr(freedom, -(allowed + size) / error)
        left = -error * stdtrit(freedom, 0.5 * chance)
    # Of rarer ones, and where nothing scatters, all of the error is taken off.
    left = np.where(chance > 1e-100, left, np.maximum(size - allowed, 0.0))
    return np.asarray(np.copysign(left, difference))


def within_half_a_step(difference: FloatArray, first: Result, second: Result, name: str) -> FloatArray:
    """Part of a difference between runs and a prediction that half a step explains, by the largest speed up to a time.

    Steps of a learning rate follow their flow with an error of its order, also where a quantity has come to rest and
    runs hardly scatter, and an output time is at most half a step from the nearest step. What the flow holds still at
    a wall, such as a node that slides where its gate opens, runs miss by a step as fast as any component: there both
    their scatter and their bias are of the order of the rate. Problems with a dimension N in the place of the rate,
    which makes runs scatter by more than that, have no number of steps per time.

    Parameters
    ----------
    difference : ndarray
        At all times and components, in the shape of the prediction.
    """
    predictions = [result for result in (first, second) if result.is_prediction]
    if len(predictions) != 1 or not hasattr(first.problem, "steps_per_time"):
        return np.zeros_like(difference)
    values = predictions[0].dataset[name].transpose("time", ...)
    components = tuple(range(1, values.ndim))
    length = np.diff(values["time"].values).reshape(-1, *(1 for _ in components))
    moved = np.abs(np.nan_to_num(np.diff(values.values, axis=0)))
    speed = np.maximum.accumulate(moved / length, axis=0)
    rests = moved <= SOLVER_ROUNDING * float(np.nan_to_num(np.abs(values.values)).max(initial=0.0))
    rests = rests | np.concatenate([rests[1:], rests[-1:]])  # or from an output time on
    allowed = np.zeros(values.shape)
    allowed[1:] = np.where(rests, speed.max(axis=components, keepdims=True, initial=0.0), speed)
    runs = first if predictions[0] is second else second
    allowed *= 0.5 / runs.steps_per_time
    return np.clip(difference, -allowed, allowed)


def least_spread(first: Result, second: Result, name: str) -> FloatArray:
    """Least scatter, relative to values above 1, that is more than rounding: at each time, and 1 for other dims."""
    held = [held_values(result, name) for result in (first, second)]
    # runs that all start alike differ by 1e-12, and equal numbers, computed and then rounded, by up to 8 roundings
    at_each = np.full(first.dataset.sizes["time"], max(1e-12, *(8 * rounding(values) for values in held)))
    at_each[first.dataset["time"].values == 0.0] = EXACT_START_SCATTER
    return at_each.reshape(-1, *(1 for dim in held[0].dims if dim not in ("time", "replica")))


def held_values(result: Result, name: str) -> xr.DataArray:
    """A quantity of runs or of a prediction, or its mean in statistics."""
    return result.dataset[name if name in result.dataset else f"{name}_mean"]


def rounding(values: xr.DataArray | xr.Variable) -> float:
    """Relative rounding error of numbers of their type, such as 1e-7 of those that were saved in single precision."""
    return float(np.finfo(values.dtype).eps) if values.dtype.kind == "f" else 0.0


def largest_value(first: Result, second: Result, name: str) -> float:
    """Largest absolute value of a quantity in two results."""
    values = [np.abs(found.mean) for found in (moments(first, name), moments(second, name)) if found is not None]
    return float(np.max(np.nan_to_num(values), initial=0.0))
