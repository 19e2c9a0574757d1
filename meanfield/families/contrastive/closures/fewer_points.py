"""Few nodes in place of many means or variances of Gaussians, under which averages at given overlaps are the same.

The average over a Gaussian of variance s^2 or more is a smooth function of its mean on the scale s, and of its variance
on a logarithmic scale, analytic for |Im log| < pi/2. Where fewer Gauss-Legendre nodes on panels of such a width resolve
it they replace the points, with weights that average interpolating polynomials as the points do.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.numerics.compiled.array_operations import largest_of, least_of
from meanfield.numerics.piecewise import ASCENT, DESCENT, NODES, ORDER, TO_COEFFICIENTS
from meanfield.process import own_numba as numba

MEAN_WIDTH = 1.5
"""Width of panels for means, in standard deviations: interpolation between 16 nodes is off by 1e-13."""

LOG_WIDTH = 0.7
"""Width of panels for the logarithm of variances: interpolating even fifth powers is off by 1e-13."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fewer_means(mean, weight, deviation):  # type: ignore[no-untyped-def]
    """Nodes in place of the means of Gaussians of equal variance, where the means lie so close that nodes are fewer."""
    low = least_of(mean)
    return _fewer(mean, weight, low, largest_of(mean) - low, MEAN_WIDTH * deviation)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fewer_variances(variance, weight, least, fineness):  # type: ignore[no-untyped-def]
    """Nodes in place of variances added to `least`, where these lie so close that nodes are fewer."""
    logarithm = np.log1p(variance / least)
    logarithm, weight = _fewer(logarithm, weight, 0.0, largest_of(logarithm), LOG_WIDTH / fineness)
    return least * np.expm1(logarithm), weight


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fewer(x, weight, low, width, widest):  # type: ignore[no-untyped-def]
    """Nodes on panels that hold many of the points, with weights under which polynomials have the same averages.

    Parameters
    ----------
    x : ndarray, shape (points,)
        Between low and low + width.
    weight : ndarray, shape (points, columns)
    low, width : float
    widest : float
        Width of panels.
    """
    panels = max(1, math.ceil(width / widest))
    if x.size <= ORDER or panels > x.size:
        return x, weight
    scale = panels / width if width > 1e-290 else 0.0  # narrower points are one, as the quotient overflows
    panel_of = np.empty(x.size, dtype=np.int64)
    count = np.zeros(panels, dtype=np.int64)
    for i in range(x.size):
        panel_of[i] = min(int((x[i] - low) * scale), panels - 1)
        count[panel_of[i]] += 1
    columns = weight.shape[1]
    moments = np.zeros((panels, ORDER, columns))
    size = 0
    for panel in range(panels):
        size += min(count[panel], ORDER)
    nodes, node_weight = np.empty(size), np.empty((size, columns))
    new = 0
    for i in range(x.size):
        panel = panel_of[i]
        if count[panel] > ORDER:
            _add_moments(moments[panel], 2.0 * ((x[i] - low) * scale - panel) - 1.0, weight[i])
        else:
            nodes[new] = x[i]
            for k in range(columns):
                node_weight[new, k] = weight[i, k]
            new += 1
    for panel in range(panels):
        if count[panel] <= ORDER:
            continue
        for i in range(ORDER):
            nodes[new] = low + (panel + 0.5 * (1.0 + NODES[i])) * (width / panels)
            for k in range(columns):
                node_weight[new, k] = 0.0
                for j in range(ORDER):
                    node_weight[new, k] += TO_COEFFICIENTS[j, i] * moments[panel, j, k]
            new += 1
    return nodes, node_weight


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_moments(moments, t, weight):  # type: ignore[no-untyped-def]
    """Add the weights times the Legendre polynomials at t to `moments`, shape (ORDER, columns)."""
    before, now = 1.0, t
    for k in range(weight.size):
        moments[0, k] += weight[k]
        moments[1, k] += t * weight[k]
    for j in range(2, ORDER):
        before, now = now, ASCENT[j] * t * now - DESCENT[j] * before
        for k in range(weight.size):
            moments[j, k] += now * weight[k]
