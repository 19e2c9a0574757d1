"""Numbers of hidden-manifold results: how they depend on each other, and which of them reports show."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from meanfield.families.hidden_manifold.problem import Problem
from meanfield.results.text import plain, with_error
from meanfield.typing import BoolArray, FloatArray

EQUAL_TO_ROUNDING = 1e-9
"""Largest relative difference of numbers that are equal but for rounding."""


def faults(dataset: xr.Dataset, problem: Problem) -> Iterator[str]:
    """Contradictions between the numbers of a result."""
    for name in ("Q", "Omega", "Sigma"):
        if name in dataset:
            values = dataset[name].values
            there = np.isfinite(values) & np.isfinite(np.swapaxes(values, -1, -2))
            gap = np.abs(values - np.swapaxes(values, -1, -2))[there]
            if np.any(gap > EQUAL_TO_ROUNDING * np.abs(values[there]).max(initial=1.0)):
                yield f"variable '{name}' is not symmetric"
    if "S" in dataset and "rho_of_coordinate" in dataset:
        kernel = is_kernel(dataset["rho_of_coordinate"].values)
        S = np.abs(dataset["S"].transpose("replica", "coordinate", ...).values)
        if np.nanmax(S[kernel], initial=0.0) > EQUAL_TO_ROUNDING * np.nanmax(S, initial=1.0):
            yield "variable 'S' is not 0 along eigenvectors of F F^T/N with the eigenvalue 0"
    if "T" in dataset and not np.allclose(
        dataset["T"].values, problem.teacher_overlap, EQUAL_TO_ROUNDING, EQUAL_TO_ROUNDING
    ):
        yield "variable 'T' is not teacher.overlap of the problem"
    for name in ("rho_weight", "component_weight"):
        if name in dataset and abs(float(dataset[name].sum()) - 1.0) > EQUAL_TO_ROUNDING:
            yield f"variable '{name}' adds up to {float(dataset[name].sum()):.9g}, not to 1"


def is_kernel(rho: FloatArray) -> BoolArray:
    """Which eigenvalues of runs, shape (runs, coordinates), are 0."""
    return np.asarray(rho <= 1e-12 * rho.max(axis=-1, keepdims=True))  # 0 to rounding


MEANS_SHOWN = ("generalisation_error", "Q", "R")
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
    for name in MEANS_SHOWN:
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
    for name in MEANS_SHOWN:
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
