"""Checks that tie the numbers of a result together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from meanfield.families.alpha_contrastive.problem import Problem


def faults(dataset: xr.Dataset, problem: Problem) -> Iterator[str]:
    """Contradictions between the numbers of a result."""
    if "w" in dataset:
        length = np.linalg.norm(dataset["w"].values, axis=-1)
        if np.any(np.abs(length - 1.0) > 1e-9):  # rounding
            yield f"variable 'w' holds a filter of length {length[np.abs(length - 1.0).argmax()]:.9g}, not 1"
    for name in ("basin_share", "weight"):
        if name in dataset and float(dataset[name].sum()) > 1.0 + 1e-9:
            yield f"variable '{name}' adds up to {float(dataset[name].sum()):.9g}, more than 1"
