"""Coupling of all nodes by q, r and E[w^2]: the coefficients of a stage, and how they follow changes of the points.

The multiplier of the norm is

    G = (q.g + tau r - Lambda/2)/e - kappa (e - 1),    e = E[w^2],

where kappa, the root of the squares of the first bracket and of Lambda/2, is never less than |G|: without the last term
an error of e would grow like exp(2 int G dt). The term vanishes in the limit, like e - 1, and is smooth in time. A
norm n other than 1 that is kept stands in the place of 1. Where the norm is free, G comes from the closure.

Overlaps q are averages of w times u. Where the noise has variances rho that differ, those of w times rho u follow, and
E[rho w^2] is the last; D is then rho Lambda/2, with its mean in the multiplier.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.mckean_vlasov.closures import closure_values
from meanfield.mckean_vlasov.drive import Drive
from meanfield.numerics.compiled.array_operations import copy
from meanfield.numerics.compiled.callbacks import call_back
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.quantile_frame.linearised import respond
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

CLOSURE_STEP = 1e-6
"""Step of the differences that give the derivatives of the closure."""


class Coupling(NamedTuple):
    """Nodes, closure and accuracy.

    Parameters
    ----------
    u : ndarray, shape (blocks * LANES, d)
        Factors of w in the overlaps that are linear in it; nodes that fill the last block have no weight.
    rho : ndarray, shape (blocks * LANES,)
        Variance of the noise.
    mean_variance : float
    overlaps : int
        Number of all of them.
    u_weight : ndarray, shape (blocks * LANES,)
    learning_rate : float
        tau.
    tolerance : float
        Root mean square error of w that a step may make, and error of q and r.
    norm : float
        E[w^2] where it is kept.
    reach : float
        Largest |q| at which the compiled closure is good.
    drive : Drive
    factors : ndarray, shape (6,)
        Those of the drive and their slopes at the time of the stage.
    call : int
        Address of the callback that reads `q` and writes `values`.
    q : ndarray, shape (overlaps,), or (overlaps + 1,) where the norm is free
        Arguments of the closure: q and, where it is free, E[w^2].
    values : ndarray, shape (overlaps + 1,), or (overlaps + 2,)
        g, Lambda and, where the norm is free, G, without the factors of the drive.
    """

    u: FloatArray
    rho: FloatArray
    mean_variance: float
    overlaps: int
    u_weight: FloatArray
    learning_rate: float
    tolerance: float
    norm: float
    reach: float
    drive: Drive
    factors: FloatArray
    call: int
    q: FloatArray
    values: FloatArray


@numba.njit(cache=True, nogil=True, error_model="numpy")
def close(averages, closure, coupling, values):  # type: ignore[no-untyped-def]
    """Fill in g, Lambda and, where the norm is free, G at some averages; whether the closure wants to stop."""
    overlaps = averages.size - 3
    q = averages[:overlaps]
    if np.sqrt((q * q).sum()) > coupling.reach:
        for k in range(overlaps):
            coupling.q[k] = q[k]
        for k in range(overlaps, coupling.q.size):
            coupling.q[k] = averages[overlaps + 1]
        if call_back(coupling.call):
            return True
    else:
        copy(closure_values(closure, q), coupling.values)
    for k in range(values.size):
        values[k] = coupling.factors[0] * coupling.values[k]
    values[overlaps] = coupling.factors[1] * coupling.values[overlaps]
    return False


@numba.njit(cache=True, nogil=True, error_model="numpy")
def growth_of(averages, values, learning_rate, coupling):  # type: ignore[no-untyped-def]
    """The multiplier G, the bracket q.g + tau r - D and kappa; of a free norm G alone."""
    overlaps = averages.size - 3
    if values.size > overlaps + 1:
        return values[overlaps + 1], 0.0, 0.0
    noise = 0.5 * values[overlaps]
    bracket = learning_rate * averages[overlaps] - coupling.mean_variance * noise
    for k in range(overlaps):
        bracket += averages[k] * values[k]
    damping = np.sqrt(bracket * bracket + noise * noise + 1e-60)  # a root of zero has no slope
    e = averages[overlaps + 1]
    return bracket / e - damping * (e / coupling.norm - 1.0), bracket, damping


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fill_nodal(coupling, growth, g, noise, nodal):  # type: ignore[no-untyped-def]
    """Fill in coefficients of every node, or changes of them, by those of all."""
    linear = coupling.u.shape[1]
    for n in range(nodal.tilts.size):
        nodal.growths[n], nodal.tilts[n], nodal.noises[n] = growth, 0.0, coupling.rho[n] * noise
        for k in range(linear):
            nodal.tilts[n] += coupling.u[n, k] * g[k]
        for k in range(linear, g.size):
            nodal.growths[n] -= coupling.rho[n] * g[k]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fill_sensitivity(averages, values, closure, coupling, result):  # type: ignore[no-untyped-def]
    """Derivatives of G, g and D with respect to q, r, E[w^2] and t; whether the closure wants to stop."""
    overlaps, linear, mean = averages.size - 3, coupling.u.shape[1], coupling.mean_variance
    result[:] = 0.0
    shifted = np.empty(values.size)
    if values.size > overlaps + 1:
        return call(fill_free_sensitivity, averages, values, closure, coupling, shifted, result)
    e, factors = averages[overlaps + 1], coupling.factors
    tau = coupling.learning_rate * factors[2]
    _, bracket, damping = growth_of(averages, values, tau, coupling)
    excess = e / coupling.norm - 1.0
    by_bracket = 1.0 / e - excess * bracket / damping
    by_noise = -excess * 0.5 * values[overlaps] / damping
    noise = 0.5 * factors[4] * coupling.values[overlaps]  # which the last call of the closure has left
    for k in range(overlaps):
        result[1 + k, overlaps + 2] = factors[3] * coupling.values[k]
    clock = coupling.drive.clock
    if clock[1] > 0.0:  # the closure itself changes in time
        now = clock[0]
        clock[0] = now + clock[1]
        if call(close, averages, closure, coupling, shifted):
            return True
        clock[0] = now
        noise += 0.5 * (shifted[overlaps] - values[overlaps]) / clock[1]
        for k in range(overlaps):
            result[1 + k, overlaps + 2] += (shifted[k] - values[k]) / clock[1]
    result[overlaps + 1, overlaps + 2] = noise
    result[0, overlaps + 2] = coupling.learning_rate * factors[5] * averages[overlaps] - mean * noise
    for k in range(overlaps):
        result[0, overlaps + 2] += averages[k] * result[1 + k, overlaps + 2]
    result[0, overlaps + 2] = result[0, overlaps + 2] * by_bracket + noise * by_noise
    for k in range(overlaps):
        moved = averages.copy()
        step = -CLOSURE_STEP if moved[k] > 0.0 and k < linear else CLOSURE_STEP
        moved[k] += step
        if call(close, moved, closure, coupling, shifted):
            return True
        noise = 0.5 * (shifted[overlaps] - values[overlaps]) / step
        result[overlaps + 1, k] = noise
        result[0, k] = values[k] - mean * noise
        for j in range(overlaps):
            slope = (shifted[j] - values[j]) / step
            result[1 + j, k] = slope
            result[0, k] += averages[j] * slope
        result[0, k] = result[0, k] * by_bracket + noise * by_noise
    result[0, overlaps] = tau * by_bracket
    result[0, overlaps + 1] = -bracket / (e * e) - damping / coupling.norm
    return False


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fill_free_sensitivity(averages, values, closure, coupling, shifted, result):  # type: ignore[no-untyped-def]
    """The same where the norm is free: all of them are those of the closure."""
    overlaps, linear = averages.size - 3, coupling.u.shape[1]
    factors, clock = coupling.factors, coupling.drive.clock
    for row in range(overlaps + 2):
        column = overlaps + 1 if row == 0 else row - 1 if row <= overlaps else overlaps
        scale = 0.5 if row == overlaps + 1 else 1.0
        result[row, overlaps + 2] = scale * factors[4 if row == overlaps + 1 else 3] * coupling.values[column]
    for index in range(overlaps + 2):  # time stands in the place of r
        moved, now = averages.copy(), clock[0]
        step, column = clock[1], overlaps + 2
        if index == overlaps:
            if step == 0.0:
                continue
            clock[0] = now + step
        else:
            column, size = index, CLOSURE_STEP * np.sqrt(averages[overlaps + 1])
            step = -size if moved[index] > 0.0 and index < linear else size  # into the ball of overlaps
            step *= np.sqrt(averages[overlaps + 1]) if index > overlaps else 1.0
            moved[index] += step
        failed = call(close, moved, closure, coupling, shifted)
        clock[0] = now
        if failed:
            return True
        result[0, column] += (shifted[overlaps + 1] - values[overlaps + 1]) / step
        result[overlaps + 1, column] += 0.5 * (shifted[overlaps] - values[overlaps]) / step
        for k in range(overlaps):
            result[1 + k, column] += (shifted[k] - values[k]) / step
    return False


@numba.njit(cache=True, nogil=True, error_model="numpy")
def weighted(changes, coupling, result):  # type: ignore[no-untyped-def]
    """Changes of q, r and E[w^2] from those of the averages at the nodes."""
    linear, overlaps = coupling.u.shape[1], result.size - 2
    result[:] = 0.0
    for n in range(coupling.u_weight.size):
        weight = coupling.u_weight[n]
        for k in range(linear):
            result[k] += weight * coupling.u[n, k] * changes[0, n]
        for k in range(linear, overlaps):
            result[k] += weight * coupling.rho[n] * changes[2, n]
        result[overlaps] += weight * changes[1, n]
        result[overlaps + 1] += weight * changes[2, n]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _solve_small(matrix, right):  # type: ignore[no-untyped-def]
    """Solve matrix x = right in place by elimination with pivots; right holds the solution."""
    size = matrix.shape[0]
    for i in range(size):
        pivot = i
        for j in range(i + 1, size):
            if abs(matrix[j, i]) > abs(matrix[pivot, i]):
                pivot = j
        for k in range(size):
            matrix[i, k], matrix[pivot, k] = matrix[pivot, k], matrix[i, k]
        for k in range(right.shape[1]):
            right[i, k], right[pivot, k] = right[pivot, k], right[i, k]
        for j in range(size):
            if j != i:
                factor = matrix[j, i] / matrix[i, i]
                for k in range(i, size):
                    matrix[j, k] -= factor * matrix[i, k]
                for k in range(right.shape[1]):
                    right[j, k] -= factor * right[i, k]
    for i in range(size):
        for k in range(right.shape[1]):
            right[i, k] /= matrix[i, i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fill_feedback(sensitivity, own, points, coupling, state, result):  # type: ignore[no-untyped-def]
    """Matrix from changes of q, r and E[w^2] at fixed coefficients, and of t, to those of G, g and D with feedback."""
    size, linear = sensitivity.shape[0], coupling.u.shape[1]
    loop = np.zeros((size, size))
    change = np.empty(size)
    scaled = np.empty_like(state.changes)
    call(respond, own.by_growth, own, points, state.changes)
    weighted(state.changes, coupling, loop[0])
    for k in range(linear, size - 2):
        for n in range(scaled.shape[1]):
            for j in range(3):
                scaled[j, n] = -coupling.rho[n] * state.changes[j, n]
        weighted(scaled, coupling, change)
        copy(change, loop[1 + k])
    call(respond, own.by_noise, own, points, state.changes)
    for n in range(scaled.shape[1]):
        for j in range(3):
            scaled[j, n] = coupling.rho[n] * state.changes[j, n]
    weighted(scaled, coupling, loop[size - 1])
    call(respond, own.by_pull, own, points, state.changes)
    for k in range(linear):
        for n in range(scaled.shape[1]):
            for j in range(3):
                scaled[j, n] = -coupling.u[n, k] * state.changes[j, n]
        weighted(scaled, coupling, change)
        copy(change, loop[1 + k])
    matrix = np.zeros((size, size))
    for i in range(size):
        matrix[i, i] = 1.0
        for j in range(size):
            for k in range(size):
                matrix[i, j] -= sensitivity[i, k] * loop[j, k]
    for i in range(size):
        copy(sensitivity[i], result[i])
    _solve_small(matrix, result)
