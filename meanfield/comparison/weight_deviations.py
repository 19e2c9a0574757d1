"""Distribution functions of the weights of SGD minus that of a density, run by run, marginally and in groups of u.

All weights of a run share its overlap, its features and its length, so that runs are independent and weights are not.
What W1 and KS of true pairs are is seen in the scatter of these deviations from run to run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield.comparison import conditional
from meanfield.comparison.rotations import Deviations
from meanfield.comparison.single_laws import Pair, diagonals, weights_alone
from meanfield.mckean_vlasov.cells import edges_of, nodes_of
from meanfield.process.progress import counted
from meanfield.typing import FloatArray

POINTS = 64
"""Number of weights at which distribution functions are taken; W1 between true pairs is then right to a few 1e-3."""


class _Place(NamedTuple):
    """Deviations of all runs at one snapshot, from the marginal distribution or that of a group.

    Parameters
    ----------
    position : tuple of int
        Position in the variables of the comparison.
    points : ndarray, shape (points,)
        Weights.
    rows : ndarray, shape (runs, points)
    error : float
        Largest error of the predicted distribution function.
    """

    position: tuple[int, ...]
    points: FloatArray
    rows: FloatArray
    error: float


def deviations(density: xr.Dataset, runs: xr.Dataset, comparison: xr.Dataset) -> list[Deviations]:
    """Deviations of which W1 and KS are made, marginal and given u.

    Parameters
    ----------
    density : xarray.Dataset
    runs : xarray.Dataset
        SGD; without weights, or without a density, there are no deviations.
    comparison : xarray.Dataset
        In which the snapshots have their places.
    """
    if "weights" not in runs or "P" not in density:
        return []
    places: dict[str, list[_Place]] = {"": [], "_given_u": [], "_diagonal": []}
    for index, time in enumerate(counted(comparison["snapshot_time"].values.tolist(), "deviations", "snapshot")):
        if time not in runs["snapshot_time"].values:
            continue
        for pair in weights_alone(density, runs):
            w = _weights(pair, float(time))
            if np.isfinite(w).all():
                places[""].append(_marginal(pair, w, float(time), index))
                places["_given_u"] += _given_u(pair, w, runs["U"].values, float(time), index)
        for pair in diagonals(density, runs):
            w = _weights(pair, float(time))
            if np.isfinite(w).all():
                places["_diagonal"].append(_marginal(pair, w, float(time), index))
    return [_joined(found, suffix) for suffix, found in places.items() if found]


def _weights(pair: Pair, time: float) -> FloatArray:
    return np.asarray(pair.particles["weights"].sel(snapshot_time=time, method="nearest").values)


def _marginal(pair: Pair, w: FloatArray, time: float, index: int) -> _Place:
    density = pair.density
    F, _ = conditional.marginal_distribution(density, time)
    points = _points(density, F)
    predicted = np.interp(points, edges_of(density), F)
    return _Place((index, *pair.place), points, _scatter(w, np.ones_like(w), points, predicted), _error(density, time))


def _given_u(pair: Pair, w: FloatArray, U: FloatArray, time: float, index: int) -> Iterator[_Place]:
    density = pair.density
    u, u_weight = nodes_of(density)
    for k in range(density.sizes["feature"]):
        laws = conditional.laws_given_u(density, time, k)
        for number, group in enumerate(conditional.groups_of(density, k)):
            F, _ = conditional.group_distribution(laws, k, group)
            points = _points(density, F)
            predicted = np.interp(points, edges_of(density), F)
            share = float(u_weight @ group.membership(u[:, k]))
            rows = _scatter(w, group.membership(U[:, :, k]), points, predicted)
            yield _Place((index, k, number, *pair.place), points, rows, _error(density, time) / share)


def _points(density: xr.Dataset, F: FloatArray) -> FloatArray:
    """Weights that are dense where the density is high, and nowhere sparse."""
    edges = edges_of(density)
    inside = (F > 1e-6) & (F < 1 - 1e-6)
    edges, F = edges[inside], F[inside]
    both = 0.5 * (F + (edges - edges[0]) / (edges[-1] - edges[0]))
    return np.asarray(np.interp(np.linspace(both[0], both[-1], POINTS), both, edges))


def _scatter(w: FloatArray, membership: FloatArray, points: FloatArray, predicted: FloatArray) -> FloatArray:
    """Empirical minus predicted distribution functions of runs, whose mean over runs is that of all weights pooled."""
    places = np.searchsorted(points, w)
    size = len(points) + 1
    counts = np.array([np.bincount(p, m, size) for p, m in zip(places, membership, strict=True)])
    total = counts.sum(axis=1, keepdims=True)
    return np.asarray((np.cumsum(counts, axis=1)[:, :-1] - predicted * total) / total.mean())


def _error(density: xr.Dataset, time: float) -> float:
    """Largest error of distribution functions that an error of the density in L1 allows: half of it."""
    if "P_error" not in density:
        return 0.0
    return 0.5 * float(np.nan_to_num(density["P_error"].sel(time=time, method="nearest"), nan=0.0))


def _joined(places: list[_Place], suffix: str) -> Deviations:
    points = np.array([place.points for place in places])
    widths = np.gradient(points, axis=1)

    def integral(values: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("...px,px->...p", values, widths))

    return Deviations(
        rows=np.stack([place.rows for place in places], axis=1),
        allowance=np.array([np.full(POINTS, place.error) for place in places]),
        measures={f"W1{suffix}": integral, f"KS{suffix}": _largest},
        where=tuple(np.transpose([place.position for place in places])),
    )


def _largest(values: FloatArray) -> FloatArray:
    return np.asarray(values.max(axis=-1))
