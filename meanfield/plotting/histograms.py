"""Histograms whose bins are as fine as the sample is dense, and densities on cells as curves.

Bins of one width that suit the tails of a law with a narrow peak are wider than the peak; those that suit the peak
leave single draws in the tails. So bins are narrow where the sample is dense.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import StepPatch

from meanfield.typing import FloatArray

VISIBLE = 3e-4
"""Probability beyond either end of the range in which weights are drawn."""


def bin_edges(x: FloatArray, F: FloatArray, draws: float) -> FloatArray:
    """Edges of the bins of a histogram of draws from a law.

    Parameters
    ----------
    x, F : ndarray, shape (n,)
        Points in order, and the distribution function there: of the law, or of the sample if no law is known.
    draws : float
        Size of the sample.

    Returns
    -------
    ndarray, shape (bins + 1,)
        Increasing. There are about 1.6 n^(1/3) bins, at which the errors by chance and by the width of bins are of one
        size. The probability of a bin and its width in units of the range have the same mean in all bins, so that no
        probability is above 1.3 n^(-1/3) unless draws are equal.
    """
    low, high = np.interp([VISIBLE, 1.0 - VISIBLE], F, x)
    if high - low <= 1e-12 * max(1.0, abs(low)):
        return float(low) + 0.5 * max(1.0, abs(low)) * np.array([-1.0, 1.0])  # all draws are equal
    bins = int(np.clip(1.6 * draws ** (1 / 3), 6, 80))
    measure = F + (x - low) / (high - low)
    first, last = np.interp([low, high], x, measure)
    edges = np.asarray(np.interp(np.linspace(first, last, bins + 1), measure, x))
    kept = [float(low)]
    for edge in edges[1:-1]:
        # in units of the range: equal draws, as of a law with few values, make one bar
        if 1e-5 * (high - low) < min(edge - kept[-1], high - edge):
            kept.append(float(edge))
    return np.array([*kept, high])


def bins_of_sample(sample: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Edges of the bins of a histogram of a sample of finite numbers, at least one, whose law is not known."""
    weights = np.ones(len(sample)) if weights is None else weights
    order = np.argsort(sample)
    F = (np.cumsum(weights[order]) - 0.5 * weights[order]) / weights.sum()
    return bin_edges(sample[order], F, _draws(weights))


def draw_histogram(
    sample: FloatArray,
    axes: Axes,
    weights: FloatArray | None = None,
    law: tuple[FloatArray, FloatArray] | None = None,
    **style: Any,
) -> None:
    """Histogram of the finite numbers of a sample, whose area is the share of them that the bins hold.

    Parameters
    ----------
    sample : ndarray, shape (n,)
    weights : ndarray, shape (n,), optional
    law : pair of ndarray, optional
        Points and the distribution function there of a law that the bins follow in place of the sample.
    **style
        Of the bars.
    """
    known = np.isfinite(sample)  # of replicas that came so far
    if not known.any():
        return
    sample, weights = sample[known], np.ones(known.sum()) if weights is None else weights[known]
    edges = bins_of_sample(sample, weights) if law is None else bin_edges(*law, _draws(weights))
    counts, _ = np.histogram(sample, edges, weights=weights)
    heights = counts / (weights.sum() * np.diff(edges))
    axes.stairs(heights, edges, **({"fill": True, "alpha": 0.45, "linewidth": 0} | style))


def show_areas(axes: Axes) -> float | None:
    """Scale a panel by its histograms and by the averages of their curves over bins; returns a peak that is cut off.

    Ridges of a density that are much narrower than bins would leave the histograms at the bottom of the panel.

    Parameters
    ----------
    axes : Axes
        With a curve for each histogram, in the same order.
    """
    seen, highest = 0.0, 0.0
    for bars, line in zip((p for p in axes.patches if isinstance(p, StepPatch)), axes.lines, strict=False):
        heights, edges, _ = bars.get_data()
        w, P = np.asarray(line.get_xydata()).T
        F = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(w) * (P[1:] + P[:-1]))])
        averages = np.diff(np.interp(edges, w, F)) / np.diff(edges)
        seen, highest = max(seen, heights.max(), averages.max()), max(highest, P.max())
    # a peak may be twice as high as the highest average over a bin and still be drawn in full
    cut = highest > 2.0 * seen > 0.0
    axes.set_ylim(0.0, 1.15 * seen if cut else None)
    return highest if cut else None


def _draws(weights: FloatArray) -> float:
    """Number of draws of equal weight whose mean has the same variance."""
    return float(weights.sum() ** 2 / (weights @ weights))


def density_curve(edges: FloatArray, P: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Curve of a density that is known by its averages over cells: three points in each cell.

    In each cell it is a parabola with the averages of the cell and of two neighbours. Where those on one side are much
    smoother than those on both, as beside the kink that a prior like l1 makes, it takes these alone: a line through the
    averages would cut off the peak.

    Parameters
    ----------
    edges : ndarray, shape (cells + 1,)
    P : ndarray, shape (..., cells)

    Returns
    -------
    w : ndarray, shape (3 cells,)
        Left edge, centre and right edge of each cell.
    values : ndarray, shape (..., 3 cells)
        At least 0.
    """
    cells = P.shape[-1]
    w = np.stack([edges[:-1], 0.5 * (edges[1:] + edges[:-1]), edges[1:]], axis=-1)
    if cells < 5:
        return w.ravel(), np.repeat(P, 3, axis=-1)
    # Divided differences of the distribution function over two and three cells that begin at each edge.
    second = np.diff(P) / (edges[2:] - edges[:-2])
    third = np.diff(second) / (edges[3:] - edges[:-3])
    first = np.arange(cells)
    stencils = np.clip(np.stack([first - 1, first - 2, first]), 0, cells - 3)  # about the cell, left of it, right of it
    roughness = np.moveaxis(np.abs(third)[..., stencils], -2, 0)
    roughness[0] /= 2.0  # a side must be twice as smooth as the cells about a cell for the curve to follow it
    chosen = np.argmin(roughness, axis=0)
    start = stencils[chosen, first]
    a, b, c = (edges[start + i][..., None] for i in range(3))
    slopes = [np.take_along_axis(values, start, axis=-1)[..., None] for values in (P, second, third)]
    parabola = (w - b) * (w - c) + (w - a) * (w - c) + (w - a) * (w - b)
    values = slopes[0] + slopes[1] * (2 * w - a - b) + slopes[2] * parabola
    return w.ravel(), np.clip(values, 0.0, None).reshape(*P.shape[:-1], -1)
