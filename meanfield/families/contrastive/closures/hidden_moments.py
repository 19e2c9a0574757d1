"""Averages of functions of B with first and second moments of X = c - q B, the part of c that changes q.

In a component of the `Mixture` c_k has mean m_k and a Gaussian part of variance v_k, so that (c, B) is Gaussian. With
M = m.q, D^2 = 1 - q.q + sum_k q_k^2 v_k and y = (B - M)/D,

    E[X_f | B] = (m_f - q_f M) + y (q_f v_f/D - q_f D)
    Cov[X_f, X_g | B] = v_f delta_fg - q_f q_g v_f v_g/D^2

which makes density times moment a Gaussian times a polynomial in y. Its coefficients are linear in the second moments
of z = (1, m, v), so that components which lie close together can share nodes, as they do in `mixture`. Nothing is
divided by 1 - q.q, and X is small where |q| -> 1 without cancellation between averages.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.families.contrastive.closures.averages import refined
from meanfield.families.contrastive.closures.densities import PIECE, TAIL
from meanfield.families.contrastive.closures.mixture import components_of_b
from meanfield.numerics.compiled.array_operations import copy
from meanfield.numerics.compiled.exponential import LAST_EXPONENT, exp_minus
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.piecewise import NODES, ORDER, WEIGHTS, interpolate, panel_of
from meanfield.process import own_numba as numba

_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def averages_with_hidden(table, mixture, q):  # type: ignore[no-untyped-def]
    """Averages of the rows f of a table, alone and with moments of X.

    Parameters
    ----------
    table : Table
    mixture : Mixture
    q : ndarray, shape (d1,)
        Overlaps, inside the unit ball or on its boundary.

    Returns
    -------
    ndarray, shape (rows, 1 + d1 + d1^2)
        <f>, then <X_f f>, then <X_f X_g f>.
    """
    parts = call(components_of_b, mixture, q, np.int64(2))
    table = call(refined, table, parts.centre, parts.deviation, np.zeros(1))
    columns = 1 + q.size + q.size * q.size
    at_nodes = np.zeros((columns, table.nodes.size))
    direct = np.zeros((table.values.shape[0], columns))
    for a in range(parts.centre.size):
        _add_part(table, parts.centre[a], parts.deviation[a], _polynomials(parts, a, q), at_nodes, direct)
    return direct + table.values @ at_nodes.T


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _polynomials(parts, a, q):  # type: ignore[no-untyped-def]
    """Coefficients of 1, y and y^2 in probability times 1, E[X_f | B] and E[X_f X_g | B], shape (columns, 3)."""
    d1, D = q.size, parts.deviation[a]
    n = 1 + 2 * d1
    W = parts.weight[a].copy().reshape(n, n)
    # X_f = (constant + y slope).z, but for what is left of c at given B
    constant, slope = np.zeros((d1, n)), np.zeros((d1, n))
    for f in range(d1):
        constant[f, 0], constant[f, 1 + f] = -q[f] * parts.centre[a], 1.0
        slope[f, 0], slope[f, 1 + d1 + f] = -q[f] * D, q[f] / D
    result = np.zeros((1 + d1 + d1 * d1, 3))
    result[0, 0] = W[0, 0]
    copy(constant @ W[0], result[1 : 1 + d1, 0])
    copy(slope @ W[0], result[1 : 1 + d1, 1])
    mixed = constant @ W @ slope.T
    for power, square in ((0, constant @ W @ constant.T), (1, mixed + mixed.T), (2, slope @ W @ slope.T)):
        copy(square.ravel(), result[1 + d1 :, power])
    for f in range(d1):
        for g in range(d1):
            left = -q[f] * q[g] * W[1 + d1 + f, 1 + d1 + g] / (D * D)
            if f == g:
                left += W[0, 1 + d1 + f]
            result[1 + d1 + f * d1 + g, 0] += left
    return result


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_part(table, centre, deviation, polynomials, at_nodes, direct):  # type: ignore[no-untyped-def]
    """Add a part to the weights of the nodes, or directly where panels are wide. Whole panels may overshoot."""
    low, high, widest = centre - TAIL * deviation, centre + TAIL * deviation, PIECE * deviation
    row, share = np.empty(direct.shape[0]), np.empty((direct.shape[1], ORDER))
    for panel in range(panel_of(table, low), panel_of(table, high) + 1):
        left, right = table.edges[panel], table.edges[panel + 1]
        if right - left <= widest:
            i, j = panel * ORDER, (panel + 1) * ORDER
            _add_weights(table.nodes[i:j], table.weights[i:j], centre, deviation, polynomials, at_nodes[:, i:j])
            continue
        left, right = max(left, low), min(right, high)
        pieces = max(1, math.ceil((right - left) / widest))
        half = 0.5 * (right - left) / pieces
        for piece in range(pieces):
            x = left + (2 * piece + 1 + NODES) * half
            share[:] = 0.0
            _add_weights(x, half * WEIGHTS, centre, deviation, polynomials, share)
            for i in range(ORDER):
                interpolate(table, panel, x[i], row)
                for r in range(row.size):
                    for column in range(share.shape[0]):
                        direct[r, column] += row[r] * share[column, i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_weights(x, weight, centre, deviation, polynomials, columns):  # type: ignore[no-untyped-def]
    """Add weight times density times polynomials at the points x to `columns`, shape (columns, points)."""
    for i in range(x.size):
        y = (x[i] - centre) / deviation
        exponent = 0.5 * y * y
        if exponent >= LAST_EXPONENT:
            continue
        density = weight[i] * exp_minus(exponent) / (_ROOT_TWO_PI * deviation)
        for k in range(columns.shape[0]):
            columns[k, i] += density * (polynomials[k, 0] + y * (polynomials[k, 1] + y * polynomials[k, 2]))
