"""Checks that tie the numbers of a hidden-manifold result together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from meanfield.families.hidden_manifold.problem import Problem
from meanfield.typing import BoolArray, FloatArray

ROUNDING = 1e-9
"""Largest relative difference of numbers that are equal but for rounding."""

KERNEL = 1e-12
"""Largest eigenvalue, relative to the largest one, that is 0 to rounding."""


def faults(dataset: xr.Dataset, problem: Problem) -> Iterator[str]:
    """Contradictions between the numbers of a result."""
    for name in ("Q", "Omega", "Sigma"):
        if name in dataset:
            values = dataset[name].values
            there = np.isfinite(values) & np.isfinite(np.swapaxes(values, -1, -2))
            gap = np.abs(values - np.swapaxes(values, -1, -2))[there]
            if np.any(gap > ROUNDING * np.abs(values[there]).max(initial=1.0)):
                yield f"variable '{name}' is not symmetric"
    if "S" in dataset and "rho_of_coordinate" in dataset:
        kernel = is_kernel(dataset["rho_of_coordinate"].values)
        S = np.abs(dataset["S"].transpose("replica", "coordinate", ...).values)
        if np.nanmax(S[kernel], initial=0.0) > ROUNDING * np.nanmax(S, initial=1.0):
            yield "variable 'S' is not 0 along eigenvectors of F F^T/N with the eigenvalue 0"
    if "T" in dataset and not np.allclose(dataset["T"].values, problem.teacher_overlap, ROUNDING, ROUNDING):
        yield "variable 'T' is not teacher.overlap of the problem"
    for name in ("rho_weight", "component_weight"):
        if name in dataset and abs(float(dataset[name].sum()) - 1.0) > ROUNDING:
            yield f"variable '{name}' adds up to {float(dataset[name].sum()):.9g}, not to 1"


def is_kernel(rho: FloatArray) -> BoolArray:
    """Which eigenvalues of runs, shape (runs, coordinates), are 0."""
    return np.asarray(rho <= KERNEL * rho.max(axis=-1, keepdims=True))
