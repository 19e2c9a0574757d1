"""Density of the components of the student's weights along eigenvectors of F F^T/N.

A component moves linearly in itself and in those of the teacher and of the means, and adds up many small steps. So
given the eigenvalue and the teacher's components it is Gaussian, with a mean that is linear in the latter.

Weights of SGD are compared with it by residuals: the distance of a weight from that mean in units of the standard
deviation, which is standard normal if the density is right. So weights of all eigenvalues are judged together, and
those of students apart. Where the eigenvalue is 0, as D - N are for D > N, components are 0 for any weights: nothing
scatters there, and a result in which they are not is refused (`meanfield.families.hidden_manifold.numbers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ndtr

from meanfield.comparison.rotations import Deviations, DeviationsAt, both_orders, deviations_from, joined
from meanfield.comparison.sides import moments
from meanfield.errors import InputError
from meanfield.families.hidden_manifold.numbers import is_kernel
from meanfield.families.hidden_manifold.order_parameters.system import State, System
from meanfield.families.hidden_manifold.order_parameters.trajectory import check_trajectory, refined
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.families.hidden_manifold.results import KINDS
from meanfield.families.hidden_manifold.variables import CELLS, DISCREPANCIES, DISTANCES
from meanfield.ingredients.spectra import interpolated
from meanfield.mckean_vlasov.cells import cell_arrays
from meanfield.numerics.distances import (
    expected_kolmogorov_smirnov,
    expected_wasserstein,
    kolmogorov_smirnov,
    wasserstein,
)
from meanfield.process.progress import counted
from meanfield.results.result import Result
from meanfield.results.solved import Solved, solver
from meanfield.results.text import plain
from meanfield.typing import FloatArray


def check_density(problem: Problem) -> None:
    """Refuse problems without an ODE for order parameters alone, or with the start of single runs."""
    check_trajectory(problem)
    if problem.initial is not None and problem.initial.atoms.own:
        raise InputError(
            f"initial.from = '{problem.initial.path}': weights of runs are no law of weights given eigenvalues; name "
            "order parameters, or use the methods 'order_parameters' and 'particles'"
        )


@solver
def solve_density(problem: Problem) -> Solved:
    """Density of the student's weights along eigenvectors, from the order parameters.

    Parameters
    ----------
    problem : Problem
        Problem whose inputs have no mean of length sqrt(N).

    Returns
    -------
    xarray.Dataset
        Order parameters with their errors as of `solve_order_parameters`; `P`, the density of a student's weights
        given the eigenvalue, for teachers with Gaussian components, and `P_w`, its average over the spectrum;
        `regression` and `spread`, mean and standard deviation given also the teacher's components, whatever their law.

    Raises
    ------
    InputError
        If the inputs have a mean of length sqrt(N).

    Notes
    -----
    Source: hidden_manifold.md, section 6. Components S of the weights W are W F^T/sqrt(N) in the eigenbasis.
    """
    check_density(problem)
    system, path, found, warning = refined(problem, problem.time.outputs_at)
    regression, spread = conditional_law(system, path.state)
    known = {"time": problem.time.outputs_at, "rho": system.rho, "rho_weight": system.weight}
    known |= {name: values for name, values in found.items() if name in KINDS["density"].names}
    arrays = known | _densities(path.state.sigma, system) | {"regression": regression, "spread": spread}
    return Solved("density", arrays, path.status, warning, {"nodes": len(system.rho)})


def conditional_law(system: System, state: State) -> tuple[FloatArray, FloatArray]:
    """Coefficients of the mean on the teacher's components, and standard deviations, at each node."""
    M = system.teachers
    r, t = state.r[..., :M], system.t[:, :M, :M]
    regression = r @ np.linalg.pinv(t, hermitian=True)
    variance = np.einsum("...kk->...k", state.sigma - regression @ r.swapaxes(-1, -2))
    return regression, np.sqrt(np.maximum(variance, 0.0))


def _densities(sigma: FloatArray, system: System) -> dict[str, FloatArray]:
    """Densities given the eigenvalue and averaged over the spectrum, as averages over cells."""
    deviation = np.sqrt(np.maximum(np.einsum("tnkk->tkn", sigma), 0.0))
    largest = max(float(np.nanmax(deviation)), np.finfo(float).tiny)
    # 2e-9 of the probability lies beyond 6 of the largest standard deviations.
    edges = np.linspace(-6.0, 6.0, CELLS + 1) * largest
    with np.errstate(divide="ignore", invalid="ignore"):
        F = ndtr(edges / deviation[..., None])
    F[..., CELLS // 2] = np.where(np.isnan(deviation), np.nan, 0.5)  # also of weights that are all 0
    P = np.diff(F) / np.diff(edges)
    return cell_arrays(edges) | {"P": P, "P_w": np.einsum("n,tknw->tkw", system.weight, P)}


EDGES = np.linspace(-8.0, 8.0, 801)
"""Points at which the normal distribution function is taken: between them it is linear to 1e-5."""

DEVIATION_POINTS = np.linspace(-3.0, 3.0, 61)
"""Points at which deviations of distribution functions are taken run by run."""


def distances(results: Sequence[Result], pairs: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Distances of residuals and the standard normal law, and root mean squares of differences in time.

    See `meanfield.comparison.weights.distances`; they have the names of `DISTANCES` and `DISCREPANCIES`.
    """
    datasets = [result.dataset for result in results]
    every = [dataset["snapshot_time"].values for dataset in datasets if "S" in dataset]
    snapshots = np.unique(np.concatenate(every)) if every else np.empty(0)
    shape = len(pairs), len(snapshots), datasets[0].sizes["student"]
    measured = {name: np.full(shape, np.nan) for name in DISTANCES}
    F = ndtr(EDGES)
    for row, prediction, runs in both_orders(results, pairs):
        for index, student, z in _residuals(prediction.dataset, runs.dataset, snapshots):
            sample, equal = z.ravel(), np.ones(z.size)
            measured["W1"][row, index, student] = wasserstein(sample, equal, EDGES, F)
            measured["W1_expected"][row, index, student] = expected_wasserstein(z.size, EDGES, F * (1.0 - F))
            measured["KS"][row, index, student] = kolmogorov_smirnov(sample, equal, EDGES, F)
            measured["KS_expected"][row, index, student] = expected_kolmogorov_smirnov(equal)
    return measured | _discrepancies(results, pairs) | {"snapshot_time": snapshots}


def _discrepancies(results: Sequence[Result], pairs: Sequence[tuple[int, int]]) -> dict[str, FloatArray]:
    """Root mean squares over times of the differences of means, NaN where a result does not hold a quantity."""
    problem, found = results[0].problem, {}
    for name in DISCREPANCIES:
        quantity = name.removesuffix("_rmse")
        sides = [moments(result, quantity) for result in results]
        shape = [problem.fixed_dims[dim] for dim in DISCREPANCIES[name].dims[1:]]
        found[name] = np.full((len(pairs), *shape), np.nan)
        for row, (i, j) in enumerate(pairs):
            if (first := sides[i]) is not None and (second := sides[j]) is not None:
                found[name][row] = np.sqrt(np.mean((second.mean - first.mean) ** 2, axis=0))
    return found


def deviations(prediction: Result, runs: Result, comparison: Result) -> list[Deviations]:
    """Distribution functions of residuals minus the normal one; see `meanfield.comparison.weights.deviations`."""
    found = list(_residuals(prediction.dataset, runs.dataset, comparison.dataset["snapshot_time"].values))
    if not found:
        return []
    normal = ndtr(DEVIATION_POINTS)
    widths = np.gradient(DEVIATION_POINTS)
    places = [
        DeviationsAt((index, student), widths, deviations_from(z, np.ones_like(z), DEVIATION_POINTS, normal), z.size)
        for index, student, z in found
    ]
    return [joined(places, ("W1", "KS"))]


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
