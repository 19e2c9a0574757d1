"""Key numbers of results with their errors, kind by kind; a family names them in its declarations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from meanfield.numerics.growth_rates import VERDICTS
from meanfield.plotting.trajectories import MOST_ENTRIES, all_entries
from meanfield.results.result import Result
from meanfield.results.text import plain, with_error

QUANTITIES = (("q", "overlap"), ("M", "overlap of channels"), ("r", "prior work"))
"""Numbers in time that have key numbers, with their names in words."""


def _last(dataset: xr.Dataset, name: str) -> tuple[xr.Dataset, str] | None:
    """Last output time that was reached, and its label."""
    values = dataset[name].transpose("time", ...).values
    reached = np.flatnonzero(np.isfinite(values.reshape(len(values), -1)).any(axis=1))
    if not len(reached):
        return None
    at = int(reached[-1])
    return dataset.isel(time=at), f"at t = {float(dataset['time'][at]):g}"


def of_the_limit(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Key numbers of densities and order parameters: values with estimated errors, or with the spread of SGD."""
    found = _last(dataset, "q")
    if found is None:
        return
    last, when = found
    for quantity, words in QUANTITIES:
        if quantity in last:
            for name, place in _names(last, quantity):
                error = float(last[f"{quantity}_error"].isel(place)) if f"{quantity}_error" in last else math.nan
                yield f"{words} {name} {when}", with_error(float(last[quantity].isel(place)), error)
            yield from _cut(last, quantity, words)
    for name, place in _names(last, "Lambda"):
        yield f"diffusion coefficient {name} {when}", plain(float(last["Lambda"].isel(place)))
    yield from _cut(last, "Lambda", "diffusion coefficient")
    if "P_error" in last:
        yield "estimated L1 error of P", plain(float(last["P_error"]))
    if "q_covariance" in last and "channel" not in last.dims:
        N = Result.of(dataset).label("dimension")
        for k, name in enumerate(overlap_names(last)):
            spread = math.sqrt(max(float(last["q_covariance"].values[k, k]), 0.0) / N)
            yield f"spread of {name} over runs of SGD at N = {N:,}", plain(spread)


def of_particles(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Key numbers of replicas: means with their standard errors."""
    found = _last(dataset, "q")
    if found is None:
        return
    last, when = found
    yield "replicas", f"{last.sizes.get('replica', 1):,}"
    for quantity, words in QUANTITIES:
        if quantity in last:
            for name, place in _names(last, quantity):
                values = last[quantity].isel(place).values.reshape(-1)
                yield f"{words} {name} {when}, mean and standard error", _mean(values)
            yield from _cut(last, quantity, words)
    yield from _of_escapes(dataset)


def of_an_ensemble(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Key numbers of statistics of an ensemble, with standard errors of the means."""
    found = _last(dataset, "q_mean")
    count, N = int(dataset["count"]), Result.of(dataset).label("dimension")
    yield "replicas", f"{count:,}"
    if found is None:
        return
    last, when = found
    for quantity, words in QUANTITIES:
        if f"{quantity}_mean" in last:
            for name, place in _names(last, quantity, "_mean"):
                spread = math.sqrt(max(_variance(last, quantity, place), 0.0) / N)
                mean = with_error(float(last[f"{quantity}_mean"].isel(place)), spread / math.sqrt(max(count, 1)))
                yield f"{words} {name} {when}, mean and standard error", mean
                if quantity != "r":
                    yield f"spread of {name} over replicas", plain(spread)
            yield from _cut(last, quantity, words, "_mean")
    yield from _of_escapes(dataset)


def _variance(last: xr.Dataset, quantity: str, place: dict[str, int]) -> float:
    """N times the variance of an entry, from the variances that an ensemble keeps or from its covariances."""
    if f"{quantity}_variance" in last:
        return float(last[f"{quantity}_variance"].isel(place))
    return float(last[f"{quantity}_covariance"].isel(place | {f"{dim}_": at for dim, at in place.items()}))


def _of_escapes(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Key numbers of escape times and winners, where they were kept."""
    if "escape_time" not in dataset:
        return
    times = dataset["escape_time"].values
    escaped = times[np.isfinite(times)]
    yield "replicas that escaped", f"{len(escaped):,} of {len(times):,}"
    if len(escaped):
        yield "median escape time of these", plain(float(np.median(escaped)))
    winners = dataset["winner"].values if "winner" in dataset else np.empty(0)
    features = int(dataset.sizes["feature"])
    if features > 1 and len(winners):
        for k in range(features):
            yield f"replicas in which feature {k + 1} won", f"{np.count_nonzero(winners == k):,}"


def of_states(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Key numbers of stationary states or fixed points: how many there are of each stability."""
    dim = dataset["stability"].dims[0]
    verdicts = dataset["stability"].values
    yield f"{'points on branches' if dim == 'point' else 'states'}", f"{len(verdicts)}"
    for code, word in VERDICTS.items():
        if np.any(verdicts == code):
            yield f"of these {word}", f"{np.count_nonzero(verdicts == code)}"


def of_a_sweep(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Key numbers of a sweep: the axes, and the range of each number that is kept at every point."""
    for axis in dataset["status"].dims:
        values, key = dataset[axis].values, str(dataset[axis].attrs["key"])
        ends = [plain(float(end)) if values.dtype.kind in "fiu" else str(end) for end in values[[0, -1]]]
        yield f"axis {key}", f"{len(values)} values from {ends[0]} to {ends[1]}"
    for name, variable in dataset.data_vars.items():
        finite = variable.values[np.isfinite(variable.values)] if variable.dtype.kind in "fiu" else np.empty(0)
        if variable.dims == dataset["status"].dims and finite.size:
            yield f"{name}: {variable.attrs['long_name']}", f"{plain(finite.min())} to {plain(finite.max())}"


def _names(last: xr.Dataset, quantity: str, ending: str = "") -> list[tuple[str, dict[str, int]]]:
    """Names of the first entries of a quantity, without index where there is one, and their places."""
    return _all_names(last, quantity, ending)[:MOST_ENTRIES]


def _all_names(last: xr.Dataset, quantity: str, ending: str = "") -> list[tuple[str, dict[str, int]]]:
    """Names and places of all entries of the variable with an ending, such as `_mean`; M has no diagonal."""
    values = last[quantity + ending]
    alone = all(size == 1 for dim, size in values.sizes.items() if dim != "replica")
    return [
        (quantity if alone else f"{quantity}{index}", place)
        for index, place in all_entries(values)
        if quantity != "M" or place["channel"] != place["channel_"]
    ]


def _cut(last: xr.Dataset, quantity: str, words: str, ending: str = "") -> Iterator[tuple[str, str]]:
    """Number of entries of a quantity that have key numbers, where these are not all."""
    known = len(_all_names(last, quantity, ending))
    if known > MOST_ENTRIES:
        yield f"entries of {words} {quantity}", f"{MOST_ENTRIES} of {known} shown"


def _mean(values: Any) -> str:
    finite = values[np.isfinite(values)]
    error = finite.std(ddof=1) / math.sqrt(len(finite)) if len(finite) > 1 else math.nan
    return with_error(float(finite.mean()), float(error)) if len(finite) else "nothing finite"


def overlap_names(dataset: xr.Dataset) -> list[str]:
    """Symbol of the overlap with each feature: q, or q1, q2 where there are several."""
    count = int(dataset.sizes["feature"])
    return ["q"] if count == 1 else [f"q{k + 1}" for k in range(count)]
