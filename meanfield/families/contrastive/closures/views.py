"""Averages over the augmentation noise of products of sigma and sigma' of both views, at a given common part B.

Theta_l = B + zeta_l with (zeta1, zeta2) ~ N(0, V). With s_l = sigma(Theta_l) and p_l = sigma'(Theta_l) the products are
s1^a p1^b s2^c p2^d with whole exponents. The second view is averaged first, at given Theta1, then the first.

Closures need the products of `DRIFT_ROWS` and `DIFFUSION_ROWS`, without centring those of `WITHOUT_CENTRING`. As
functions of B they do not depend on the overlaps, and are tabulated once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from meanfield.families.contrastive.closures.densities import PIECE, TAIL
from meanfield.ingredients.activations import Activation
from meanfield.numerics.compiled.array_operations import copy, sort
from meanfield.numerics.compiled.scalar_functions import call_scalar
from meanfield.numerics.piecewise import (
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
from meanfield.numerics.remembering import remembered
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray

STRONGER = (
    "the noise is too weak to smooth its kinks: raise augmentation.variance or set it to 0, or set "
    "augmentation.correlation to -1, 0 or 1"
)


def exponents(*products: str) -> IntArray:
    """Exponents of s1, p1, s2 and p2 in products such as "s1^2 p2^2", shape (rows, 4)."""
    table = []
    for product in products:
        powers = dict.fromkeys(("s1", "p1", "s2", "p2"), 0)
        for factor in product.split():
            base, _, power = factor.partition("^")
            powers[base] = int(power or 1)
        table.append(list(powers.values()))
    return np.array(table)


def averages_over_noise(
    activation: Activation, noise: tuple[float, float, float], reach: float, powers: IntArray
) -> tuple[Rows, list[float], list[float]]:
    """Averages of products as functions of B, in a form that `tabulate` takes.

    Parameters
    ----------
    noise : tuple of float
        v11, v12, v22.
    reach : float
        Largest |B|.
    powers : ndarray of int, shape (rows, 4)
        Exponents of s1, p1, s2 and p2 in each row.

    Returns
    -------
    rows : callable
        The averages at many values of B.
    breaks, layers : list of float
        Points where they may break, and where they change fast.
    """
    v11, v12, v22 = noise
    value, derivative = activation.addresses
    kinks = activation.kinks
    slope = v12 / v11 if v11 > 0 else 0.0
    rest = v22 - slope * v12
    rest = rest if rest > 1e-13 * v22 else 0.0  # below, the noises are functions of each other, up to rounding
    (first_powers, first_of), (second_powers, second_of) = (
        np.unique(part, axis=0, return_inverse=True) for part in (powers[:, :2], powers[:, 2:])
    )
    first_reach = reach + TAIL * math.sqrt(v11)
    second_reach = (reach + TAIL * (math.sqrt(v11) + math.sqrt(v22))) * 1.001
    what = "model.activation"
    single = tabulate(lambda x: _one_view(value, derivative, second_powers, x), kinks, second_reach, what)
    second = single
    if rest > 0:
        deviation, reached = math.sqrt(rest), reach + TAIL * abs(slope) * math.sqrt(v11) + 1e-9
        layers = _layers(kinks, deviation)
        second = tabulate(lambda x: _smoothed(single, x, deviation), kinks, reached, what, STRONGER, layers)
    edges = single.edges[np.abs(single.edges) <= first_reach]
    views = (first_powers, first_of.ravel()), (second_powers, second_of.ravel())

    def rows(points: FloatArray) -> FloatArray:
        result: FloatArray = _both_views(
            value, derivative, *views, edges, second, rest > 0, slope, math.sqrt(v11), points
        )
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
def _one_view(value, derivative, powers, points):  # type: ignore[no-untyped-def]
    """Products s^a p^b of one view at the points, shape (products, n)."""
    out = np.empty((len(powers), points.size))
    products = np.empty(len(powers))
    for i in range(points.size):
        _multiply(value, derivative, powers, points[i], products)
        copy(products, out[:, i])
    return out


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _multiply(value, derivative, powers, x, out):  # type: ignore[no-untyped-def]
    """Write the products s^a p^b at x to `out`."""
    s, p = call_scalar(value, x), call_scalar(derivative, x)
    for r in range(out.size):
        product = 1.0
        for _ in range(powers[r, 0]):
            product *= s
        for _ in range(powers[r, 1]):
            product *= p
        out[r] = product


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
def _both_views(  # type: ignore[no-untyped-def]
    value, derivative, first_view, second_view, edges, second, smooth, slope, deviation, points
):
    """Averages of all products at the points, shape (rows, n).

    Theta1 = B + N(0, deviation^2), and Theta2 is B + slope (Theta1 - B), smoothed where `smooth` says that `second`
    holds averages over the rest of its noise. A view is its products and the one that each row takes.
    """
    first_powers, first_of = first_view
    second_powers, second_of = second_view
    out = np.zeros((points.size, first_of.size))
    first, averages = np.empty(len(first_powers)), np.empty(len(second_powers))
    for n in range(points.size):
        b = points[n]
        if deviation == 0.0:
            _multiply(value, derivative, first_powers, b, first)
            _second_view(value, derivative, second_powers, second, smooth, b, averages)
            _add_products(out[n], 1.0, first, first_of, averages, second_of)
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
                    weight = half * WEIGHTS[i] * _normal_density(x, deviation)
                    _multiply(value, derivative, first_powers, b + x, first)
                    _second_view(value, derivative, second_powers, second, smooth, b + slope * x, averages)
                    _add_products(out[n], weight, first, first_of, averages, second_of)
    return np.ascontiguousarray(out.T)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_products(out, weight, first, first_of, second, second_of):  # type: ignore[no-untyped-def]
    for r in range(out.size):
        out[r] += weight * first[first_of[r]] * second[second_of[r]]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _second_view(value, derivative, powers, second, smooth, x, averages):  # type: ignore[no-untyped-def]
    """Averages of the products of the second view, whose noise has mean x - B."""
    if smooth:
        interpolate(second, panel_of(second, x), x, averages)
    else:
        _multiply(value, derivative, powers, x, averages)


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
    sort(cuts[:count])
    return cuts[:count]


DRIFT_ROWS = ("p1 s2 + s1 p2", "p1", "p2")
DIFFUSION_ROWS = (
    "s1^2 p2^2", "s2^2 p1^2", "s1 s2 p1 p2",
    "s1 p2^2", "s2 p1^2", "s1 p1 p2", "s2 p1 p2", "p2^2", "p1^2", "p1 p2",
    "s1", "s2", "s1^2", "s2^2", "s1 s2",
)  # fmt: skip
WITHOUT_CENTRING = (*DRIFT_ROWS[:1], *DIFFUSION_ROWS[:3])


@remembered(64)
def bracket_table(activation: Activation, noise: tuple[float, float, float], centred: bool, reach: float) -> Table:
    """All rows that a closure needs, as functions of B on [-reach, reach].

    Parameters
    ----------
    noise : tuple of float
        v11, v12, v22.
    centred : bool
        Whether mean outputs are subtracted: else only the uncentred products are kept.

    Returns
    -------
    Table
        Drift rows, their derivatives in B, then diffusion rows.
    """
    names = (*DRIFT_ROWS, *DIFFUSION_ROWS) if centred else WITHOUT_CENTRING
    first, *others = names
    products, breaks, layers = averages_over_noise(activation, noise, reach, exponents(*first.split(" + "), *others))

    def rows(points: FloatArray) -> FloatArray:
        values = products(points)
        return np.concatenate([values[:1] + values[1:2], values[2:]])

    remedy = STRONGER if any(noise) else NAME_THE_KINK
    table = tabulate(rows, breaks, reach, "model.activation", remedy, layers)
    return with_derivatives(table, len(DRIFT_ROWS) if centred else 1)
