"""Distances of densities and of the weights of SGD, for families whose limit is a density of weights given u.

They are judged by the scatter of distribution functions of single runs minus that of the density: all weights of a run
share its overlap, its features and its length, so that runs are independent and weights are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from meanfield.comparison.distributions import (
    CENTRES,
    Condition,
    Pair,
    conditions_of,
    coordinates_of,
    diagonals,
    group_distribution,
    group_sample,
    groups_of,
    laws_given_u,
    marginal_distribution,
    marginal_of,
    vector_of,
    weights_alone,
)
from meanfield.comparison.rotations import Deviations, DeviationsAt, deviations_from, joined
from meanfield.comparison.sides import share_features
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
from meanfield.results.result import Result
from meanfield.typing import FloatArray


def distances(results: Sequence[Result], pairs: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """L1 distance of densities; Wasserstein-1 and Kolmogorov-Smirnov distance of weights and densities.

    Parameters
    ----------
    results : sequence of Result
        Of one problem.
    pairs : sequence of (int, int)

    Returns
    -------
    dict
        The variables of `meanfield.mckean_vlasov.declarations.DISTANCES`, of two channels also those of the sums and
        differences of their weights; NaN where a pair cannot be compared so. And `snapshot_time`.
    """
    every = [result.dataset["snapshot_time"].values for result in results if "weights" in result.dataset]
    snapshots = np.unique(np.concatenate(every)) if every else np.empty(0)
    first = results[0].dataset
    sizes = {
        "pair": len(pairs),
        "time": first.sizes["time"],
        "snapshot_time": len(snapshots),
        "feature": first.sizes["feature"],
        "group": len(CENTRES),
    }
    held = results[0].problem.fixed_dims
    sizes |= {dim: size for dim, size in held.items() if dim not in sizes}
    family = results[0].family
    known = {name: family.variables[name] for name in family.distances}
    found = {
        name: np.full([sizes[dim] for dim in (*v.dims, *v.behind(held))], np.nan)
        for name, v in known.items()
        if family.exists(v, held)
    }
    for row, (i, j) in enumerate(pairs):
        _fill_in(results[i], results[j], snapshots, {name: values[row] for name, values in found.items()})
    return found | {"snapshot_time": snapshots}


def _fill_in(first: Result, second: Result, snapshots: FloatArray, row: dict[str, Any]) -> None:
    """Fill in the distances of one pair."""
    kinds = first.method, second.method
    if kinds == ("density", "density"):
        row["P_l1"][...] = _l1(first, second)
    elif sorted(kinds) == ["density", "particles"]:
        density, particles = (first, second.dataset) if kinds[0] == "density" else (second, first.dataset)
        if "weights" not in particles:
            return
        for index, snapshot in enumerate(counted(snapshots.tolist(), "distances", "snapshot")):
            if snapshot in particles["snapshot_time"].values:
                _compare_snapshot(density, particles, float(snapshot), index, row)


def _l1(first: Result, second: Result) -> FloatArray:
    """Integral of |P - P'| over w, averaged over u, on the coarser cells; of the marginals if the nodes differ."""
    both = (first, second)
    vector = vector_of(first)
    if vector:
        numbers = range(first.dataset.sizes[vector])
        each = [_l1(*(result.part(result.dataset.isel({vector: k})) for result in both)) for k in numbers]
        return np.asarray(np.max(each, axis=0))
    P, Q = (result.dataset["P"].values for result in both)
    (u, weight), (other_u, _) = (nodes_of(result.dataset) for result in both)
    if u.shape != other_u.shape or not np.allclose(u, other_u):
        P, Q = (marginal_of(result).values[:, None] for result in both)
        weight = np.ones(1)
    edges, others = (edges_of(result.dataset) for result in both)
    if len(edges) > len(others):
        edges, others, P, Q = others, edges, Q, P
    if not np.array_equal(edges, others):
        Q = rebin(others, Q, edges)
    return l1_distance(edges, P, Q) @ weight


def _compare_snapshot(
    density: Result, particles: xr.Dataset, snapshot: float, index: int, result: dict[str, Any]
) -> None:
    """Fill in the distances between weights and density at one snapshot."""
    edges = edges_of(density.dataset)
    for place, law, weights, _ in weights_alone(density, particles):
        for name, value in _of_all(law, weights, snapshot).items():
            result[name][index, *place] = value
        for axis, given, at in conditions_of(law.dataset):
            laws = laws_given_u(law, snapshot, axis)
            for number, group in enumerate(groups_of(law.dataset, axis)):
                result[f"group_{given}"][*at, number] = group.centre
                w, _, membership = group_sample(weights, snapshot, axis, group)
                F, variance = group_distribution(laws, axis, group)
                for name, value in _distances(w, membership, edges, F, variance).items():
                    result[f"{name}_given_{given}"][index, *at, number, *place] = value
    for place, law, weights, _ in diagonals(density, particles):
        for name, value in _of_all(law, weights, snapshot).items():
            result[f"{name}_diagonal"][index, *place] = value


def _of_all(density: Result, particles: xr.Dataset, snapshot: float) -> dict[str, float]:
    """Distances of all weights, whatever their u."""
    everything = particles["weights"].sel(snapshot_time=snapshot, method="nearest").values.ravel()
    F, variance = marginal_distribution(density, snapshot)
    return _distances(everything, np.ones_like(everything), edges_of(density.dataset), F, variance)


def _distances(
    sample: FloatArray, weights: FloatArray, edges: FloatArray, F: FloatArray, variance: FloatArray
) -> dict[str, float]:
    return {
        "W1": wasserstein(sample, weights, edges, F),
        "W1_expected": expected_wasserstein(len(sample), edges, variance),
        "KS": kolmogorov_smirnov(sample, weights, edges, F),
        "KS_expected": expected_kolmogorov_smirnov(weights),
    }


def deviations(density: Result, simulated: Result, comparison: Result) -> list[Deviations]:
    """Deviations of which W1 and KS are made, marginal and given u, and given the variance of the noise.

    Parameters
    ----------
    density : Result
    simulated : Result
        SGD; without weights, or without a density, there are no deviations, nor where all runs share their features.
    comparison : Result
        In which the snapshots have their places.
    """
    runs = simulated.dataset
    if "weights" not in runs or "P" not in density.dataset or share_features(runs):
        return []
    places: dict[str, list[DeviationsAt]] = {"": [], "_given_u": [], "_given_rho": [], "_diagonal": []}
    snapshots = comparison.dataset["snapshot_time"].values.tolist()
    for index, time in enumerate(counted(snapshots, "deviations", "snapshot")):
        if time not in runs["snapshot_time"].values:
            continue
        for pair in weights_alone(density, runs):
            w = _weights(pair, float(time))
            if np.isfinite(w).all():
                places[""].append(_marginal(pair, w, float(time), index))
                for condition in conditions_of(pair.density.dataset):
                    u = coordinates_of(runs, condition.axis)
                    places[f"_given_{condition.name}"] += _given(condition, pair, w, u, float(time), index)
        for pair in diagonals(density, runs):
            w = _weights(pair, float(time))
            if np.isfinite(w).all():
                places["_diagonal"].append(_marginal(pair, w, float(time), index))
    return [joined(found, (f"W1{suffix}", f"KS{suffix}")) for suffix, found in places.items() if found]


def _weights(pair: Pair, time: float) -> FloatArray:
    return pair.particles["weights"].sel(snapshot_time=time, method="nearest").values


def _marginal(pair: Pair, w: FloatArray, time: float, index: int) -> DeviationsAt:
    density = pair.density.dataset
    F, _ = marginal_distribution(pair.density, time)
    points = _points(density, F)
    predicted = np.interp(points, edges_of(density), F)
    rows = deviations_from(w, np.ones_like(w), points, predicted)
    return DeviationsAt((index, *pair.place), np.gradient(points), rows, w.size, _error(density, time))


def _given(
    condition: Condition, pair: Pair, w: FloatArray, u: FloatArray, time: float, index: int
) -> Iterator[DeviationsAt]:
    density, axis = pair.density.dataset, condition.axis
    nodes, weight = nodes_of(density)
    laws = laws_given_u(pair.density, time, axis)
    for number, group in enumerate(groups_of(density, axis)):
        F, _ = group_distribution(laws, axis, group)
        points = _points(density, F)
        predicted = np.interp(points, edges_of(density), F)
        share = float(weight @ group.membership(nodes[:, axis]))
        membership = group.membership(u)
        rows = deviations_from(w, membership, points, predicted)
        position = (index, *condition.place, number, *pair.place)
        # the number of equal memberships of which a mean scatters as much (Kish, 1965)
        count = float(membership.sum() ** 2 / (membership**2).sum())
        yield DeviationsAt(position, np.gradient(points), rows, count, _error(density, time) / share)


def _points(density: xr.Dataset, F: FloatArray) -> FloatArray:
    """Weights that are dense where the density is high, and nowhere sparse."""
    edges = edges_of(density)
    inside = (F > 1e-6) & (F < 1 - 1e-6)
    edges, F = edges[inside], F[inside]
    # at 64 weights W1 between true pairs is right to a few 1e-3
    both = 0.5 * (F + (edges - edges[0]) / (edges[-1] - edges[0]))
    return np.interp(np.linspace(both[0], both[-1], 64), both, edges)


def _error(density: xr.Dataset, time: float) -> float:
    """Largest error of distribution functions; half of that of the density in L1, where no less is stated."""
    name, factor = ("F_error", 1.0) if "F_error" in density else ("P_error", 0.5)
    if name not in density:
        return 0.0
    return factor * float(np.nan_to_num(density[name].sel(time=time, method="nearest"), nan=0.0))
