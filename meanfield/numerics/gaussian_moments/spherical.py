"""Nodes for averages of homogeneous functions whose kinks go through the origin, on the unit sphere.

What grows with the power p of the length r of a normal vector has the average E r^p times that over its directions. A
point of the sphere in j directions is cos a times one in j - 1 of them, and sin a. So each linear form that the
directions up to the last of them determine has one place among the angles a, where its function has a kink, and the
average over later directions is smooth but for layers about such places, which get panels that grow with the distance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from meanfield.numerics.compiled.row_functions import RowFunction
from meanfield.numerics.gaussian_moments.kernel import Law, Moments, Nodes
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

LARGEST_POWER = 4
"""Largest power of the length with which functions grow."""

WIDEST_LAYER = 0.7
"""Largest width of a smooth step, in radians, that has panels of its own."""

LAYERS = 20
"""Panels on each side of a step: each is three times as wide as those before it together, so that all is covered."""

SMOOTHEST = 2.0
"""Distance of singularities, in radians, for which nodes are as many as for products of what is smooth."""

WIDEST_STEP = math.sinh(SMOOTHEST)
"""Width of smooth steps whose singularities are as far away."""

MOST_POINTS = 64
"""Largest number of nodes of a panel."""


def powers_of(function: RowFunction, constants: FloatArray, laws: Sequence[Law]) -> tuple[int, ...] | None:
    """Powers of the length of a row with which outputs grow, at these constants and others.

    None if some do not grow so, like another power at other constants, or laws have means.
    """
    if any(law.mean.any() or not law.factor.size for law in laws):
        return None
    sizes = np.linalg.norm(laws[0].factor, axis=1)
    rows = np.random.default_rng(0).standard_normal((64, function.width)) * np.where(sizes > 0.0, sizes, 1.0)
    # Constants such as a bias or a threshold may be 0 for a while, with which other functions are homogeneous.
    others = constants * np.linspace(1.1, 1.2, len(constants)) + 0.1 * (constants == 0.0)
    found = []
    for each in (constants, others):
        values = [function(scale * rows, each) for scale in (1.0, 0.125, 8.0)]
        largest = np.abs(values).max(axis=1)
        if not np.isfinite(largest).all():
            return None
        grows = largest[0] > 0.0
        powers = np.full(function.outputs, -1)  # of outputs that are 0, whatever they grow like otherwise
        powers[grows] = np.rint(np.log2(largest[2, grows] / largest[0, grows]) / 3.0)
        if np.any((powers[grows] < 0) | (powers > LARGEST_POWER)):
            return None
        for scale, scaled in zip((0.125, 8.0), values[1:], strict=True):
            # Rounding of functions of scaled rows, relative to the largest value.
            if np.any(np.abs(scaled - scale**powers * values[0]) > 1e-12 * scale**powers * largest[0]):
                return None
        found.append(powers)
    here, elsewhere = found
    if np.any(elsewhere < 0) or np.any((here >= 0) & (here != elsewhere)):
        return None
    return tuple(elsewhere.tolist())


@lru_cache(maxsize=16)
def mean_powers(rank: int) -> FloatArray:
    """Averages E r^p of the length of a normal vector, for each p that occurs in products of four values and z z."""
    p = np.arange(4 * LARGEST_POWER + 3)
    return np.asarray(np.exp(0.5 * p * math.log(2.0) + gammaln(0.5 * (rank + p)) - gammaln(0.5 * rank)))


def with_lengths(moments: Moments, powers: Sequence[int]) -> Moments:
    """Moments over normal vectors by those over the unit sphere."""
    of, p = mean_powers(len(moments.along)), np.array(powers)
    first, along, products = moments
    return Moments(first * of[p], along * of[p + 1], products * of[p[:, None] + p])


@lru_cache(maxsize=1)
def _legendre() -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre rules by their numbers of nodes, shape (numbers, nodes)."""
    found = np.zeros((2, MOST_POINTS + 1, MOST_POINTS))
    for n in range(1, MOST_POINTS + 1):
        found[:, n, :n] = np.polynomial.legendre.leggauss(n)
    return found[0], found[1]


def sphere_nodes(order: int, forms: FloatArray, most: int) -> Nodes:
    """Nodes and weights on the unit sphere for functions with kinks where linear forms vanish.

    Parameters
    ----------
    order : int
        Number of nodes of a panel at whose ends singularities are as far away as it is long.
    forms : ndarray, shape (forms, directions + 1)
        See `panel_nodes`.
    most : int
        Largest number of nodes; there are none if they would be more.
    """
    return Nodes(*_nodes_of_angles(*_legendre(), order, forms, most))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _nodes_of_angles(points, shares, order, forms, most):  # type: ignore[no-untyped-def]
    """Nodes of both half-spheres, shape (directions, nodes), and their weights, which add up to 1."""
    directions = forms.shape[1] - 1
    nodes, weights = np.ones((directions, 1)), np.ones(1)
    for j in range(1, directions):
        behind, ends, counts = _panels_of(forms, nodes, j, order)
        total, at = counts.sum(), 0
        if 2 * total > most:
            return np.zeros((directions, 0)), np.zeros(0)
        wider, heavier = np.empty((directions, total)), np.empty(total)
        for i in range(counts.size):
            node, n, half = behind[i], counts[i], 0.5 * (ends[i, 1] - ends[i, 0])
            for k in range(n):
                angle = ends[i, 0] + (1.0 + points[n, k]) * half
                along = math.cos(angle)
                wider[j, at] = math.sin(angle)
                heavier[at] = weights[node] * half * shares[n, k]
                for column in range(j):
                    wider[column, at] = along * nodes[column, node]
                    if column > 0:
                        heavier[at] *= along
                at += 1
        nodes, weights = wider, heavier
    scaled = 0.5 * weights / weights.sum()
    return np.concatenate((nodes, -nodes), axis=1), np.concatenate((scaled, scaled))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _panels_of(forms, nodes, j, order):  # type: ignore[no-untyped-def]
    """Panels of the angle of direction j: the nodes behind which they are, their ends, and their numbers of nodes."""
    cuts, singular = np.empty(2 + len(forms) * (1 + 4 * LAYERS)), np.empty((3 * len(forms), 2))
    room = nodes.shape[1] + cuts.size
    behind, ends, counts, found = np.empty(room, np.int64), np.empty((room, 2)), np.empty(room, np.int64), 0
    for node in range(nodes.shape[1]):
        last, count = _sorted_angles(forms, nodes, node, j, cuts, singular)
        if found + cuts.size > room:
            room *= 2
            behind, counts = _longer(behind, room), _longer(counts, room)
            ends = np.concatenate((ends, np.empty((room - len(ends), 2))))
        for i in range(last - 1):
            behind[found], ends[found, 0], ends[found, 1] = node, cuts[i], cuts[i + 1]
            counts[found] = _points_between(order, cuts[i], cuts[i + 1], singular[:count])
            found += 1
    return behind[:found], ends[:found], counts[:found]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _longer(numbers, size):  # type: ignore[no-untyped-def]
    """The same numbers with room behind them."""
    return np.concatenate((numbers, np.empty(size - numbers.size, np.int64)))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _points_between(order, left, right, singular):  # type: ignore[no-untyped-def]
    """Number of nodes of a panel whose error is like that of others.

    It falls like a power of the sum of the half-axes of the ellipse about both ends on which the first singularity is.
    """
    half, middle = 0.5 * (right - left), 0.5 * (left + right)
    axis = math.hypot(1.0, SMOOTHEST / max(half, 1e-9))
    for place, depth in singular:
        x, y = (place - middle) / half, depth / half
        axis = min(axis, 0.5 * (math.sqrt((x - 1.0) ** 2 + y * y) + math.sqrt((x + 1.0) ** 2 + y * y)))
    n = math.ceil(order * math.log(3.0) / math.log(axis + math.sqrt(axis * axis - 1.0)))
    return min(max(n, 2), MOST_POINTS)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sorted_angles(forms, nodes, node, j, cuts, singular):  # type: ignore[no-untyped-def]
    """Write the ends of panels of the angle of direction j behind a node, and singularities; their numbers."""
    ends, count = 2, 0
    cuts[0], cuts[1] = -0.5 * math.pi, 0.5 * math.pi
    for form in forms:
        before = later = 0.0
        for column in range(j):
            before += form[column] * nodes[column, node]
        for column in range(j + 1, form.size):
            later += form[column] * form[column]
        square = before * before + form[j] * form[j]
        if square * WIDEST_STEP**2 <= later or later == form[j] == 0.0:
            continue
        width, place, distance = math.sqrt(later / square), -math.atan2(before, form[j]), 0.0
        sharp = width < 1e-9  # a jump
        for turn in range(-1, 2):  # beyond the poles, too
            if not sharp:
                singular[count, 0], singular[count, 1] = place + turn * math.pi, math.asinh(width)
                count += 1
        for layer in range(LAYERS + 1 if width <= WIDEST_LAYER else 0):
            for side in range(-1, 2, 2):
                for turn in range(-1, 2):
                    x = place + side * distance + turn * math.pi
                    if cuts[0] < x < cuts[ends - 1] and (layer > 0 or side > 0):
                        i = ends
                        while cuts[i - 1] > x:
                            cuts[i] = cuts[i - 1]
                            i -= 1
                        cuts[i] = x
                        ends += 1
            # Singularities lie one width away: panels end at twice that, at eight times, and so on.
            distance = max(2.0 * width, 4.0 * distance)
            if sharp or distance > 0.5 * math.pi:
                break
    return ends, count
