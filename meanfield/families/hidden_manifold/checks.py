"""Checks that tie the numbers of a hidden-manifold result together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from meanfield.families.hidden_manifold.problem import Problem

ROUNDING = 1e-9
"""Largest relative difference of numbers that are equal but for rounding."""


def faults(dataset: xr.Dataset, problem: Problem) -> Iterator[str]:
    """Contradictions between the numbers of a result."""
    for name in ("Q", "Omega", "Sigma"):
        if name in dataset:
            values = dataset[name].values
            there = np.isfinite(values) & np.isfinite(np.swapaxes(values, -1, -2))
            gap = np.abs(values - np.swapaxes(values, -1, -2))[there]
            if np.any(gap > ROUNDING * np.abs(values[there]).max(initial=1.0)):
                yield f"variable '{name}' is not symmetric"
    if "T" in dataset and not np.allclose(dataset["T"].values, problem.teacher_overlap, ROUNDING, ROUNDING):
        yield "variable 'T' is not teacher.overlap of the problem"
    for name in ("rho_weight", "component_weight"):
        if name in dataset and abs(float(dataset[name].sum()) - 1.0) > ROUNDING:
            yield f"variable '{name}' adds up to {float(dataset[name].sum()):.9g}, not to 1"
