"""Checks that tie the numbers of a contrastive result together, besides those of any density."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov import checks
from meanfield.mckean_vlasov.checks import OVERLAP_TOLERANCE
from meanfield.mckean_vlasov.declarations import SUM_TOLERANCE


def faults(dataset: xr.Dataset, problem: Problem) -> Iterator[str]:
    """Contradictions between the numbers of a result; see `meanfield.mckean_vlasov.checks.faults`."""
    yield from _faults_of_attributes(dataset)
    yield from _faults_of_sizes(dataset)
    yield from checks.faults(dataset, problem)
    yield from _faults_of_channels(dataset, problem.model.channels)
    for name, among in (("winner", "feature"), ("region", "state")):
        if name in dataset and np.any(dataset[name].values >= dataset.sizes[among]):
            yield f"variable '{name}' holds {dataset[name].values.max()}, but dim '{among}' ends before"


def _faults_of_attributes(dataset: xr.Dataset) -> Iterator[str]:
    if "parameter" in dataset and not isinstance(dataset["parameter"].attrs.get("key"), str):
        yield "variable 'parameter' has no attribute 'key', the number that is varied"
    if "q_cell" in dataset and str(dataset.attrs.get("plane")) not in ("q", "Q"):
        yield "the attribute 'plane' is neither 'q' nor 'Q'"
    tested = dataset.attrs["method"] == "dynamics" and "channel" not in dataset.sizes
    if tested and str(dataset.attrs.get("indices_add_up")) not in ("true", "false"):
        yield "the attribute 'indices_add_up' is neither 'true' nor 'false'"
    if "escape_time_quantile" in dataset:
        overlap = dataset["escape_time_quantile"].attrs.get("escape_overlap")
        if not isinstance(overlap, float) or not 0 < overlap <= 1:
            yield "variable 'escape_time_quantile' has no attribute 'escape_overlap' in (0, 1]"


def _faults_of_sizes(dataset: xr.Dataset) -> Iterator[str]:
    sizes = dataset.sizes
    if "channel_" in sizes and sizes["channel_"] != sizes.get("channel"):
        yield f"dim 'channel_' has size {sizes['channel_']}, and 'channel' {sizes.get('channel')}: they must be equal"
    if "row" in sizes and sizes["row"] != sizes.get("column"):
        yield f"dim 'row' has size {sizes['row']}, and 'column' {sizes.get('column')}: they must be equal"
    for name, size in (("bound", 2), *((("quantile", 3),) if "escape_time_quantile" in dataset else ())):
        if name in sizes and sizes[name] != size:
            yield f"dim '{name}' has size {sizes[name]}, not {size}"
    for name in ("line", "row", "dimension"):
        if sizes.get(name) == 0:
            yield f"dim '{name}' has size 0"


def _faults_of_channels(dataset: xr.Dataset, channels: int) -> Iterator[str]:
    """Faults of what differs from one channel to several."""
    if "Lambda" in dataset:
        values = dataset["Lambda"].values
        diffusion = values if channels == 1 else np.einsum("...kk->...k", values)
        if np.any(diffusion < 0):
            yield f"variable 'Lambda' holds {diffusion[diffusion < 0][0]:.6g}, outside [0, inf]"
    if channels == 1:
        return
    for name in ("M", "M_mean"):
        if name in dataset:
            yield from _faults_of_overlaps(dataset, name)


def _faults_of_overlaps(dataset: xr.Dataset, name: str) -> Iterator[str]:
    """Faults of overlaps M of channels: those of unit vectors that have the overlaps q with features."""
    M = dataset[name].transpose(..., "channel", "channel_").values
    M = M[np.isfinite(M).all(axis=(-2, -1))]
    if np.any(np.abs(M - np.swapaxes(M, -1, -2)) > SUM_TOLERANCE):
        yield f"variable '{name}' is not symmetric"
    elif np.any(np.abs(np.einsum("...kk->...k", M) - 1.0) > SUM_TOLERANCE):
        yield f"variable '{name}' has no unit diagonal"
    elif M.size and np.linalg.eigvalsh(M).min() < -OVERLAP_TOLERANCE:
        yield f"variable '{name}' has an eigenvalue below 0, and unit vectors have no such overlaps"
