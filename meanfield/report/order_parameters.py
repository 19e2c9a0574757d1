"""Numbers of order parameters that are matrices, vectors or numbers in time, for reports."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import xarray as xr

from meanfield.results.text import with_error
from meanfield.typing import FloatArray

Labels = Mapping[str, str]
"""What variables are called, of which those with several entries count these from 1: `R` becomes R11."""


def at_the_end(dataset: xr.Dataset, labels: Labels) -> Iterator[tuple[str, str]]:
    """Order parameters at the last time that was reached, with their errors where these are known."""
    reached = np.flatnonzero(np.isfinite(_flat(dataset[next(iter(labels))])).all(axis=1))
    if not len(reached):
        return
    last = dataset.isel(time=reached[-1])
    when = f"at t = {float(last['time']):g}"
    for name, label in labels.items():
        values = last[name]
        errors = last[f"{name}_error"].values if f"{name}_error" in last else np.full(values.shape, math.nan)
        yield from _entries(label, values, errors, when)


def means_of_replicas(dataset: xr.Dataset, labels: Labels) -> Iterator[tuple[str, str]]:
    """Number of replicas, and means over those that reached the last time that any of them did."""
    yield "replicas", f"{dataset.sizes['replica']:,}"
    runs = dataset[next(iter(labels))].transpose("replica", "time", ...)
    finite = np.isfinite(runs.values.reshape(*runs.shape[:2], -1)).all(axis=2)
    reached = np.flatnonzero(finite.any(axis=0))
    if not len(reached):
        return
    last = dataset.isel(time=reached[-1], replica=np.flatnonzero(finite[:, reached[-1]]))
    count = last.sizes["replica"]
    for name, label in labels.items():
        mean = last[name].mean("replica")
        spread = last[name].std("replica", ddof=1).values if count > 1 else np.full(mean.shape, math.nan)
        yield from _entries(label, mean, spread / math.sqrt(count), _of_runs(last))


def means_of_an_ensemble(dataset: xr.Dataset, labels: Labels) -> Iterator[tuple[str, str]]:
    """Number of replicas, and the means that statistics keep."""
    count, N = int(dataset["count"]), float(dataset.attrs["dimension"])
    yield "replicas", f"{count:,}"
    reached = np.flatnonzero(np.isfinite(_flat(dataset[f"{next(iter(labels))}_mean"])).all(axis=1))
    if not len(reached):
        return
    last = dataset.isel(time=reached[-1])
    for name, label in labels.items():
        mean = last[f"{name}_mean"]
        spread = last[f"{name}_covariance" if mean.ndim else f"{name}_variance"].values
        variance = np.diag(spread.reshape(mean.size, mean.size)).reshape(mean.shape) if mean.ndim else spread
        yield from _entries(label, mean, np.sqrt(np.maximum(variance, 0.0) / N / max(count, 1)), _of_runs(last))


def _flat(values: xr.DataArray) -> FloatArray:
    """Values with one row for each time."""
    return values.transpose("time", ...).values.reshape(values.sizes["time"], -1)


def _of_runs(last: xr.Dataset) -> str:
    return f"at t = {float(last['time']):g}, mean and standard error"


def _entries(label: str, values: xr.DataArray, errors: FloatArray, when: str) -> Iterator[tuple[str, str]]:
    """Entries with their errors; of a symmetric matrix its upper triangle."""
    symmetric = values.ndim == 2 and values.dims[1] == f"{values.dims[0]}_"
    for place in np.ndindex(*values.shape):
        if not symmetric or place[0] <= place[1]:
            index = "".join(str(k + 1) for k in place)
            yield f"{label}{index} {when}", with_error(float(values.values[place]), float(errors[place]))
