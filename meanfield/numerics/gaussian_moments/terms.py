"""Averages of sums of products of two functions of one slot each, over Gaussian rows with any number of slots.

Each part of such a function is additive given its hub (see `separation`). So averages over the hubs of two parts are
sums over nodes in two directions, and given these the average of a product of two additive functions follows from
averages of Hermite polynomials times functions of one slot: <f(x) g(y)> = sum_n correlation^n <f he_n> <g he_n>,
which is Mehler's formula.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.numerics.compiled.array_operations import add, copy, dot, largest_of, scale
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.numerics.gaussian_moments.separation import INTERPOLATION, POINTS, PROBES, separate, value_of
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

ALMOST_ALONE = 1e-14
"""Share of a variance that is taken for rounding."""


class Line(NamedTuple):
    """Rule for one standard normal variable.

    Parameters
    ----------
    x, weight : ndarray, shape (nodes,)
    hermite : ndarray, shape (nodes, orders)
        Orthonormal Hermite polynomials times weights.
    reach : float
        Standard deviations at which tables end.
    cells : int
        Number of cells of a table.
    """

    x: FloatArray
    weight: FloatArray
    hermite: FloatArray
    reach: float
    cells: int


@numba.njit(cache=True, nogil=True, error_model="numpy")
def sum_of_terms(address, outputs, constants, mean, factor, parts, line, mirrored):  # type: ignore[no-untyped-def]
    """Moments of a function by its parts; products are 0 where they are not wanted.

    Parameters
    ----------
    address, outputs : int
        Of a `RowFunction`.
    constants : ndarray
        Numbers that all rows share.
    mean : ndarray, shape (width,)
    factor : ndarray, shape (width, rank)
    parts : Parts
    line : Line
    mirrored : bool
        Whether every output is even or odd and all means are 0, so that nodes of one half-space tell all; what vanishes
        is not right then.
    """
    width, rank = factor.shape
    unit, sizes = np.zeros((width, rank)), np.empty(width)
    for a in range(width):
        sizes[a] = math.sqrt(dot(factor[a], factor[a]))
        for k in range(rank):
            unit[a, k] = factor[a, k] / sizes[a] if sizes[a] > 0.0 else 0.0
    own = separate((address, outputs, constants, mean, sizes), parts, line.reach, line.cells)
    first, along, products = np.zeros(outputs), np.zeros((outputs, rank)), np.zeros((outputs, outputs))
    functions, P, orders = largest_of(own.functions), PROBES.size, line.hermite.shape[1]
    columns, points = functions * (orders + functions), line.cells + POINTS
    room = (
        np.empty((2, width)),
        np.empty((2, width)),
        np.empty(width, np.int64),
        np.empty((orders, width, width)),
        np.full((width, points, columns), np.nan),  # whatever reads beyond a table finds no number
        np.empty((functions, line.x.size)),
        np.empty((width, columns)),
        np.empty((2, width, P)),
        np.empty((2, orders, width)),
        np.empty(width),
    )
    largest = np.zeros(len(own.tables))  # each times the weights, in units of the largest of these
    for number in range(largest.size):
        for n in range(line.x.size):
            share = line.weight[n] / line.weight[line.x.size // 2]
            largest[number] = max(largest[number], share * abs(value_of(own.tables[number], line, line.x[n])))
    for j in range(parts.output.size):
        for i in range(j + 1):
            o, p = parts.output[j], parts.output[i]
            both = max(o, p) < parts.counted
            if i == j or both:
                value = call(_pair, own, largest, parts, j, i, line, unit, both, mirrored, first, along[o], room)
                products[o, p] += value
                if i != j:
                    products[p, o] += value
    return first, along.T.copy(), products


@without_reference_counts(fastmath={"reassoc", "contract", "nsz"})
def _pair(own, largest, parts, j, i, line, unit, both, mirrored, first, along, room):  # type: ignore[no-untyped-def]
    """Average of the product of two parts if `both` is set; that of a part itself is added to `first` and `along`.

    Slots count in units of their deviations, so that they are `unit` z. Nodes at which functions of hubs leave nothing
    of the weight, compared with what `largest` says, are passed over.
    """
    loadings, (left, low), slots, powers, smooth, values, means, weights, additive, inner = room
    rank, q = unit.shape[1], line.x.size
    directions = _given(unit, parts.hub[j], parts.hub[i], loadings, left)
    S, every = _needed(own, j, i, slots), q**directions
    last = (every + 1) // 2 if mirrored else every
    orders = _powers(unit, loadings, left, slots[:S], powers) if both else 2
    step, spacing = 2.0 * line.reach / line.cells, line.x[1] - line.x[0]
    for a in range(S):
        c = slots[a]
        if directions < 2:  # at the nodes themselves
            _smooth(own, c, line, left[c], loadings[0, c] * line.x[0], loadings[0, c] * spacing, orders, values,
                    smooth[a, :last])  # fmt: skip
        else:
            far = line.reach * math.sqrt(loadings[0, c] ** 2 + loadings[1, c] ** 2)
            low[a] = -far - (POINTS // 2 - 1) * step
            points = min(int(2.0 * far / step) + POINTS + 1, smooth.shape[1])  # nodes at the reach lie a little beyond
            _smooth(own, c, line, left[c], low[a], step, orders, values, smooth[a, :points])
    total, least = 0.0, line.weight[0] * line.weight[q // 2]
    for node in range(last):
        weight, z, w = 1.0, 0.0, 0.0
        if directions > 0:
            z, weight = line.x[node % q], line.weight[node % q]
        if directions > 1:
            w = line.x[node // q]
            weight *= line.weight[node // q]
        place = other_place = 0.0
        if directions > 0 and parts.hub[j] >= 0:
            place = loadings[0, parts.hub[j]] * z + loadings[1, parts.hub[j]] * w
        if directions > 0 and parts.hub[i] >= 0:
            other_place = loadings[0, parts.hub[i]] * z + loadings[1, parts.hub[i]] * w
        height = _height(own, largest, j, line, place)
        if i != j:
            height *= _height(own, largest, i, line, other_place)
        if weight * min(height, 1.0) < least:  # corners lie beyond tables
            continue
        if mirrored and node != every - 1 - node:
            weight *= 2.0
        for a in range(S):
            c = slots[a]
            if directions < 2:
                copy(smooth[a, node], means[a])
            else:
                at = (loadings[0, c] * z + loadings[1, c] * w - low[a]) / step
                _interpolate(smooth[a], own.functions[c] * (orders + own.functions[c]), at, means[a])
        value = _additive(own, j, line, place, slots[:S], orders, means, weights[0], additive[0])
        if i == j:
            first[parts.output[j]] += weight * value
            for k in range(rank):
                hub = unit[parts.hub[j], k] if directions > 0 else 0.0
                gain = hub * z * value
                for a in range(S):
                    c = slots[a]
                    if left[c] > 0.0:
                        gain += (unit[c, k] - hub * loadings[0, c]) / left[c] * additive[0, 1, a]
                along[k] += weight * gain
        if not both:
            continue
        other = value
        if i != j:
            other = _additive(own, i, line, other_place, slots[:S], orders, means, weights[1], additive[1])
        second = 0 if i == j else 1
        product = value * other
        for a in range(S):
            count = own.functions[slots[a]]
            for b in range(count):
                for d in range(count):
                    product += weights[0, a, b] * means[a, count * orders + b * count + d] * weights[second, a, d]
        for n in range(1, orders):
            scale(additive[second, n], 0.0, inner[:S])
            for b in range(S):
                add(inner[:S], additive[second, n, b], powers[n, b])
            product += dot(inner[:S], additive[0, n])
        total += weight * product
    return total


@without_reference_counts()
def _given(unit, hub, other, loadings, left):  # type: ignore[no-untyped-def]
    """Write the regression of slots on normal variables for two hubs, and deviations left; how many variables."""
    directions = 0
    for k in range(2):
        for c in range(len(unit)):
            loadings[k, c] = 0.0
    for number in range(2):
        h = hub if number == 0 else other
        if h < 0 or unit.shape[1] == 0:
            continue
        along = loadings[0, h] if directions > 0 else 0.0
        rest = dot(unit[h], unit[h]) - along * along
        if rest > ALMOST_ALONE:
            for c in range(len(unit)):
                inner = along * loadings[0, c] if directions > 0 else 0.0
                loadings[directions, c] = (dot(unit[h], unit[c]) - inner) / math.sqrt(rest)
            directions += 1
    for c in range(len(unit)):
        rest = dot(unit[c], unit[c]) - loadings[0, c] * loadings[0, c] - loadings[1, c] * loadings[1, c]
        left[c] = math.sqrt(rest) if rest > ALMOST_ALONE else 0.0
    return directions


@without_reference_counts()
def _needed(own, j, i, slots):  # type: ignore[no-untyped-def]
    """Write the slots in which one of two parts is additive; their number."""
    count = 0
    for c in range(slots.size):
        found = False
        for b in range(own.functions[c]):
            for part in (j, i):
                for r in range(own.rank[part]):
                    found = found or own.share[part, r, c, b] != 0.0
        if found:
            slots[count] = c
            count += 1
    return count


@without_reference_counts()
def _powers(unit, loadings, left, slots, powers):  # type: ignore[no-untyped-def]
    """Write powers of correlations of different slots given the hubs, until they vanish; their number."""
    largest = 0.0
    for a in range(slots.size):
        for b in range(a + 1):
            c, d = slots[a], slots[b]
            rest = dot(unit[c], unit[d]) - loadings[0, c] * loadings[0, d] - loadings[1, c] * loadings[1, d]
            correlation = 0.0
            if a != b and left[c] > 0.0 and left[d] > 0.0:
                correlation = min(max(rest / (left[c] * left[d]), -1.0), 1.0)
            largest = max(largest, abs(correlation))
            power = 1.0
            for n in range(len(powers)):
                powers[n, a, b] = powers[n, b, a] = power
                power *= correlation
    orders, power = 2, largest * largest
    # Power of a correlation from which on Mehler's series is left out.
    while orders < len(powers) and power > 1e-14:
        power *= largest
        orders += 1
    return orders


@without_reference_counts()
def _smooth(own, slot, line, left, low, step, orders, values, table):  # type: ignore[no-untyped-def]
    """Write averages of functions of a slot times Hermite polynomials, and covariances, for equidistant means of it.

    Parameters
    ----------
    left : float
        Deviation of the slot about its mean.
    low, step : float
        The first mean, and the distance of means.
    values : ndarray, shape (functions, nodes)
        Room.
    table : ndarray, shape (means, columns)
        Columns are functions and orders, then pairs of functions.
    """
    count, q = own.functions[slot], line.x.size
    for g in range(table.shape[0]):
        mean = low + g * step
        for k in range(count * (orders + count)):
            table[g, k] = 0.0
        for b in range(count):
            base = own.tables[own.of_slot[slot, b]]
            if left == 0.0:
                table[g, b * orders] = value_of(base, line, mean)
                continue
            for n in range(q):
                values[b, n] = value_of(base, line, mean + left * line.x[n])
            for n in range(q):
                for k in range(orders):
                    table[g, b * orders + k] += values[b, n] * line.hermite[n, k]
            for d in range(b + 1):
                total = 0.0
                for n in range(q):
                    total += (
                        line.weight[n] * (values[b, n] - table[g, b * orders]) * (values[d, n] - table[g, d * orders])
                    )
                table[g, count * (orders + b) + d] = table[g, count * (orders + d) + b] = total


@without_reference_counts()
def _interpolate(table, width, place, out):  # type: ignore[no-untyped-def]
    """Write the first columns of a table at a place between its rows."""
    cell = min(max(int(place) - POINTS // 2 + 1, 0), table.shape[0] - POINTS)
    t = place - cell - (POINTS // 2 - 1)
    for column in range(width):
        out[column] = 0.0
    for k in range(POINTS):
        share, power = 0.0, 1.0
        for m in range(POINTS):
            share += INTERPOLATION[m, k] * power
            power *= t
        for column in range(width):
            out[column] += share * table[cell + k, column]


@without_reference_counts()
def _height(own, largest, j, line, place):  # type: ignore[no-untyped-def]
    """Largest function of a part's hub at a place, each in units of `largest`."""
    found = 0.0
    for r in range(own.rank[j]):
        number = own.of_hub[j, r]
        if largest[number] > 0.0:
            found = max(found, abs(value_of(own.tables[number], line, place)) / largest[number])
    return found


@without_reference_counts()
def _additive(own, j, line, place, slots, orders, means, weights, out):  # type: ignore[no-untyped-def]
    """Average of a part given the hubs, and of its functions of each slot times Hermite polynomials.

    Parameters
    ----------
    place : float
        Of its hub.
    means : ndarray, shape (slots, columns)
        Of functions of slots.
    weights : ndarray, shape (slots, functions)
        Receives the coefficients of these functions.
    out : ndarray, shape (orders, slots)
        Receives the averages.
    """
    value = 0.0
    for a in range(slots.size):
        for b in range(own.functions[slots[a]]):
            weights[a, b] = 0.0
    for r in range(own.rank[j]):
        height = value_of(own.tables[own.of_hub[j, r]], line, place)
        value += height * own.constant[j, r]
        for a in range(slots.size):
            for b in range(own.functions[slots[a]]):
                weights[a, b] += height * own.share[j, r, slots[a], b]
    for a in range(slots.size):
        for n in range(orders):
            total = 0.0
            for b in range(own.functions[slots[a]]):
                total += weights[a, b] * means[a, b * orders + n]
            out[n, a] = total
        value += out[0, a]
    return value
