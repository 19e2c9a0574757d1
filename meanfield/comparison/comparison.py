"""Compare results of one problem pair by pair, in the units in which each pair can be judged."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr

from meanfield.comparison import conditional
from meanfield.errors import InputError
from meanfield.families.contrastive.results import METHODS, VARIABLES
from meanfield.numerics.distances import (
    expected_kolmogorov_smirnov,
    expected_wasserstein,
    kolmogorov_smirnov,
    l1_distance,
    rebin,
    wasserstein,
)
from meanfield.results.provenance import provenance
from meanfield.results.schema import build_dataset, problem_of
from meanfield.typing import FloatArray

NO_SPREAD = 1e-12
"""A standard error below this is rounding: all replicas start from the same overlap."""


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
    names = list(labels) if labels is not None else _default_labels(datasets)
    _check(datasets, names)
    pairs = list(combinations(range(len(datasets)), 2))
    shape = _Shape(datasets)
    rows = [_compare_pair(datasets[i], datasets[j], shape) for i, j in pairs]
    arrays: dict[str, Any] = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    arrays["pair"] = np.array([f"{names[i]} - {names[j]}" for i, j in pairs])
    arrays["time"] = shape.times
    arrays["snapshot_time"] = shape.snapshots
    problem = problem_of(datasets[0])
    return build_dataset("comparison", problem, arrays, "complete", provenance(time.perf_counter() - started))


def _default_labels(datasets: Sequence[xr.Dataset]) -> list[str]:
    methods = [str(dataset.attrs.get("method")) for dataset in datasets]
    return [f"{m} {i + 1}" if methods.count(m) > 1 else m for i, m in enumerate(methods)]


def _check(datasets: Sequence[xr.Dataset], names: list[str]) -> None:
    if len(datasets) < 2:
        raise InputError(f"{len(datasets)} result(s) given, but a comparison needs two or more; add another")
    if len(names) != len(datasets):
        raise InputError(f"{len(names)} labels for {len(datasets)} results; give one label each")
    first = problem_of(datasets[0]).limit()
    for name, dataset in zip(names, datasets, strict=True):
        if dataset.attrs["method"] == "comparison":
            raise InputError(f"{name}: is itself a comparison; give results of the solvers")
        if dataset.attrs["status"].startswith("failed"):
            raise InputError(f"{name}: its run {dataset.attrs['status']}; compare only runs that did not fail")
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


class _Shape:
    """Sizes that all pairs of a comparison share."""

    def __init__(self, datasets: Sequence[xr.Dataset]) -> None:
        self.times = datasets[0]["time"].values
        self.features = datasets[0].sizes["feature"]
        particles = [d for d in datasets if d.attrs["method"] == "particles"]
        every = [d["snapshot_time"].values for d in particles if "weights" in d]
        self.snapshots = np.unique(np.concatenate(every)) if every else np.empty(0)

    def empty(self, name: str) -> FloatArray:
        """NaN in the shape of a variable of the comparison, without the dim `pair`."""
        sizes = {
            "time": len(self.times),
            "snapshot_time": len(self.snapshots),
            "feature": self.features,
            "group": len(conditional.CENTRES),
        }
        return np.full([sizes[dim] for dim in VARIABLES[name].dims[1:]], np.nan)


def _compare_pair(first: xr.Dataset, second: xr.Dataset, shape: _Shape) -> dict[str, FloatArray]:
    result = {name: shape.empty(name) for name in METHODS["comparison"] if VARIABLES[name].dims[0] == "pair"}
    del result["pair"]
    for name in ("q", "r"):
        moments = [_moments(dataset, name) for dataset in (first, second)]
        if moments[0] is not None and moments[1] is not None:
            difference, error = _difference(moments[0], moments[1])
            result[f"{name}_difference"], result[f"{name}_standard_error"] = difference, error
    methods = first.attrs["method"], second.attrs["method"]
    if methods == ("density", "density"):
        result["P_l1"] = _l1(first, second)
    elif sorted(methods) == ["density", "particles"]:
        density, particles = (first, second) if methods[0] == "density" else (second, first)
        if "weights" not in particles:
            return result
        for index, snapshot in enumerate(shape.snapshots):
            if np.any(np.isclose(particles["snapshot_time"].values, snapshot)):
                _compare_snapshot(density, particles, float(snapshot), index, result)
    return result


def _moments(dataset: xr.Dataset, name: str) -> tuple[FloatArray, FloatArray] | None:
    """Mean of q or r over replicas and the variance of that mean, NaN where unknown; None of what is not there."""
    if f"{name}_mean" in dataset:
        spread = dataset["r_variance"].values if name == "r" else np.einsum("tkk->tk", dataset["q_covariance"].values)
        count = int(dataset["count"]) * problem_of(dataset).particles.dimension
        return dataset[f"{name}_mean"].values, spread / max(count, 1)
    if name not in dataset:
        return None
    values = dataset[name]
    if "replica" not in values.dims:
        return values.values, np.zeros(values.shape)
    mean, replicas = values.mean("replica").values, values.sizes["replica"]
    if replicas == 1:
        return mean, np.full(mean.shape, np.nan)
    return mean, values.var("replica", ddof=1).values / replicas


def _difference(
    first: tuple[FloatArray, FloatArray], second: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Difference of means, and its standard error, NaN without replicas."""
    error = np.sqrt(first[1] + second[1])
    return second[0] - first[0], np.where(error > NO_SPREAD, error, np.nan)


def _l1(first: xr.Dataset, second: xr.Dataset) -> FloatArray:
    """Integral of |P - P'| over w, averaged over u, on the coarser cells; of the marginals if the nodes differ."""
    P, Q = first["P"].values, second["P"].values
    weight = first["u_weight"].values
    if first["u"].shape != second["u"].shape or not np.allclose(first["u"], second["u"]):
        P, Q = (weight @ P)[:, None], (second["u_weight"].values @ Q)[:, None]
        weight = np.ones(1)
    edges, others = first["w_edge"].values, second["w_edge"].values
    if len(edges) > len(others):
        edges, others, P, Q = others, edges, Q, P
    if not np.array_equal(edges, others):
        Q = rebin(others, Q, edges)
    return np.asarray(l1_distance(edges, P, Q) @ weight)


def _compare_snapshot(
    density: xr.Dataset, particles: xr.Dataset, snapshot: float, index: int, result: dict[str, FloatArray]
) -> None:
    """Fill in the distances between weights and density at one snapshot."""
    edges = density["w_edge"].values
    everything = particles["weights"].sel(snapshot_time=snapshot, method="nearest").values.ravel()
    F, variance = conditional.marginal_distribution(density, snapshot)
    for name, value in _distances(everything, np.ones_like(everything), edges, F, variance).items():
        result[name][index] = value
    for feature in range(density.sizes["feature"]):
        for place, group in enumerate(conditional.groups_of(density, feature)):
            result["group_u"][feature, place] = group.centre
            w, _, membership = conditional.group_sample(particles, snapshot, feature, group)
            F, variance = conditional.group_distribution(density, snapshot, feature, group)
            for name, value in _distances(w, membership, edges, F, variance).items():
                result[f"{name}_given_u"][index, feature, place] = value


def _distances(
    sample: FloatArray, weights: FloatArray, edges: FloatArray, F: FloatArray, variance: FloatArray
) -> dict[str, float]:
    return {
        "W1": wasserstein(sample, weights, edges, F),
        "W1_expected": expected_wasserstein(len(sample), edges, variance),
        "KS": kolmogorov_smirnov(sample, weights, edges, F),
        "KS_expected": expected_kolmogorov_smirnov(weights),
    }


def format_comparison(report: xr.Dataset) -> str:
    """A table of a comparison: the worst of each quantity over time, one pair per block.

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
    """What a pair of a comparison differs in, the worst over time, as names and values.

    Parameters
    ----------
    report : xarray.Dataset
        One pair of what `compare` returns.
    """
    rows = []
    for name in ("q", "r"):
        difference, error = report[f"{name}_difference"].values, report[f"{name}_standard_error"].values
        if np.any(np.isfinite(difference)):
            rows.append((f"max |difference of {name}|", f"{np.nanmax(np.abs(difference)):.2e}"))
        if np.any(np.isfinite(error)):
            rows.append(("  in standard errors, max over time", f"{np.nanmax(np.abs(difference / error)):.2f}"))
    if np.any(np.isfinite(report["P_l1"])):
        rows.append(("max L1 distance of P", f"{np.nanmax(report['P_l1'].values):.2e}"))
    for name, what in (("", "w"), ("_given_u", "w given u, worst group")):
        for distance in ("W1", "KS"):
            value, expected = report[f"{distance}{name}"].values, report[f"{distance}_expected{name}"].values
            if np.any(np.isfinite(value)):
                worst = np.nanargmax(value / expected)
                text = f"{value.flat[worst]:.4f}  (sampling alone: {expected.flat[worst]:.4f})"
                rows.append((f"{distance} distance of {what}", text))
    return rows
