"""Comparison of results of one problem pair by pair, in the units in which each pair can be judged."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr

from meanfield.errors import InputError
from meanfield.problems.family import Family, resolve
from meanfield.results.provenance import provenance
from meanfield.results.schema import build_dataset, check_dataset, family_of_result, kind_of, label_of, problem_of
from meanfield.typing import FloatArray

NO_SPREAD = 1e-12
"""Largest standard error that is rounding: it is that of replicas which all start from the same overlap."""


def compare(*datasets: xr.Dataset, labels: Sequence[str] | None = None) -> xr.Dataset:
    """Compare two or more results of the same problem, pair by pair.

    Parameters
    ----------
    *datasets : xarray.Dataset
        Results of any methods.
    labels : sequence of str, optional
        Their names in the report; by default their methods.

    Returns
    -------
    xarray.Dataset
        Variables with the dim `pair`; what a pair cannot be compared in is NaN. Differences are second minus first.
        Overlaps q and prior work r come with the standard error of the replicas' mean where there are replicas.
        Weights of SGD against a density: W1 and KS distance, marginally and conditionally on groups of u, each
        beside its mean over independent samples of that size. Density against density: L1 distance.

    Raises
    ------
    InputError
        If there are fewer than two results, one of them failed, or their problems differ in what decides the limit.
    """
    started = time.perf_counter()
    for dataset in datasets:
        check_dataset(dataset)
    names = list(labels) if labels is not None else _default_labels(datasets)
    _check(datasets, names)
    pairs = list(combinations(range(len(datasets)), 2))
    family = family_of_result(datasets[0])
    arrays: dict[str, Any] = {"pair": np.array([f"{names[i]} - {names[j]}" for i, j in pairs])}
    for name in family.compared:
        arrays |= _differences(name, datasets, pairs)
    arrays |= {name: datasets[0][name].values for name in _coordinates(family) if name in datasets[0]}
    if family.measure_distances:
        arrays |= resolve(family.measure_distances)(datasets, pairs)
    problem = problem_of(datasets[0])
    return build_dataset("comparison", problem, arrays, "complete", provenance(time.perf_counter() - started))


def is_comparable(dataset: xr.Dataset) -> bool:
    """Whether a result is in time and holds variables that `compare` compares."""
    held = set(map(str, dataset.variables))
    compared = {word for name in family_of_result(dataset).compared for word in (name, f"{name}_mean")}
    return kind_of(dataset).leading == "time" and bool(held & compared)


def _coordinates(family: Family) -> list[str]:
    """Coordinates along which compared variables have values."""
    dims = {dim for variable in family.compared.values() for dim in variable.dims}
    return [name for name in family.variables if name in dims]


def _default_labels(datasets: Sequence[xr.Dataset]) -> list[str]:
    methods = [str(dataset.attrs.get("method")) for dataset in datasets]
    return [f"{m} {i + 1}" if methods.count(m) > 1 else m for i, m in enumerate(methods)]


def _check(datasets: Sequence[xr.Dataset], names: list[str]) -> None:
    if len(datasets) < 2:
        raise InputError(f"{len(datasets)} result(s) given, but a comparison needs two or more; add another")
    if len(names) != len(datasets):
        raise InputError(f"{len(names)} labels for {len(datasets)} results; give one label each")
    first, family = problem_of(datasets[0]).limit(), family_of_result(datasets[0])
    for name, dataset in zip(names, datasets, strict=True):
        if dataset.attrs["method"] == "comparison":
            raise InputError(f"{name}: is itself a comparison; give results of the solvers")
        if not is_comparable(dataset):
            raise InputError(f"{name}: is a result of kind '{dataset.attrs['method']}', and only those in time compare")
        if dataset.attrs["status"].startswith("failed"):
            raise InputError(f"{name}: its run {dataset.attrs['status']}; compare only runs that did not fail")
        other = family_of_result(dataset)
        if other is not family:
            raise InputError(f"{names[0]} and {name} are of the families '{family.name}' and '{other.name}'")
        differing = differing_keys(first, problem_of(dataset).limit())
        if differing:
            raise InputError(
                f"{names[0]} and {name} solve different problems: {'; '.join(differing)}; "
                "run both solvers on the same problem file"
            )


def differing_keys(first: Any, second: Any, path: str = "") -> list[str]:
    """Dotted keys, with both values, in which two nested structures differ."""
    if isinstance(first, dict) and isinstance(second, dict):
        keys = [*first, *(key for key in second if key not in first)]
        parts = [(f"{path}.{key}" if path else str(key), first.get(key), second.get(key)) for key in keys]
    elif isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        parts = [(f"{path}[{i}]", a, b) for i, (a, b) in enumerate(zip(first, second, strict=True))]
    elif isinstance(first, tuple) and isinstance(second, tuple):
        return [f"{path}: {len(first)} against {len(second)}"]
    else:
        return [] if first == second else [f"{path} = {first!r} against {second!r}"]
    return [text for key, a, b in parts for text in differing_keys(a, b, key)]


def _differences(name: str, datasets: Sequence[xr.Dataset], pairs: list[tuple[int, int]]) -> dict[str, FloatArray]:
    """Differences of a variable and their standard errors, NaN where a result does not hold it."""
    moments = [_moments(dataset, name) for dataset in datasets]
    known = next((found[0] for found in moments if found is not None), None)
    shape = _shape(name, datasets) if known is None else known.shape
    difference, error = np.full((2, len(pairs), *shape), np.nan)
    for row, (i, j) in enumerate(pairs):
        first, second = moments[i], moments[j]
        if first is not None and second is not None:
            difference[row] = second[0] - first[0]
            spread = np.sqrt(first[1] + second[1])
            error[row] = np.where(spread > NO_SPREAD, spread, np.nan)
    return {f"{name}_difference": difference, f"{name}_standard_error": error}


def _shape(name: str, datasets: Sequence[xr.Dataset]) -> tuple[int, ...]:
    """Shape of a variable that none of the results holds."""
    sizes = {dim: size for dataset in datasets for dim, size in dataset.sizes.items()}
    dims = family_of_result(datasets[0]).compared[name].dims
    return tuple(sizes[dim] for dim in dims)


def _moments(dataset: xr.Dataset, name: str) -> tuple[FloatArray, FloatArray] | None:
    """Mean of a variable over replicas and the variance of that mean, NaN where unknown; None if it is absent."""
    if f"{name}_mean" in dataset:
        count = int(dataset["count"]) * label_of(dataset, "dimension")
        return dataset[f"{name}_mean"].values, _variance(dataset, name) / max(count, 1)
    if name not in dataset:
        return None
    values = dataset[name]
    if "replica" not in values.dims:
        return values.values, np.zeros(values.shape)
    mean, replicas = values.mean("replica").values, values.sizes["replica"]
    if replicas == 1:
        return mean, np.full(mean.shape, np.nan)
    return mean, values.var("replica", ddof=1).values / replicas


def _variance(dataset: xr.Dataset, name: str) -> FloatArray:
    """Variance over replicas times N, which statistics hold for a single number or as a part of a covariance."""
    if f"{name}_variance" in dataset:
        return np.asarray(dataset[f"{name}_variance"].values)
    return np.asarray(np.einsum("...kk->...k", dataset[f"{name}_covariance"].values))


def format_comparison(report: xr.Dataset) -> str:
    """Comparison as text: for each pair the largest difference of each quantity over time.

    Parameters
    ----------
    report : xarray.Dataset
        From `compare`.
    """
    lines = []
    for index, pair in enumerate(report["pair"].values):
        lines.append(str(pair))
        lines += [f"  {name:<44} {value}" for name, value in summary_of_pair(report.isel(pair=index))]
    return "\n".join(lines)


def summary_of_pair(report: xr.Dataset) -> list[tuple[str, str]]:
    """Largest differences of a pair of results over time, as names and values.

    Parameters
    ----------
    report : xarray.Dataset
        One pair of what `compare` returns.
    """
    rows = []
    for name in family_of_result(report).compared:
        difference, error = report[f"{name}_difference"].values, report[f"{name}_standard_error"].values
        if np.any(np.isfinite(difference)):
            rows.append((f"max |difference of {name}|", f"{np.nanmax(np.abs(difference)):.2e}"))
        if np.any(np.isfinite(error)):
            rows.append(("  in standard errors, max over time", f"{np.nanmax(np.abs(difference / error)):.2f}"))
    if "P_l1" in report and np.any(np.isfinite(report["P_l1"])):
        rows.append(("max L1 distance of P", f"{np.nanmax(report['P_l1'].values):.2e}"))
    return [*rows, *(_worst_distances(report) if "W1" in report else [])]


def _worst_distances(report: xr.Dataset) -> list[tuple[str, str]]:
    """Largest distances of weights and density over snapshots and groups, in units of their means by sampling alone."""
    rows = []
    for name, what in (("", "w"), ("_given_u", "w given u, worst group")):
        for distance in ("W1", "KS"):
            value, expected = report[f"{distance}{name}"].values, report[f"{distance}_expected{name}"].values
            if np.any(np.isfinite(value)):
                worst = np.nanargmax(value / expected)
                text = f"{value.flat[worst]:.4f}  (sampling alone: {expected.flat[worst]:.4f})"
                rows.append((f"{distance} distance of {what}", text))
    return rows
