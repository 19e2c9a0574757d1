"""Comparison of a density with weights of SGD, by residuals that are standard normal if the density is right.

The residual of a weight is its distance from the mean that the density predicts, given the eigenvalue and the teacher's
components, in units of the standard deviation. So weights of all eigenvalues are judged together, and those of students
apart. Where the eigenvalue is 0, as D - N are for D > N, components are 0 for any weights: nothing scatters there, and
a result in which they are not is refused (`meanfield.families.hidden_manifold.checks`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ndtr

from meanfield.comparison.rotations import Deviations
from meanfield.families.hidden_manifold.checks import is_kernel
from meanfield.families.hidden_manifold.spectra import interpolated
from meanfield.families.hidden_manifold.variables import DISTANCES
from meanfield.numerics.distances import (
    expected_kolmogorov_smirnov,
    expected_wasserstein,
    kolmogorov_smirnov,
    wasserstein,
)
from meanfield.process.progress import counted
from meanfield.results.numbers import plain
from meanfield.results.result import Result
from meanfield.typing import FloatArray

EDGES = np.linspace(-8.0, 8.0, 801)
"""Points at which the normal distribution function is taken: between them it is linear to 1e-5."""

POINTS = np.linspace(-3.0, 3.0, 61)
"""Points at which deviations of distribution functions are taken run by run."""


def distances(results: Sequence[Result], pairs: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Wasserstein-1 and Kolmogorov-Smirnov distances of residuals and the standard normal law.

    Parameters
    ----------
    results : sequence of Result
        Of one problem.
    pairs : sequence of (int, int)

    Returns
    -------
    dict
        The variables of `meanfield.families.hidden_manifold.results.DISTANCES`, NaN where a pair is not a density and
        weights, and `snapshot_time`.
    """
    datasets = [result.dataset for result in results]
    every = [dataset["snapshot_time"].values for dataset in datasets if "S" in dataset]
    snapshots = np.unique(np.concatenate(every)) if every else np.empty(0)
    shape = len(pairs), len(snapshots), datasets[0].sizes["student"]
    measured = {name: np.full(shape, np.nan) for name in DISTANCES}
    F = ndtr(EDGES)
    for row, (i, j) in enumerate(pairs):
        for prediction, runs in ((datasets[i], datasets[j]), (datasets[j], datasets[i])):
            for index, student, z in _residuals(prediction, runs, snapshots):
                sample, equal = z.ravel(), np.ones(z.size)
                measured["W1"][row, index, student] = wasserstein(sample, equal, EDGES, F)
                measured["W1_expected"][row, index, student] = expected_wasserstein(z.size, EDGES, F * (1.0 - F))
                measured["KS"][row, index, student] = kolmogorov_smirnov(sample, equal, EDGES, F)
                measured["KS_expected"][row, index, student] = expected_kolmogorov_smirnov(equal)
    return measured | {"snapshot_time": snapshots}


def deviations(prediction: Result, runs: Result, comparison: Result) -> list[Deviations]:
    """Distribution functions of residuals minus the normal one, run by run.

    Parameters
    ----------
    prediction : Result
    runs : Result
        SGD; without weights, or without a density, there are no deviations.
    comparison : Result
        In which the snapshots have their places.
    """
    found = list(_residuals(prediction.dataset, runs.dataset, comparison.dataset["snapshot_time"].values))
    if not found:
        return []
    rows = [np.mean(z[:, None, :] <= POINTS[:, None], axis=-1) - ndtr(POINTS) for _, _, z in found]
    spacing = POINTS[1] - POINTS[0]
    return [
        Deviations(
            rows=np.stack(rows, axis=1),
            allowance=np.zeros((len(rows), len(POINTS))),
            measures={"W1": lambda values: spacing * values.sum(axis=-1), "KS": lambda values: values.max(axis=-1)},
            where=(np.array([index for index, _, _ in found]), np.array([student for _, student, _ in found])),
        )
    ]


def left_out(first: Result, second: Result) -> Iterator[str]:
    """Weights of two results that are not judged, in words: those that vanish, and those without scatter."""
    one, other = first.dataset, second.dataset
    for prediction, runs in ((one, other), (other, one)):
        if "regression" not in prediction or "S" not in runs:
            continue
        kernel = int(is_kernel(runs["rho_of_coordinate"].values).any(axis=0).sum())
        if kernel:
            yield f"weights along {kernel} eigenvectors with the eigenvalue 0, where they vanish"
        snapshots = runs["snapshot_time"].values
        judged = {(index, student) for index, student, _ in _residuals(prediction, runs, snapshots)}
        for index, snapshot in enumerate(snapshots):
            missing = [k for k in range(runs.sizes["student"]) if (index, k) not in judged]
            if 0 < len(missing) < runs.sizes["student"]:
                listed = ", ".join(str(k + 1) for k in missing)
                yield f"weights of student {listed} at t = {plain(float(snapshot))}, to which no scatter is predicted"


def _residuals(
    prediction: xr.Dataset, runs: xr.Dataset, snapshots: FloatArray
) -> Iterator[tuple[int, int, FloatArray]]:
    """Places of snapshot and student, and residuals, shape (runs, coordinates), of weights that are finite."""
    if "regression" not in prediction or "S" not in runs:
        return
    rho, teacher = runs["rho_of_coordinate"].values, runs["teacher_components"].values
    seen = ~is_kernel(rho).any(axis=0)
    rho, teacher = rho[:, seen], teacher[:, seen]
    for index, snapshot in enumerate(counted(snapshots.tolist(), "distances", "snapshot")):
        if snapshot not in runs["snapshot_time"].values:
            continue
        at = prediction.sel(time=snapshot, method="nearest")
        regression, spread = _at(prediction["rho"].values, rho, at["regression"].values, at["spread"].values)
        weights = runs["S"].sel(snapshot_time=snapshot, method="nearest").values[..., seen]
        for student in range(weights.shape[1]):
            mean = np.einsum("rcm,rcm->rc", regression[:, :, student], teacher)
            with np.errstate(divide="ignore", invalid="ignore"):
                z = (weights[:, student] - mean) / spread[:, :, student]
            if np.isfinite(z).all():
                yield index, student, z


def _at(
    nodes: FloatArray, rho: FloatArray, regression: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Values at eigenvalues: those of their nodes, or of the polynomial through the nodes of a Gauss rule."""
    order = np.argsort(nodes)
    place = order[np.clip(np.searchsorted(nodes[order], rho), 1, max(len(nodes) - 1, 1)) % len(nodes)]
    before = order[np.maximum(np.searchsorted(nodes[order], rho) - 1, 0)]
    nearest = np.where(np.abs(nodes[place] - rho) < np.abs(nodes[before] - rho), place, before)
    if np.all(np.abs(nodes[nearest] - rho) <= 1e-9 * (1.0 + np.abs(rho))):  # equal to rounding
        return regression[nearest], spread[nearest]
    smooth, variance = (interpolated(nodes, values, rho) for values in (regression, spread**2))
    return smooth, np.sqrt(np.maximum(variance, 0.0))
