"""Distances of the filters of SGD from a density, as empirical measures on the circle or the sphere.

Filters of a run share its batches, so that runs are independent and filters are not: distances are judged by the
scatter of the distribution functions of runs. Angles are compared along the circle, which has no first one.

Projections w.v on a few axes are compared as the cells of the density have them: a filter counts with its cell, in the
order of the projections of cells. So nothing is assumed of where in its cell the mass of the density is, which may be
an atom on a wall. Axes lie askew to the coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from meanfield.comparison.rotations import (
    Deviations,
    DeviationsAt,
    both_orders,
    circle_widths,
    deviations_from,
    evenly_spread,
    joined,
    judged_times,
    without_a_cut,
)
from meanfield.families.alpha_contrastive.density.cells import on_sphere, turn
from meanfield.families.alpha_contrastive.density.grid import TURN
from meanfield.families.alpha_contrastive.limit.circle import on_circle
from meanfield.families.alpha_contrastive.results import DISTANCES
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.numerics.distances import circular_wasserstein, distribution_function
from meanfield.numerics.sphere_cells import SphereCells
from meanfield.process.progress import counted
from meanfield.results.result import Result
from meanfield.typing import FloatArray, IntArray

DENSITIES = ("density", "sphere_density")
"""Kinds of results that are densities."""

MOST_POINTS = 48
"""Largest number of angles, or cells along an axis, at which distribution functions are judged."""


class Cells(NamedTuple):
    """Cells of a density at a time, and filters of runs in them.

    Parameters
    ----------
    mass : ndarray, shape (cells,)
    projections : ndarray, shape (axes, cells)
        Of the middles of cells.
    numbers : ndarray of int, shape (runs, filters)
        Cells of filters.
    error : float
        Estimated error of distribution functions: the largest of moments.
    """

    mass: FloatArray
    projections: FloatArray
    numbers: IntArray
    error: float


def distances(results: Sequence[Result], pairs: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Wasserstein-1 and Kolmogorov-Smirnov distances of the filters of all runs from a density.

    See `meanfield.comparison.weights.distances`; nothing where no result is a density.
    """
    if not any(result.method in DENSITIES for result in results):
        return {}
    times = results[0].dataset.sizes["time"]
    found = {name: np.full((len(pairs), times), np.nan) for name in DISTANCES}
    for row, density, runs in both_orders(results, pairs):
        for time, w in _filters(density, runs):
            at = density.dataset.isel(time=time)
            projected = _of_projections(_cells(at, w))
            away = np.abs(projected.rows.mean(axis=0))
            found["KS"][row, time] = away.max()
            found["W1"][row, time] = _along_circle(at, w) if w.shape[-1] == 2 else away @ projected.widths
    return found


def deviations(prediction: Result, runs: Result, comparison: Result) -> list[Deviations]:
    """Deviations of single runs of which the distances are made; see `meanfield.comparison.weights.deviations`."""
    along, projected = [], []
    for time, w in _filters(prediction, runs):
        at = prediction.dataset.isel(time=time)
        projected.append(_of_projections(_cells(at, w))._replace(position=(time,)))
        if w.shape[-1] == 2:
            along.append(_of_angles(at, w)._replace(position=(time,)))
    if not projected:
        return []
    return [joined(along, ("W1",)), joined(projected, ("KS",))] if along else [joined(projected, ("W1", "KS"))]


def left_out(first: Result, second: Result) -> Iterator[str]:
    """Filters of two results that are not judged, in words."""
    for prediction, other in ((first, second), (second, first)):
        density, held = prediction.dataset, other.dataset
        if prediction.method not in DENSITIES or other.method in (*DENSITIES, "best_network"):
            continue
        if "weights" not in held:
            yield "the law of filters, which statistics do not keep (particles.record = 'replicas' does)"
        elif other.is_prediction:
            yield "the law of filters, of which a flow without runs is one draw"
        elif len(judged_times(density)) < density.sizes["time"]:
            count = len(judged_times(density))
            yield f"the law of filters but for {count} of {density.sizes['time']} times that are evenly spread"
    if all("weights" in result.dataset for result in (first, second)):
        yield "weights one by one"


def _filters(density: Result, runs: Result) -> Iterator[tuple[int, FloatArray]]:
    """Judged times at which all filters are finite, and the filters, shape (runs, filters, coordinates)."""
    if density.method not in DENSITIES or "weights" not in runs.dataset:
        return
    weights, G = runs.dataset["weights"].isel(place=0), density.dataset["G"].values
    for time in counted(judged_times(density.dataset), "filters", "time"):
        w = weights.isel(time=time).values
        if np.isfinite(w).all() and np.isfinite(G[time]):
            yield time, w.reshape(-1, *w.shape[-2:])


def _cells(density: xr.Dataset, w: FloatArray) -> Cells:
    """Cells of a density at a time, on the circle or the sphere, and filters in them."""
    if w.shape[-1] == 2:
        edges, F = _law_of_angles(density)
        numbers = np.clip(np.searchsorted(edges, _angles(w, edges[0]), side="right") - 1, 0, len(edges) - 2)
        projections = on_circle(np.array([0.7, 0.7 + 0.25 * TURN])) @ on_circle(density["angle"].values).T
        return Cells(np.diff(F), projections, numbers, _error(density, "moment_cos_error", "moment_sin_error"))
    cells = SphereCells(density.sizes["polar"])
    middles = on_sphere(*np.meshgrid(density["polar"].values, density["azimuth"].values, indexing="ij")).reshape(-1, 3)
    mass = (density["rho_on_sphere"].values * cells.area).ravel()
    numbers = cells.numbers(w.reshape(-1, 3)).reshape(w.shape[:2])
    return Cells(mass, turn() @ middles.T, numbers, _error(density, "mean_error", "second_moment_error"))


def _of_projections(cells: Cells) -> DeviationsAt:
    """Deviations of the distribution functions of projections on all axes, one after the other."""
    rows, widths = [], []
    for projection in cells.projections:
        order = np.argsort(projection, kind="stable")
        rank = np.empty(len(order))
        rank[order] = np.arange(len(order))
        kept = evenly_spread(len(order) - 1, MOST_POINTS)
        F = np.cumsum(cells.mass[order])[kept]
        values = rank[cells.numbers]
        rows.append(deviations_from(values, np.ones_like(values), 0.5 + kept.astype(np.float64), F))
        widths.append(np.gradient(projection[order][kept]) / len(cells.projections))
    return DeviationsAt((), np.concatenate(widths), np.concatenate(rows, axis=1), cells.numbers.size, cells.error)


def _of_angles(density: xr.Dataset, w: FloatArray) -> DeviationsAt:
    """Deviations of the distribution functions of angles, without their mean: where the circle is cut does not count.

    They are taken at edges of cells, between which an atom may be.
    """
    edges, F = _law_of_angles(density)
    kept = evenly_spread(len(edges) - 1, MOST_POINTS)
    widths = circle_widths(edges[kept])
    angles = _angles(w, edges[0])
    rows = deviations_from(angles, np.ones_like(angles), edges[kept], F[kept])
    error = _error(density, "moment_cos_error", "moment_sin_error")
    return DeviationsAt((), widths, without_a_cut(rows, widths), angles.size, error)


def _along_circle(density: xr.Dataset, w: FloatArray) -> float:
    edges, F = _law_of_angles(density)
    return circular_wasserstein(_angles(w, edges[0]).ravel(), edges, F)


def _law_of_angles(density: xr.Dataset) -> tuple[FloatArray, FloatArray]:
    """Edges of the cells, and the distribution function there."""
    edges = edges_of(density, "angle")
    return edges, distribution_function(edges, density["rho"].values)


def _angles(w: FloatArray, first: float) -> FloatArray:
    """Angles of filters within a turn from the first one on."""
    return np.asarray(first + np.mod(np.arctan2(w[..., 1], w[..., 0]) - first, TURN))


def _error(density: xr.Dataset, *names: str) -> float:
    return max(float(np.nan_to_num(density[name].values).max(initial=0.0)) for name in names)
