"""Distances of densities and of the weights of SGD, for families whose limit is a density of weights given u."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from meanfield.comparison import conditional
from meanfield.mckean_vlasov.cells import edges_of, nodes_of
from meanfield.mckean_vlasov.declarations import DISTANCES
from meanfield.numerics.distances import (
    expected_kolmogorov_smirnov,
    expected_wasserstein,
    kolmogorov_smirnov,
    l1_distance,
    rebin,
    wasserstein,
)
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
        The variables of `meanfield.mckean_vlasov.declarations.DISTANCES`, NaN where a pair cannot be compared so, and
        `snapshot_time`.
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
    result = {name: np.full([sizes[dim] for dim in known.dims], np.nan) for name, known in DISTANCES.items()}
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
        for index, snapshot in enumerate(snapshots):
            if np.any(np.isclose(particles["snapshot_time"].values, snapshot)):
                _compare_snapshot(density, particles, float(snapshot), index, row)


def _l1(first: xr.Dataset, second: xr.Dataset) -> FloatArray:
    """Integral of |P - P'| over w, averaged over u, on the coarser cells; of the marginals if the nodes differ."""
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
    edges = edges_of(density)
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
