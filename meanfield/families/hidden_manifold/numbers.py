"""Numbers of hidden-manifold results: how they depend on each other, and which of them reports show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from meanfield.families.hidden_manifold.problem import Problem
from meanfield.report.order_parameters import at_the_end, means_of_an_ensemble, means_of_replicas
from meanfield.results.text import plain
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


LABELS = {"generalisation_error": "generalisation error", "Q": "Q", "R": "R"}
"""Order parameters that are shown, and what they are called."""


def of_order_parameters(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Generalisation error, Q and R at the last time that was reached."""
    return at_the_end(dataset, LABELS)


def of_fixed_points(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Number of fixed points, and of each its generalisation error and unstable directions."""
    count = int(dataset.sizes["state"])
    yield "fixed points", f"{count}"
    for i in range(count):
        state = dataset.isel(state=i)
        yield f"generalisation error at fixed point {i + 1}", plain(float(state["generalisation_error"]))
        yield f"unstable directions of fixed point {i + 1}", f"{int(state['unstable_directions'])}"


def of_particles(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Number of replicas, and their means at the end."""
    return means_of_replicas(dataset, LABELS)


def of_an_ensemble(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Number of replicas, and the means that statistics keep."""
    return means_of_an_ensemble(dataset, LABELS)
