"""Separation of functions of several slots into functions of one slot, by cross approximation.

A part of a function is additive given one slot, its hub: sum_r u_r(x_hub) (constant + sum_c a_rc(x_c)). Values at a few
places of the hub and of one more slot, with all others at their means, say how many products there are and at which
places the function itself is u_r or a_rc but for a factor. These functions of one slot are tabulated there.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.numerics.compiled.array_operations import add, copy, dot, scale
from meanfield.numerics.compiled.row_functions import call_rows
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.process import own_numba as numba
from meanfield.typing import BoolArray, FloatArray, IntArray

PROBES = np.array([-2.9, -1.7, -0.9, -0.3, 0.5, 1.1, 1.9, 3.1])
"""Places of a slot, in standard deviations: odd and even functions vanish at none of them."""

NOTHING = 1e-12
"""Size of a remainder that is rounding, relative to the largest value."""

POINTS = 8
"""Number of points of a table, half of them on each side, through which polynomials between two of them go."""

INTERPOLATION = np.linalg.inv(np.vander(np.arange(1.0 - POINTS // 2, 1.0 + POINTS // 2), increasing=True))
"""Coefficients of powers on [0, 1] in those polynomials, shape (powers, points)."""


class Parts(NamedTuple):
    """Parts of a function.

    Parameters
    ----------
    output, hub : ndarray of int, shape (parts,)
        Which output a part belongs to, and its hub: a slot, or -1 where there is none.
    partners : ndarray of bool, shape (parts, width)
        Slots in which the part is additive given the hub.
    whole : ndarray of bool, shape (parts,)
        Whether it has what depends on one slot alone, as the first part of each output does; others vanish where the
        hub or all others are at their means.
    counted : int
        Number of the first outputs of which averages of products are wanted.
    """

    output: IntArray
    hub: IntArray
    partners: BoolArray
    whole: BoolArray
    counted: int


class Separated(NamedTuple):
    """Functions of one slot, and how parts consist of them.

    Parameters
    ----------
    tables : ndarray, shape (functions, cells, POINTS)
        Coefficients of polynomials between two points, on [0, 1].
    rank : ndarray of int, shape (parts,)
        Number of products u_r (constant + sum_c a_rc) of a part.
    of_hub : ndarray of int, shape (parts, products)
        Tables of u_r.
    constant : ndarray, shape (parts, products)
    functions : ndarray of int, shape (width,)
        How many functions of a slot all a_rc are combinations of.
    of_slot : ndarray of int, shape (width, functions)
        Their tables.
    share : ndarray, shape (parts, products, width, functions)
        Coefficients of a_rc.
    """

    tables: FloatArray
    rank: IntArray
    of_hub: IntArray
    constant: FloatArray
    functions: IntArray
    of_slot: IntArray
    share: FloatArray


@numba.njit(cache=True, nogil=True, error_model="numpy")
def separate(law, parts, reach, cells):  # type: ignore[no-untyped-def]
    """Functions of one slot of which parts consist.

    Parameters
    ----------
    law : tuple
        Address and number of outputs of a row function, its constants, and means and standard deviations of slots.
    parts : Parts
    reach : float
        Standard deviations at which tables end.
    cells : int
        Number of cells between points of a table.
    """
    J, width = parts.partners.shape
    P = PROBES.size
    rank, rows, columns = np.zeros(J, np.int64), np.zeros((J, P), np.int64), np.zeros((J, P), np.int64)
    seen = np.zeros((J, P, 1 + width * P))  # a column for the constant, and one for each probe of each slot
    across, along, pivots = np.zeros((J, P, P)), np.zeros((J, P, 1 + width * P)), np.zeros((J, P))
    grid = np.empty(cells + POINTS - 1)
    for g in range(grid.size):
        grid[g] = reach * (2.0 * (g - POINTS // 2 + 1) / cells - 1.0)
    room = (np.empty((grid.size + 1, width)), np.empty((grid.size + 1, law[1])), np.zeros((P, 1 + width * P)))
    probes = PROBES.copy()  # a constant would be another type than a grid, and what it is given to compiled twice
    for j in range(J):
        call(_cross, law, parts, j, probes, seen[j], rank, rows[j], columns[j], across[j], along[j], pivots[j], room)
    count, source, inner = np.zeros(width, np.int64), np.zeros((width, P, 2), np.int64), np.zeros((width, P, P))
    share, constant = np.zeros((J, P, width, P)), np.zeros((J, P))
    call(_find_bases, parts, rank, rows, seen, count, source, inner, share, np.zeros((J, P, P)))
    of_slot, of_hub, number = np.zeros((width, P), np.int64), np.zeros((J, P), np.int64), 0
    for c in range(width):
        for b in range(count[c]):
            of_slot[c, b] = number
            number += 1
    for j in range(J):
        for r in range(rank[j]):
            of_hub[j, r] = number
            number += 1
    own = Separated(np.empty((number, cells, POINTS)), rank, of_hub, constant, count, of_slot, share)
    values = np.empty((number, grid.size))
    call(_tabulate, law, parts, own, rows, columns, across, along, pivots, source, inner, grid, values, room)
    return own


@without_reference_counts()
def _add(law, output, sign, moved, places, still, place, less, out, room):  # type: ignore[no-untyped-def]
    """Add values of an output times a sign to `out`, with one slot moved to some places and one to a single place.

    Parameters
    ----------
    moved, still : int
        These slots, or -1 for none.
    less : int
        1 if the value with the first slot at its mean is subtracted, else 0.
    """
    address, _, constants, mean, sizes = law
    count = places.size + less
    rows, found = room[0][:count], room[1][:count]
    for n in range(count):
        copy(mean, rows[n])
        if still >= 0:
            rows[n, still] += sizes[still] * place
        if moved >= 0 and n < places.size:
            rows[n, moved] += sizes[moved] * places[n]
    call_rows(address, rows, constants, found)
    for n in range(places.size):
        out[n] += sign * (found[n, output] - (found[places.size, output] if less else 0.0))


@without_reference_counts()
def _write_of_slot(law, parts, j, hub, slot, places, out, room):  # type: ignore[no-untyped-def]
    """Write what a part has at a place of its hub, and some places of a slot, beyond the constant."""
    for n in range(places.size):
        out[n] = 0.0
    call(_add, law, parts.output[j], 1.0, slot, places, parts.hub[j], hub, np.int64(1), out, room)
    if not parts.whole[j]:
        call(_add, law, parts.output[j], -1.0, slot, places, np.int64(-1), 0.0, np.int64(1), out, room)


@without_reference_counts()
def _write_of_hub(law, parts, j, places, column, out, room):  # type: ignore[no-untyped-def]
    """Write what a part has at some places of its hub in a column: the constant, or a probe of a slot beyond that."""
    for n in range(places.size):
        out[n] = 0.0
    if column > 0:
        slot, probe, less = (column - 1) // PROBES.size, PROBES[(column - 1) % PROBES.size], 1 - parts.whole[j]
        call(_add, law, parts.output[j], 1.0, parts.hub[j], places, slot, probe, less, out, room)
        call(_add, law, parts.output[j], -1.0, parts.hub[j], places, np.int64(-1), 0.0, less, out, room)
    elif parts.whole[j]:
        call(_add, law, parts.output[j], 1.0, parts.hub[j], places, np.int64(-1), 0.0, np.int64(0), out, room)


@without_reference_counts()
def _cross(law, parts, j, probes, seen, rank, rows, columns, across, along, pivots, room):  # type: ignore[no-untyped-def]
    """Cross approximation of a part: places of the hub by the constant and places of other slots.

    Parameters
    ----------
    seen : ndarray, shape (places of the hub, columns)
        Receives values.
    rank : ndarray of int, shape (parts,)
        Receives the number of crosses.
    rows, columns : ndarray of int, shape (crosses,)
    across, along : ndarray, shape (crosses, places of the hub) and (crosses, columns)
        Receive the columns of what is left before each cross, and its rows divided by the pivots.
    pivots : ndarray, shape (crosses,)
    """
    P, left = PROBES.size, room[2]
    hubs = P if parts.hub[j] >= 0 else 1
    _write_of_hub(law, parts, j, probes[:hubs], np.int64(0), across[0, :hubs], room)
    for i in range(hubs):
        seen[i, 0] = across[0, i]
    for c in range(parts.partners.shape[1]):
        for i in range(hubs if parts.partners[j, c] else 0):
            _write_of_slot(law, parts, j, probes[i], c, probes, seen[i, 1 + c * P : 1 + (c + 1) * P], room)
    for i in range(P):
        copy(seen[i], left[i])
    least = 0.0
    for r in range(P):
        most = 0.0
        for i in range(hubs):
            for k in range(left.shape[1]):
                if abs(left[i, k]) > most:
                    rows[r], columns[r], most = i, k, abs(left[i, k])
        least = max(least, NOTHING * most)
        if not most > least:
            return
        rank[j], pivots[r] = r + 1, left[rows[r], columns[r]]
        scale(left[rows[r]], 1.0 / pivots[r], along[r])
        for i in range(P):
            across[r, i] = left[i, columns[r]]
            add(left[i], -across[r, i], along[r])


@without_reference_counts()
def _find_bases(parts, rank, rows, seen, count, source, inner, share, left):  # type: ignore[no-untyped-def]
    """Find few functions of each slot, rows of crosses made orthonormal at the probes, and all rows in these.

    Parameters
    ----------
    count : ndarray of int, shape (width,)
        Receives the number of functions.
    source : ndarray of int, shape (width, functions, 2)
        Receives part and cross of each.
    inner : ndarray, shape (width, functions, functions)
        Receives the coefficients of these in the orthonormal ones.
    share : ndarray, shape (parts, crosses, width, functions)
        Receives those of all.
    left : ndarray, shape (parts, crosses, probes)
        Room.
    """
    J, width = parts.partners.shape
    P = PROBES.size
    for c in range(width):
        for j in range(J):
            for r in range(rank[j]):
                copy(seen[j, rows[j, r], 1 + c * P : 1 + (c + 1) * P], left[j, r])
        for b in range(P):
            most = NOTHING
            for j in range(J):
                largest = 0.0
                for r in range(rank[j]):
                    largest = max(largest, math.sqrt(dot(seen[j, rows[j, r]], seen[j, rows[j, r]])))
                for r in range(rank[j]):
                    size = math.sqrt(dot(left[j, r], left[j, r])) / largest
                    if size > most:
                        source[c, b, 0], source[c, b, 1], most = j, r, size
            if most == NOTHING:
                break
            count[c] = b + 1
            own = left[source[c, b, 0], source[c, b, 1]]
            unit = inner[c, b]  # until its coefficients are known
            scale(own, 1.0 / math.sqrt(dot(own, own)), unit)
            for j in range(J):
                for r in range(rank[j]):
                    share[j, r, c, b] = dot(left[j, r], unit)
                    add(left[j, r], -share[j, r, c, b], unit)
            copy(share[source[c, b, 0], source[c, b, 1], c], unit)


@without_reference_counts()
def _tabulate(  # type: ignore[no-untyped-def]
    law, parts, own, rows, columns, across, along, pivots, source, inner, grid, values, room
):
    """Fill tables, constants and shares of `own` from crosses.

    Parameters
    ----------
    values : ndarray, shape (functions, points)
        Room.
    """
    for c in range(own.functions.size):
        for b in range(own.functions[c]):
            j, r, out = source[c, b, 0], source[c, b, 1], values[own.of_slot[c, b]]
            _write_of_slot(law, parts, j, PROBES[rows[j, r]], c, grid, out, room)
            for other in range(b):
                add(out, -inner[c, b, other], values[own.of_slot[c, other]])
            scale(out, 1.0 / inner[c, b, b], out)
    for j in range(own.rank.size):
        for r in range(own.rank[j]):
            own.constant[j, r] = along[j, r, 0]
            for c in range(own.functions.size):
                for s in range(r):
                    add(own.share[j, r, c], -across[j, s, rows[j, r]], own.share[j, s, c])
                scale(own.share[j, r, c], 1.0 / pivots[j, r], own.share[j, r, c])
            out = values[own.of_hub[j, r]]
            if parts.hub[j] < 0:
                for g in range(grid.size):
                    out[g] = pivots[j, r]
            else:
                _write_of_hub(law, parts, j, grid, columns[j, r], out, room)
                for s in range(r):
                    add(out, -along[j, s, columns[j, r]], values[own.of_hub[j, s]])
    for number in range(len(own.tables)):
        for cell in range(own.tables.shape[1]):
            for k in range(POINTS):
                own.tables[number, cell, k] = dot(INTERPOLATION[k], values[number, cell : cell + POINTS])


@without_reference_counts()
def value_of(table, line, x):  # type: ignore[no-untyped-def]
    """Value of a tabulated function; beyond the reach that at its end."""
    place = min(max(0.5 * (x / line.reach + 1.0), 0.0), 1.0 - 1e-15) * line.cells
    cell = int(place)
    t, value = place - cell, 0.0
    for k in range(POINTS - 1, -1, -1):
        value = value * t + table[cell, k]
    return value
