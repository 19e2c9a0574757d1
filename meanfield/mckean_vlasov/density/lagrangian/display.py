"""Densities on cells in w, from differences of the normal distribution function at the quantiles of their edges."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from meanfield.mckean_vlasov.density.lagrangian.level import Level
from meanfield.numerics.quantile_frame.frame import ROOT_TWO_PI
from meanfield.numerics.quantile_frame.inversion import crossings
from meanfield.typing import FloatArray

WIDTH = 0.06
"""Largest width of cells where nothing is narrow."""

PER_DEVIATION = 0.25
"""Width of cells in units of the local width of a conditional density."""

MOST_CELLS, MOST_EQUAL_CELLS = 1200, 600
"""Largest number of cells, and of cells of equal width."""

LARGEST_QUANTILE = 37.0
"""Largest quantile with a probability beyond it that is a normal number; what lies further off counts as empty."""

VALUE_WORK = 2.0
"""Work of a value of P, with its share in P_w, in units of a step of a point: some 0.2 us."""


def work_of(level: Level) -> float:
    """Work of showing P and P_w at all nodes, in points times steps."""
    cells = len(edges_for(level)) - 1
    return VALUE_WORK * len(level.moments) * len(level.frames.nodes.u_weight) * cells


def edges_for(level: Level) -> FloatArray:
    """Edges of cells that hold all densities of a level and resolve them: equal ones where these suffice.

    Zero is an edge.
    """
    reach, places, slopes = _narrowest(level)
    needed = float(slopes.max(initial=0.0)) / PER_DEVIATION
    cells = 2 * int(np.ceil(reach * max(1 / WIDTH, needed)))
    if cells <= MOST_EQUAL_CELLS:
        edges = np.linspace(-reach, reach, cells + 1)
        edges[cells // 2] = 0.0
        return edges
    return _graded_edges(reach, places, slopes)


def _narrowest(level: Level) -> tuple[float, FloatArray, FloatArray]:
    """Largest |w| that cells reach, and |w| and density where a law asks for cells that are narrower than `WIDTH`.

    Densities are those of quantiles on the scale of the normal law.
    """
    _, weight = level.frames.nodes.solved
    heavy = weight > 1e-5 * weight.max()  # the widths at lighter nodes are not resolved
    reach = 0.0
    places, slopes = [], []
    for output, X in enumerate(level.X):  # one after the other, to stay in fast memory
        if not np.isfinite(X).all():
            continue
        xi = level.xi(output)
        # Cells reach to the quantile 6.5 of the normal law at every node and time.
        reach = max(reach, float(np.max(np.abs(X), where=np.abs(xi) <= 6.5, initial=0.0)))
        xi, X = xi[heavy], X[heavy]
        slope = np.diff(xi, axis=1) / np.diff(X, axis=1)
        # The width of a density counts within three deviations.
        narrow = (slope > PER_DEVIATION / WIDTH) & (np.abs(xi[:, 1:] + xi[:, :-1]) < 2 * 3.0)
        places.append(0.5 * np.abs((X[:, 1:] + X[:, :-1])[narrow]))
        slopes.append(slope[narrow])
    return reach, np.concatenate(places), np.concatenate(slopes)


def _graded_edges(reach: float, places: FloatArray, slopes: FloatArray) -> FloatArray:
    """Symmetric edges whose distance follows the narrowest density nearby."""
    grid = np.concatenate([[0.0], np.geomspace(1e-7 * reach, reach, 2000)])
    rate = np.full(grid.size, 1 / WIDTH)
    np.maximum.at(rate, np.searchsorted(grid, places).clip(0, grid.size - 1), slopes / PER_DEVIATION)
    for _ in range(25):  # each averages with the neighbours
        wider = np.maximum(rate, np.maximum(np.append(rate[1:], 0), np.append(0, rate[:-1])) * 0.9)
        rate = 0.5 * (wider + rate)
    count = np.concatenate([[0.0], np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(grid))])
    half = min(int(np.ceil(count[-1])), MOST_CELLS // 2)
    positive = np.interp(np.linspace(0, count[-1], half + 1), count, grid)
    return np.concatenate([-positive[:0:-1], positive])


def quantiles(level: Level, edges: FloatArray, output: int) -> FloatArray:
    """Quantiles of the edges at an output time, on the scale of the normal law, shape (nodes solved, edges)."""
    return np.asarray(crossings(edges, level.X[output : output + 1], level.zeta, level.frames.grading.terms)[0])


def masses(xi: FloatArray) -> FloatArray:
    """Probabilities of the cells between edges of given quantiles; the outermost take the tails beyond.

    Differences of the smaller tail keep the relative accuracy.
    """
    tail = np.zeros_like(xi)
    near = ~(np.abs(xi) > LARGEST_QUANTILE)  # which NaN is, too
    tail[near] = ndtr(-np.abs(xi[near]))  # `where=` of SciPy's functions corrupts memory
    tail[..., [0, -1]] = np.where(np.isnan(xi[..., [0, -1]]), np.nan, 0.0)
    low, high = xi[..., :-1], xi[..., 1:]
    same_side = (low >= 0) | (high <= 0)
    return np.asarray(np.where(same_side, np.abs(np.diff(tail)), 1.0 - tail[..., 1:] - tail[..., :-1]))


def distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """L1 distances of the densities for two quantiles of all edges, to first order in their difference."""
    density = np.exp(-0.125 * np.minimum(np.abs(first + second), 2 * LARGEST_QUANTILE) ** 2) / ROOT_TWO_PI
    return np.asarray(np.abs(np.diff(density * (first - second))).sum(axis=-1))
