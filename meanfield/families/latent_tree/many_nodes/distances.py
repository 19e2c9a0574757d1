"""Distances of the weights of SGD from the density of nodes, for each latent and sign of outgoing weights.

Nodes with two weights are angles on a circle, on which the density has atoms at gates. Of more weights projections on
a few axes are compared. Both are laws of directions: lengths are compared by `square`, and shares of signs by `Delta`.
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
from meanfield.families.latent_tree.many_nodes.circle import TURN
from meanfield.families.latent_tree.many_nodes.finite import nodes_of
from meanfield.families.latent_tree.results import DISTANCES
from meanfield.numerics.distances import circular_wasserstein
from meanfield.process.progress import counted
from meanfield.results.result import Result
from meanfield.results.text import plain
from meanfield.typing import BoolArray, FloatArray


class Law(NamedTuple):
    """Law of the directions of the nodes of a latent with a sign.

    Parameters
    ----------
    points, widths : ndarray, shape (points,)
        Angles or projections at which distribution functions are judged, and lengths that they stand for in integrals.
    predicted : ndarray, shape (axes, points)
        Distribution functions; of angles there is one.
    edges, F : ndarray, shape (edges,)
        Distribution function of angles at all edges of cells, twice at each, because there may be an atom; empty for
        projections.
    """

    points: FloatArray
    widths: FloatArray
    predicted: FloatArray
    edges: FloatArray
    F: FloatArray

    @property
    def is_circle(self) -> bool:
        """Whether it is one of angles."""
        return len(self.edges) > 0


class Place(NamedTuple):
    """Nodes of all runs at a place of a comparison, and their law.

    Parameters
    ----------
    position : (int, int, int)
        Time, latent and sign.
    values : ndarray, shape (axes, runs, nodes)
        Angles, or projections.
    has_sign : ndarray of bool, shape (runs, nodes)
    """

    position: tuple[int, int, int]
    law: Law
    values: FloatArray
    has_sign: BoolArray

    @property
    def rows(self) -> FloatArray:
        """Deviations of the distribution functions of runs, shape (runs, axes * points).

        On a circle their mean is taken out, with which a cut of the circle elsewhere would change them.
        """
        law, member = self.law, self.has_sign.astype(float)
        pairs = zip(self.values, law.predicted, strict=True)
        each = [deviations_from(values, member, law.points, predicted) for values, predicted in pairs]
        if law.is_circle:
            return without_a_cut(each[0], law.widths)
        return np.concatenate(each, axis=1)

    @property
    def widths(self) -> FloatArray:
        """Lengths that the columns of rows stand for, so that integrals are means over axes."""
        axes = len(self.values)
        return np.tile(self.law.widths / axes, axes)


def distances(results: Sequence[Result], pairs: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Wasserstein-1 and Kolmogorov-Smirnov distances of the nodes of all runs from a density.

    See `meanfield.comparison.weights.distances`; nothing where outputs are no averages over nodes.
    """
    sizes = {dim: size for result in results for dim, size in result.dataset.sizes.items()}
    dims = ("time", "child", "sign")
    if not set(dims) <= sizes.keys():
        return {}
    found = {name: np.full((len(pairs), *(sizes[dim] for dim in dims)), np.nan) for name in DISTANCES}
    for row, density, runs in both_orders(results, pairs):
        for place in _places(density, runs, range(sizes["time"])):
            at = (row, *place.position)
            if place.law.is_circle:
                angles = place.values[0][place.has_sign]
                found["W1"][at] = circular_wasserstein(angles, place.law.edges, place.law.F)
            else:
                away = np.abs(place.rows.mean(axis=0))
                found["W1"][at], found["KS"][at] = away @ place.widths, away.max()
    return found


def deviations(prediction: Result, runs: Result, comparison: Result) -> list[Deviations]:
    """Deviations of single runs of which the distances are made; see `meanfield.comparison.weights.deviations`."""
    times = judged_times(prediction.dataset)
    error = prediction.dataset.get("projected_error")
    found, is_circle = [], "rho" in prediction.dataset
    for place in _places(prediction, runs, times):
        rows = place.rows
        if np.ptp(rows, axis=0).max() > 1e-12:  # runs with one start scatter by rounding there
            allowed = 0.0 if error is None else float(np.nan_to_num(error[place.position[0]]))
            found.append(DeviationsAt(place.position, place.widths, rows, place.has_sign.sum(), allowed))
    return [joined(found, ("W1",) if is_circle else ("W1", "KS"))] if found else []


def left_out(first: Result, second: Result) -> Iterator[str]:
    """Weights of two results that are not judged, in words."""
    for prediction, runs in ((first, second), (second, first)):
        density, held = prediction.dataset, runs.dataset
        if "Delta" not in density or ("atom" not in density and "held" not in density) or runs.is_prediction:
            continue
        if "weights" not in held:
            yield "directions of weights, which statistics do not keep"
        elif not _has_law(density):
            yield "directions of weights, because an older version solved the density: solve it again"
        else:
            judged, count = judged_times(density), density.sizes["time"]
            if len(judged) < count:
                yield f"directions of weights but for {len(judged)} of {count} times that are evenly spread"
            yield from _shares(density, runs)


def _shares(density: xr.Dataset, runs: Result) -> Iterator[str]:
    """Share of positive signs where that of the nodes is another: rounded to their number, it does not scatter."""
    wanted = runs.problem.network.initial.positive
    nodes = runs.problem.shape.nodes
    share = round(wanted * nodes) / nodes
    if abs(share - wanted) > 1e-9:  # rounding
        yield (
            f"shares of the signs, {plain(share)} positive of {nodes} nodes in place of {plain(wanted)}: give "
            "network.nodes_per_latent of which that is a whole number"
        )


def _has_law(density: xr.Dataset) -> bool:
    return "rho" in density or "projected" in density


def _places(prediction: Result, simulated: Result, times: Sequence[int]) -> Iterator[Place]:
    """Places at some times at which a density and all runs have nodes."""
    density, runs = prediction.dataset, simulated.dataset
    if not _has_law(density) or "weights" not in runs or "replica" not in runs["weights"].dims:
        return
    like = simulated.problem.drawn_weights()
    for time in counted(list(times), "weights", "time"):
        states = runs["weights"].isel(time=time).values.astype(float)
        if not np.isfinite(states).all():
            continue
        nodes = nodes_of(like, states)
        for child, sign in np.ndindex(nodes.has_sign.shape[1:3]):
            has_sign = nodes.has_sign[:, child, sign]
            law = _law(density.isel(time=time, child=child, sign=sign))
            if law is None or not has_sign.any():
                continue
            directions = nodes.directions[:, child]
            if law.is_circle:
                angle = np.arctan2(directions[..., 1], directions[..., 0])
                values = (law.edges[0] + (angle - law.edges[0]) % TURN)[None]
            else:
                values = np.moveaxis(directions @ density["axis"].values.T, -1, 0)
            yield Place((time, child, sign), law, values, has_sign)


def _law(density: xr.Dataset) -> Law | None:
    """Law of the directions of the nodes of a latent and sign at a time; None where there are no such nodes."""
    if "rho" not in density:
        projection, predicted = density["projection"].values, density["projected"].values
        unknown = not np.isfinite(predicted).all() or predicted.max() == 0.0
        nothing = np.empty(0)
        return None if unknown else Law(projection, np.gradient(projection), predicted, nothing, nothing)
    low, high = density["angle_bnds"].values.T
    gate, atom = density["gate"].values, density["atom"].values
    at_gate = np.isclose(low[:, None], gate, rtol=0.0, atol=1e-9)  # rounding
    held = at_gate @ np.nan_to_num(atom)
    mass = density["rho"].values * (high - low)
    total = mass.sum() + held.sum()
    if not total > 0.0:
        return None
    behind = (np.cumsum(held) + np.concatenate([[0.0], np.cumsum(mass)[:-1]])) / total
    before = behind - held / total
    inner = np.flatnonzero(~at_gate.any(axis=1))
    if not len(inner):
        return None
    inner = inner[evenly_spread(len(inner), 32)]
    points = low[inner]
    edges = np.append(np.repeat(low, 2), high[-1])
    F = np.append(np.stack([before, behind], axis=1).ravel(), 1.0)
    return Law(points, circle_widths(points), before[None, inner], edges, F)
