"""Distances between a sample, weighted or not, and a density on cells, from their distribution functions.

A density that is constant on cells has a piecewise linear distribution function F, given at the cell edges.
All integrals below are exact for it: comparing histograms at bin centres instead would bias W1 by about a
quarter of the bin width.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.typing import FloatArray


def density_of(edges: FloatArray, F: FloatArray) -> FloatArray:
    """Averages over cells of the density with distribution function F at the edges."""
    return np.diff(F) / np.diff(edges)


def distribution_function(edges: FloatArray, density: FloatArray) -> FloatArray:
    """Distribution function at the cell edges, normalised to end at one.

    Parameters
    ----------
    edges : ndarray, shape (cells + 1,)
    density : ndarray, shape (..., cells)
        Averages over cells.

    Returns
    -------
    ndarray, shape (..., cells + 1)
    """
    mass = density * np.diff(edges)
    cumulative = np.concatenate([np.zeros((*mass.shape[:-1], 1)), np.cumsum(mass, axis=-1)], axis=-1)
    return np.asarray(cumulative / cumulative[..., -1:])


def wasserstein(sample: FloatArray, weights: FloatArray, edges: FloatArray, F: FloatArray) -> float:
    """W1 between a weighted sample and the law with distribution function F: the integral of |F_n - F|.

    Parameters
    ----------
    sample, weights : ndarray, shape (n,)
        Points and their weights, which need not add up to one.
    edges, F : ndarray, shape (cells + 1,)
        Points and values of a piecewise linear distribution function.
    """
    ordered, steps = _empirical(sample, weights)
    points = np.sort(np.concatenate([ordered, edges]))
    empirical = steps[np.searchsorted(ordered, points[:-1], side="right")]
    law = np.interp(points, edges, F, left=0.0, right=1.0)
    return float(np.sum(_absolute_linear(law[:-1] - empirical, law[1:] - empirical) * np.diff(points)))


def circular_wasserstein(sample: FloatArray, edges: FloatArray, F: FloatArray) -> float:
    """W1 between points on a circle, all of one weight, and a law that may have atoms.

    It is the integral of |F_n - F| from the best place at which to cut the circle open: of |F_n - F - c| for the median
    c (Rabin, Delon, Gousseau, Journal of Mathematical Imaging and Vision 41, 147, 2011).

    Parameters
    ----------
    sample : ndarray, shape (n,)
        Points between the first edge and the last, which are one place.
    edges, F : ndarray, shape (places,)
        Distribution function, linear between places; one that comes twice is an atom, with F before and behind it.
    """
    ordered, steps = _empirical(sample, np.ones(len(sample)))
    points = np.unique(np.concatenate([ordered, edges]))
    left, right = points[:-1], points[1:]
    cell = np.searchsorted(edges, left, side="right") - 1
    slope = (F[cell + 1] - F[cell]) / (edges[cell + 1] - edges[cell])
    empirical = steps[np.searchsorted(ordered, left, side="right")]
    low, high = (F[cell] + slope * (x - edges[cell]) - empirical for x in (left, right))
    cut = _median_linear(low, high, right - left)
    return float(np.sum(_absolute_linear(low - cut, high - cut) * (right - left)))


def kolmogorov_smirnov(sample: FloatArray, weights: FloatArray, edges: FloatArray, F: FloatArray) -> float:
    """Kolmogorov-Smirnov distance sup |F_n - F| between a weighted sample and a law; see `wasserstein`."""
    ordered, steps = _empirical(sample, weights)
    law = np.interp(ordered, edges, F, left=0.0, right=1.0)
    return float(max(np.max(steps[1:] - law), np.max(law - steps[:-1])))


def _empirical(sample: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points in order, and the distribution function before the first and after each of them."""
    order = np.argsort(sample)
    steps = np.concatenate([[0.0], np.cumsum(weights[order])])
    return sample[order], steps / steps[-1]


def expected_wasserstein(n: int, edges: FloatArray, variance: FloatArray) -> float:
    """Mean W1 between n independent draws and their own law, to leading order.

    sqrt(n) (F_n - F) tends to a Gaussian process with the given variance at each point, F (1 - F) for equal
    weights, and the mean absolute value of a Gaussian variable is sqrt(2/pi) standard deviations.
    """
    deviation = np.sqrt(variance)
    integral = np.sum(0.5 * (deviation[1:] + deviation[:-1]) * np.diff(edges))
    return float(math.sqrt(2 / (math.pi * n)) * integral)


def expected_kolmogorov_smirnov(weights: FloatArray) -> float:
    """Mean of sup |F_n - F| over independent draws, to leading order: that of the Kolmogorov law.

    For unequal weights n is the effective number of draws, (sum of weights)^2 / sum of their squares.
    """
    effective = weights.sum() ** 2 / (weights @ weights)
    return float(math.sqrt(math.pi / 2) * math.log(2) / math.sqrt(effective))


def l1_distance(edges: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Integral of |first - second| for densities on the same cells, over the last axis."""
    return np.asarray(np.sum(np.abs(first - second) * np.diff(edges), axis=-1))


def rebin(edges: FloatArray, density: FloatArray, new_edges: FloatArray) -> FloatArray:
    """Averages over other cells of a density that is constant on cells; mass is kept."""
    F = distribution_function(edges, density)
    flat = F.reshape(-1, F.shape[-1])
    moved = np.array([np.interp(new_edges, edges, row, left=0.0, right=1.0) for row in flat])
    return np.asarray(np.diff(moved, axis=-1) / np.diff(new_edges)).reshape(*F.shape[:-1], -1)


def _absolute_linear(left: FloatArray, right: FloatArray) -> FloatArray:
    """Mean of |f| over intervals on which f is linear from `left` to `right`."""
    same_sign = left * right >= 0
    spread = np.where(same_sign, 1.0, np.abs(left) + np.abs(right))
    return np.where(same_sign, 0.5 * np.abs(left + right), 0.5 * (left**2 + right**2) / spread)


def _median_linear(left: FloatArray, right: FloatArray, widths: FloatArray) -> float:
    """Median over intervals of a function that is linear on each, from `left` to `right`."""
    low, high = np.minimum(left, right), np.maximum(left, right)
    rise = np.maximum(high - low, np.finfo(float).tiny)
    lower, upper = float(low.min()), float(high.max())
    for _ in range(60):  # halvings, to the last digit
        middle = 0.5 * (lower + upper)
        if np.clip((middle - low) / rise, 0.0, 1.0) @ widths < 0.5 * widths.sum():
            lower = middle
        else:
            upper = middle
    return 0.5 * (lower + upper)
