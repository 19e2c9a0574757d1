"""Distances of densities and of the weights of SGD, for families whose limit is a density of weights given u."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from meanfield.comparison import conditional
from meanfield.comparison.single_laws import diagonals, weights_alone
from meanfield.mckean_vlasov.cells import edges_of, nodes_of
from meanfield.numerics.distances import (
    expected_kolmogorov_smirnov,
    expected_wasserstein,
    kolmogorov_smirnov,
    l1_distance,
    rebin,
    wasserstein,
)
from meanfield.process.progress import counted
from meanfield.results.schema import family_of_result, problem_of
from meanfield.typing import FloatArray


def distances(datasets: Sequence[xr.Dataset], pairs: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """L1 distance of densities; Wasserstein-1 and Kolmogorov-Smirnov distance of weights and densities.

    Parameters
    ----------
    datasets : sequence of xarray.Dataset
        Results of one problem.
    pairs : sequence of (int, int)

    Returns
    -------
    dict
        The variables of `meanfield.mckean_vlasov.declarations.DISTANCES`, of two channels also those of the sums and
        differences of their weights; NaN where a pair cannot be compared so. And `snapshot_time`.
    """
    every = [dataset["snapshot_time"].values for dataset in datasets if "weights" in dataset]
    snapshots = np.unique(np.concatenate(every)) if every else np.empty(0)
    first = datasets[0]
    sizes = {
        "pair": len(pairs),
        "time": first.sizes["time"],
        "snapshot_time": len(snapshots),
        "feature": first.sizes["feature"],
        "group": len(conditional.CENTRES),
    }
    held = problem_of(first).fixed_dims
    sizes |= {dim: size for dim, size in held.items() if dim not in sizes}
    family = family_of_result(first)
    known = {name: family.variables[name] for name in family.distances}
    result = {
        name: np.full([sizes[dim] for dim in (*v.dims, *(dim for dim in v.last_dims if dim in held))], np.nan)
        for name, v in known.items()
        if family.exists(v, held)
    }
    for row, (i, j) in enumerate(pairs):
        _fill_in(datasets[i], datasets[j], snapshots, {name: values[row] for name, values in result.items()})
    return result | {"snapshot_time": snapshots}


def _fill_in(first: xr.Dataset, second: xr.Dataset, snapshots: FloatArray, row: dict[str, Any]) -> None:
    """Fill in the distances of one pair."""
    kinds = first.attrs["method"], second.attrs["method"]
    if kinds == ("density", "density"):
        row["P_l1"][...] = _l1(first, second)
    elif sorted(kinds) == ["density", "particles"]:
        density, particles = (first, second) if kinds[0] == "density" else (second, first)
        if "weights" not in particles:
            return
        for index, snapshot in enumerate(counted(snapshots.tolist(), "distances", "snapshot")):
            if snapshot in particles["snapshot_time"].values:
                _compare_snapshot(density, particles, float(snapshot), index, row)


def _l1(first: xr.Dataset, second: xr.Dataset) -> FloatArray:
    """Integral of |P - P'| over w, averaged over u, on the coarser cells; of the marginals if the nodes differ."""
    if "channel" in first["P"].dims:
        each = [_l1(first.isel(channel=k), second.isel(channel=k)) for k in range(first.sizes["channel"])]
        return np.asarray(np.max(each, axis=0))
    P, Q = first["P"].values, second["P"].values
    (u, weight), (other_u, _) = nodes_of(first), nodes_of(second)
    if u.shape != other_u.shape or not np.allclose(u, other_u):
        P, Q = (conditional.marginal_of(dataset).values[:, None] for dataset in (first, second))
        weight = np.ones(1)
    edges, others = edges_of(first), edges_of(second)
    if len(edges) > len(others):
        edges, others, P, Q = others, edges, Q, P
    if not np.array_equal(edges, others):
        Q = rebin(others, Q, edges)
    return np.asarray(l1_distance(edges, P, Q) @ weight)


def _compare_snapshot(
    density: xr.Dataset, particles: xr.Dataset, snapshot: float, index: int, result: dict[str, Any]
) -> None:
    """Fill in the distances between weights and density at one snapshot."""
    for place, law, weights in weights_alone(density, particles):
        for name, value in _of_all(law, weights, snapshot).items():
            result[name][index, *place] = value
        for feature in range(density.sizes["feature"]):
            laws = conditional.laws_given_u(law, snapshot, feature)
            for number, group in enumerate(conditional.groups_of(law, feature)):
                result["group_u"][feature, number] = group.centre
                w, _, membership = conditional.group_sample(weights, snapshot, feature, group)
                F, variance = conditional.group_distribution(laws, feature, group)
                for name, value in _distances(w, membership, edges_of(density), F, variance).items():
                    result[f"{name}_given_u"][index, feature, number, *place] = value
    for place, law, weights in diagonals(density, particles):
        for name, value in _of_all(law, weights, snapshot).items():
            result[f"{name}_diagonal"][index, *place] = value


def _of_all(density: xr.Dataset, particles: xr.Dataset, snapshot: float) -> dict[str, float]:
    """Distances of all weights, whatever their u."""
    everything = particles["weights"].sel(snapshot_time=snapshot, method="nearest").values.ravel()
    F, variance = conditional.marginal_distribution(density, snapshot)
    return _distances(everything, np.ones_like(everything), edges_of(density), F, variance)


def _distances(
    sample: FloatArray, weights: FloatArray, edges: FloatArray, F: FloatArray, variance: FloatArray
) -> dict[str, float]:
    return {
        "W1": wasserstein(sample, weights, edges, F),
        "W1_expected": expected_wasserstein(len(sample), edges, variance),
        "KS": kolmogorov_smirnov(sample, weights, edges, F),
        "KS_expected": expected_kolmogorov_smirnov(weights),
    }
