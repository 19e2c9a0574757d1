"""What the closures average over B: products of sigma and sigma' of both views, averaged over the augmentation noise.

Theta_l = B + zeta_l, and the average over (zeta1, zeta2) at given B is a function of one variable that does not depend
on the overlaps. It is tabulated once. With s_l = sigma(Theta_l), p_l = sigma'(Theta_l) the rows are those of `ROWS`;
without centring those of `UNCENTRED` suffice. The second view is averaged first, at given Theta1, then the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import numba
import numpy as np

from meanfield.activations import Activation
from meanfield.closures.densities import PIECE, TAIL
from meanfield.closures.panels import (
    NAME_THE_KINK,
    NODES,
    ORDER,
    WEIGHTS,
    Rows,
    Table,
    interpolate,
    panel_of,
    tabulate,
    with_derivatives,
)
from meanfield.scalar_functions import call_scalar
from meanfield.typing import FloatArray

DRIFT_ROWS = ("p1 s2 + s1 p2", "p1", "p2")
DIFFUSION_ROWS = (
    "s1^2 p2^2", "s2^2 p1^2", "s1 s2 p1 p2",
    "s1 p2^2", "s2 p1^2", "s1 p1 p2", "s2 p1 p2", "p2^2", "p1^2", "p1 p2",
    "s1", "s2", "s1^2", "s2^2", "s1 s2",
)  # fmt: skip
ROWS = len(DRIFT_ROWS) + len(DIFFUSION_ROWS)
UNCENTRED = np.array([0, 3, 4, 5])

STRONGER = (
    "the noise is too weak to smooth its kinks: raise augmentation.variance or set it to 0, or set "
    "augmentation.correlation to -1, 0 or 1"
)

SINGULAR = 1e-13
"""Up to rounding the two noises are functions of each other if the second has a smaller share of its own."""


@lru_cache(maxsize=64)
def bracket_table(activation: Activation, noise: tuple[float, float, float], centred: bool, reach: float) -> Table:
    """All rows that a closure needs, as functions of B on [-reach, reach].

    Parameters
    ----------
    activation : Activation
    noise : tuple of float
        v11, v12, v22.
    centred : bool
        Whether mean outputs are subtracted: else only the uncentred products are kept.
    reach : float

    Returns
    -------
    Table
        Drift rows, their derivatives in B, then diffusion rows.
    """
    rows, breaks, layers = averaged_rows(activation, noise, reach)
    drift_rows = len(DRIFT_ROWS)
    if not centred:
        all_rows = rows
        rows = lambda points: all_rows(points)[UNCENTRED]  # noqa: E731
        drift_rows = 1
    remedy = STRONGER if any(noise) else NAME_THE_KINK
    table = tabulate(rows, breaks, reach, "model.activation", remedy, layers)
    return with_derivatives(table, drift_rows)


def averaged_rows(
    activation: Activation, noise: tuple[float, float, float], reach: float
) -> tuple[Rows, list[float], list[float]]:
    """The rows as a function of many values of B, points where they may break, and where they change fast."""
    v11, v12, v22 = noise
    value, derivative = activation.addresses
    kinks = activation.kinks
    slope = v12 / v11 if v11 > 0 else 0.0
    rest = v22 - slope * v12
    rest = rest if rest > SINGULAR * v22 else 0.0
    first_reach = reach + TAIL * math.sqrt(v11)
    second_reach = (reach + TAIL * (math.sqrt(v11) + math.sqrt(v22))) * 1.001
    single = tabulate(lambda x: _products(value, derivative, x), kinks, second_reach, "model.activation")
    second = single
    if rest > 0:
        deviation, reached = math.sqrt(rest), reach + TAIL * abs(slope) * math.sqrt(v11) + 1e-9
        layers = _layers(kinks, deviation)
        second = tabulate(
            lambda x: _smoothed(single, x, deviation), kinks, reached, "model.activation", STRONGER, layers
        )
    edges = single.edges[np.abs(single.edges) <= first_reach]

    def rows(points: FloatArray) -> FloatArray:
        result: FloatArray = _rows(value, derivative, edges, second, rest > 0, slope, math.sqrt(v11), points)
        return result

    # Where both views meet a kink at once, as the first noise runs over its range.
    crossings = [(kj - slope * ki) / (1 - slope) for ki in kinks for kj in kinks] if slope != 1 else []
    layers = [x for variance in (v11, v22, rest) for x in _layers(kinks, math.sqrt(variance))]
    layers += _layers(crossings, math.sqrt(rest) / abs(1 - slope) if slope != 1 else 0.0)
    if v11 == 0:
        return rows, list(kinks), layers
    return rows, crossings if rest == 0 else [], layers


def _layers(points: Iterable[float], deviation: float) -> list[float]:
    """Edges of the range over which noise smooths a kink at the points."""
    return [x + factor * deviation for x in points for factor in (-TAIL, -3.0, 0.0, 3.0, TAIL)]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _products(value, derivative, points):  # type: ignore[no-untyped-def]
    """s, p, s^2, s p, p^2 at the points, shape (5, n)."""
    out = np.empty((5, points.size))
    for i in range(points.size):
        s, p = call_scalar(value, points[i]), call_scalar(derivative, points[i])
        out[0, i], out[1, i], out[2, i], out[3, i], out[4, i] = s, p, s * s, s * p, p * p
    return out


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _normal_density(x, deviation):  # type: ignore[no-untyped-def]
    y = x / deviation
    return math.exp(-0.5 * y * y) / (math.sqrt(2.0 * math.pi) * deviation)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _smoothed(table, points, deviation):  # type: ignore[no-untyped-def]
    """<f(x + N(0, deviation^2))> for the rows of a table, shape (rows, n)."""
    rows = table.values.shape[0]
    out = np.zeros((rows, points.size))
    row = np.empty(rows)
    for n in range(points.size):
        # Distances from the point, which do not lose digits when the noise is weak.
        tail = TAIL * deviation
        panel = panel_of(table, points[n] - tail)
        while panel < table.edges.size - 1 and table.edges[panel] - points[n] < tail:
            left, right = max(table.edges[panel] - points[n], -tail), min(table.edges[panel + 1] - points[n], tail)
            pieces = max(1, math.ceil((right - left) / (PIECE * deviation)))
            half = 0.5 * (right - left) / pieces
            for piece in range(pieces):
                for i in range(ORDER):
                    x = left + (2 * piece + 1 + NODES[i]) * half
                    interpolate(table, panel, points[n] + x, row)
                    weight = half * WEIGHTS[i] * _normal_density(x, deviation)
                    for r in range(rows):
                        out[r, n] += weight * row[r]
            panel += 1
    return out


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_row(out, n, weight, s, p, second):  # type: ignore[no-untyped-def]
    """Add the products of s1 = s, p1 = p and the averages over the second view to column n."""
    s2, p2, s2s2, s2p2, p2p2 = second
    out[0, n] += weight * (p * s2 + s * p2)
    out[1, n] += weight * p
    out[2, n] += weight * p2
    out[3, n] += weight * s * s * p2p2
    out[4, n] += weight * s2s2 * p * p
    out[5, n] += weight * s * p * s2p2
    out[6, n] += weight * s * p2p2
    out[7, n] += weight * s2 * p * p
    out[8, n] += weight * s * p * p2
    out[9, n] += weight * p * s2p2
    out[10, n] += weight * p2p2
    out[11, n] += weight * p * p
    out[12, n] += weight * p * p2
    out[13, n] += weight * s
    out[14, n] += weight * s2
    out[15, n] += weight * s * s
    out[16, n] += weight * s2s2
    out[17, n] += weight * s * s2


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _rows(value, derivative, edges, second, smooth, slope, deviation, points):  # type: ignore[no-untyped-def]
    """All rows at the points, shape (ROWS, n).

    Theta1 = B + N(0, deviation^2), and Theta2 is B + slope (Theta1 - B), smoothed where `smooth` says that `second`
    holds averages over the rest of its noise.
    """
    out = np.zeros((ROWS, points.size))
    averages = np.empty(5)
    for n in range(points.size):
        b = points[n]
        if deviation == 0.0:
            s, p = call_scalar(value, b), call_scalar(derivative, b)
            _second_view(value, derivative, second, smooth, b, averages)
            _add_row(out, n, 1.0, s, p, averages)
            continue
        cuts = _cuts(edges, second.edges, slope, b, deviation)
        for cut in range(cuts.size - 1):
            left, right = cuts[cut], cuts[cut + 1]
            if right <= left:
                continue
            pieces = max(1, math.ceil((right - left) / (PIECE * deviation)))
            half = 0.5 * (right - left) / pieces
            for piece in range(pieces):
                for i in range(ORDER):
                    x = left + (2 * piece + 1 + NODES[i]) * half
                    s, p = call_scalar(value, b + x), call_scalar(derivative, b + x)
                    _second_view(value, derivative, second, smooth, b + slope * x, averages)
                    _add_row(out, n, half * WEIGHTS[i] * _normal_density(x, deviation), s, p, averages)
    return out


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _second_view(value, derivative, second, smooth, x, averages):  # type: ignore[no-untyped-def]
    """Averages of s, p, s^2, s p, p^2 of the second view, whose noise has mean x - B."""
    if smooth:
        interpolate(second, panel_of(second, x), x, averages)
        return
    s, p = call_scalar(value, x), call_scalar(derivative, x)
    averages[0], averages[1], averages[2], averages[3], averages[4] = s, p, s * s, s * p, p * p


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _cuts(first_edges, second_edges, slope, b, deviation):  # type: ignore[no-untyped-def]
    """Theta1 - B where either view changes panel, in order and with both ends of the range."""
    low, high = -TAIL * deviation, TAIL * deviation
    cuts = np.empty(first_edges.size + second_edges.size + 2)
    cuts[0], cuts[1] = low, high
    count = 2
    for edge in first_edges:
        x = edge - b
        if low < x < high:
            cuts[count] = x
            count += 1
    if slope != 0.0:
        for edge in second_edges:
            x = (edge - b) / slope
            if low < x < high:
                cuts[count] = x
                count += 1
    return np.sort(cuts[:count])
