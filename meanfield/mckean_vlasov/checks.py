"""Checks that tie the numbers of a result together: cells and edges, masses, and overlaps on the sphere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from meanfield.mckean_vlasov.cells import edges_of
from meanfield.mckean_vlasov.declarations import SUM_TOLERANCE

OVERLAP_TOLERANCE = 1e-2
"""Largest excess of |q|^2 over E[w^2] by coarse nodes, whose E[u^2] deviates from 1 by less."""

NOT_EMPTY = ("time", "replica", "node", "u", "w", "quantile")
"""Dimensions that are never empty in a result."""


def faults(dataset: xr.Dataset, problem: Any) -> Iterator[str]:
    """Contradictions between numbers of a result in time, or of stationary states.

    Parameters
    ----------
    dataset : xarray.Dataset
        Result, each of whose variables obeys the schema.
    """
    yield from _faults_of_sizes(dataset)
    yield from _faults_of_cells(dataset)
    yield from _faults_of_masses(dataset)
    yield from _faults_of_overlaps(dataset)


def _faults_of_sizes(dataset: xr.Dataset) -> Iterator[str]:
    sizes = dataset.sizes
    if "feature_" in sizes and sizes["feature_"] != sizes.get("feature"):
        yield f"dim 'feature_' has size {sizes['feature_']}, and 'feature' {sizes.get('feature')}: they must be equal"
    if "bounds" in sizes and sizes["bounds"] != 2:
        yield f"dim 'bounds' has size {sizes['bounds']}, but a cell has 2 edges"
    for name in NOT_EMPTY:
        if sizes.get(name) == 0:
            yield f"dim '{name}' has size 0"


def _faults_of_cells(dataset: xr.Dataset) -> Iterator[str]:
    if "w_bnds" in dataset:
        (low, high), cells = dataset["w_bnds"].values.T, dataset["w"].values
        if not np.all((low < cells) & (cells < high)):
            yield "variable 'w' holds cells that do not lie between their edges"
        if np.any(low[1:] != high[:-1]):
            yield "variable 'w_bnds' holds cells that do not end where the next ones begin"


def _faults_of_masses(dataset: xr.Dataset) -> Iterator[str]:
    if "u_weight" in dataset:
        total = float(dataset["u_weight"].sum())
        if abs(total - 1) > SUM_TOLERANCE:
            yield f"variable 'u_weight' sums to {total:.9g}, not to 1"
    if "mass" in dataset:
        widths = xr.DataArray(np.diff(edges_of(dataset)), dims="w")
        densities = {"P": dataset["P"].reset_coords(drop=True).dot(dataset["u_weight"].reset_coords(drop=True))}
        if "P_w" in dataset:
            densities["P_w"] = dataset["P_w"].reset_coords(drop=True)
        for name, density in densities.items():
            gap = np.abs(density.drop_vars("w", errors="ignore").dot(widths) - dataset["mass"])
            if np.any(gap > SUM_TOLERANCE):
                yield f"variable '{name}' has a mass that differs from 'mass' by {float(gap.max()):.3g}"


def _faults_of_overlaps(dataset: xr.Dataset) -> Iterator[str]:
    for name in ("q", "q_mean"):
        if name in dataset:
            squared = (dataset[name] ** 2).sum("feature")
            limit = dataset.get("norm", 1.0)
            if np.any(squared > limit + OVERLAP_TOLERANCE):
                yield f"variable '{name}' has |q|^2 = {float(squared.max()):.6g}, and on the sphere it is at most 1"
