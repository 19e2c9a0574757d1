"""Key numbers of hidden-manifold results with their errors, for reports."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from meanfield.results.numbers import plain, with_error
from meanfield.typing import FloatArray

SHOWN = ("generalisation_error", "Q", "R")
"""Order parameters whose means are shown."""


def of_order_parameters(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Generalisation error, Q and R at the last time that was reached."""
    reached = np.flatnonzero(np.isfinite(dataset["generalisation_error"].values))
    if not len(reached):
        return
    last = dataset.isel(time=reached[-1])
    when = f"at t = {float(last['time']):g}"
    error = float(last.get("generalisation_error_error", math.nan))
    yield f"generalisation error {when}", with_error(float(last["generalisation_error"]), error)
    for name in ("Q", "R"):
        values = last[name].values
        errors = last[f"{name}_error"].values if f"{name}_error" in last else np.full(values.shape, math.nan)
        for k, j in np.ndindex(*values.shape):
            if name == "R" or j >= k:
                yield f"{name}{k + 1}{j + 1} {when}", with_error(float(values[k, j]), float(errors[k, j]))


def of_fixed_points(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Number of fixed points, and of each its generalisation error and unstable directions."""
    count = int(dataset.sizes["state"])
    yield "fixed points", f"{count}"
    for i in range(count):
        state = dataset.isel(state=i)
        yield f"generalisation error at fixed point {i + 1}", plain(float(state["generalisation_error"]))
        yield f"unstable directions of fixed point {i + 1}", f"{int(state['unstable_directions'])}"


def of_particles(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Number of replicas, and means over those that reached the last time that any of them did."""
    error = dataset["generalisation_error"].values.reshape(-1, dataset.sizes["time"])
    yield "replicas", f"{len(error):,}"
    reached = np.flatnonzero(np.isfinite(error).any(axis=0))
    if not len(reached):
        return
    there = np.isfinite(error[:, reached[-1]])
    last = dataset.isel(time=reached[-1])
    for name in SHOWN:
        values = last[name].values[there]
        several = len(values) > 1
        spread = values.std(axis=0, ddof=1) if several else np.full(values.shape[1:], math.nan)
        yield from _means(name, values.mean(axis=0), spread / math.sqrt(len(values)), float(last["time"]))


def of_an_ensemble(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Number of replicas, and the means that statistics keep."""
    count, N = int(dataset["count"]), float(dataset.attrs["dimension"])
    yield "replicas", f"{count:,}"
    reached = np.flatnonzero(np.isfinite(dataset["generalisation_error_mean"].values))
    if not len(reached):
        return
    last = dataset.isel(time=reached[-1])
    for name in SHOWN:
        mean = last[f"{name}_mean"].values
        spread = last[f"{name}_covariance" if mean.ndim else f"{name}_variance"].values
        variance = np.diag(spread.reshape(mean.size, mean.size)).reshape(mean.shape) if mean.ndim else spread
        error = np.sqrt(np.maximum(variance, 0.0) / N / max(count, 1))
        yield from _means(name, mean, error, float(last["time"]))


def _means(name: str, mean: FloatArray, error: FloatArray, time: float) -> Iterator[tuple[str, str]]:
    """Means of one order parameter with their standard errors; of a symmetric matrix its upper triangle."""
    when = f"at t = {time:g}, mean and standard error"
    if not np.ndim(mean):
        yield f"generalisation error {when}", with_error(float(mean), float(error))
        return
    for k, j in np.ndindex(*mean.shape):
        if name == "R" or j >= k:
            yield f"{name}{k + 1}{j + 1} {when}", with_error(float(mean[k, j]), float(error[k, j]))
