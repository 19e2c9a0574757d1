"""Compiled loop over time steps of the points of all nodes, coupled by q, r and E[w^2].

The multiplier of the norm is

    G = (q.g + tau r - Lambda/2)/e - kappa (e - 1),    e = E[w^2],

where kappa, the root of the squares of the first bracket and of Lambda/2, is never less than |G|: without the last term
an error of e would grow like exp(2 int G dt). The term vanishes in the limit, like e - 1, and is smooth in time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.mckean_vlasov.closures import closure_values
from meanfield.numerics.compiled.array_operations import copy
from meanfield.numerics.compiled.callbacks import call_back
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.quantile_frame.frame import average_force, force_slopes, place, weigh
from meanfield.numerics.quantile_frame.linearised import eliminate, respond
from meanfield.numerics.quantile_frame.rosenbrock import DENSE, GAMMA, ORDER, STAGES, A, B, C
from meanfield.numerics.quantile_frame.stages import combine, correct, solve_stage, squared_length
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray

REACHED, PAUSED, STOPPED, STUCK = range(4)
"""Codes of the ends of a march."""

CLOSURE_STEP = 1e-6
"""Step of the differences that give the derivatives of the closure."""

CAUTION, SHRINK, GROW = 0.9, 0.2, 5.0
"""Factors on the step: on what the estimated error allows, and its limits."""

RETREAT, FLIGHT = 0.6, 0.25
"""Factors on a step that ends with points out of order, and on one right after another. Within a step, points where
hardly any probability lies overtake each other for long."""


class Coupling(NamedTuple):
    """Nodes, closure and accuracy.

    Parameters
    ----------
    u : ndarray, shape (blocks * LANES, d1)
        Nodes; those that fill the last block have no weight.
    u_weight : ndarray, shape (blocks * LANES,)
    learning_rate : float
        tau.
    tolerance : float
        Root mean square error of w that a step may make, and error of q and r.
    reach : float
        Largest |q| at which the compiled closure is good.
    call : int
        Address of the callback that reads `q` and writes `values`.
    q : ndarray, shape (d1,)
    values : ndarray, shape (d1 + 1,)
        g and Lambda.
    """

    u: FloatArray
    u_weight: FloatArray
    learning_rate: float
    tolerance: float
    reach: float
    call: int
    q: FloatArray
    values: FloatArray


class State(NamedTuple):
    """Points at both ends of the last step, and room for a step.

    Parameters
    ----------
    clock : ndarray, shape (5,)
        Start and end of the last step, the length of the next one, the largest factor by which it may grow, and the
        least noise D that was met.
    counts : ndarray of int, shape (2,)
        Steps that were taken and that were refused.
    start, end, stage : ndarray, shape (blocks * points * LANES,)
    increments : ndarray, shape (STAGES, blocks * points * LANES)
    sums : ndarray, shape (4, blocks * LANES)
    changes : ndarray, shape (3, blocks * LANES)
    tilts, tilt_changes : ndarray, shape (blocks * LANES,)
    """

    clock: FloatArray
    counts: IntArray
    start: FloatArray
    end: FloatArray
    stage: FloatArray
    increments: FloatArray
    sums: FloatArray
    changes: FloatArray
    tilts: FloatArray
    tilt_changes: FloatArray


@numba.njit(cache=True, nogil=True, error_model="numpy")
def average(X, mesh, frame, sums, coupling, averages):  # type: ignore[no-untyped-def]
    """Fill in q, r, E[w^2] and the mass; whether the points are in order and all numbers finite."""
    if mesh.grading.shape[1] > 0:
        place(X, mesh, frame)
    average_force(X, mesh, frame)
    ordered = weigh(X, mesh, frame, sums)
    d1 = coupling.u.shape[1]
    averages[:] = 0.0
    for n in range(coupling.u_weight.size):
        weight = coupling.u_weight[n]
        if weight == 0.0:
            continue
        for k in range(d1):
            averages[k] += weight * coupling.u[n, k] * sums[1, n] / sums[0, n]
        averages[d1] += weight * sums[2, n] / sums[0, n]
        averages[d1 + 1] += weight * sums[3, n] / sums[0, n]
        averages[d1 + 2] += weight * sums[0, n]
    return ordered and np.isfinite(averages.sum())


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _close(q, closure, coupling, values):  # type: ignore[no-untyped-def]
    """Fill in g and Lambda; whether the closure wants to stop."""
    if np.sqrt((q * q).sum()) > coupling.reach:
        copy(q, coupling.q)
        if call_back(coupling.call):
            return True
        copy(coupling.values, values)
    else:
        copy(closure_values(closure, q), values)
    return False


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _growth(averages, values, learning_rate):  # type: ignore[no-untyped-def]
    """The multiplier G, the bracket q.g + tau r - D and kappa."""
    d1 = values.size - 1
    noise = 0.5 * values[d1]
    bracket = learning_rate * averages[d1] - noise
    for k in range(d1):
        bracket += averages[k] * values[k]
    damping = np.sqrt(bracket * bracket + noise * noise + 1e-60)  # a root of zero has no slope
    return bracket / averages[d1 + 1] - damping * (averages[d1 + 1] - 1.0), bracket, damping


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _tilt(coupling, g, tilts):  # type: ignore[no-untyped-def]
    for n in range(tilts.size):
        tilts[n] = 0.0
        for k in range(g.size):
            tilts[n] += coupling.u[n, k] * g[k]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sensitivity(averages, values, closure, coupling, result):  # type: ignore[no-untyped-def]
    """Derivatives of G, g and D with respect to q, r and E[w^2]; whether the closure wants to stop."""
    d1 = values.size - 1
    result[:] = 0.0
    shifted = np.empty(d1 + 1)
    e = averages[d1 + 1]
    _, bracket, damping = _growth(averages, values, coupling.learning_rate)
    by_bracket = 1.0 / e - (e - 1.0) * bracket / damping
    by_noise = -(e - 1.0) * 0.5 * values[d1] / damping
    for k in range(d1):
        q = averages[:d1].copy()
        step = -CLOSURE_STEP if q[k] > 0.0 else CLOSURE_STEP
        q[k] += step
        if call(_close, q, closure, coupling, shifted):
            return True
        noise = 0.5 * (shifted[d1] - values[d1]) / step
        result[d1 + 1, k] = noise
        result[0, k] = values[k] - noise
        for j in range(d1):
            slope = (shifted[j] - values[j]) / step
            result[1 + j, k] = slope
            result[0, k] += averages[j] * slope
        result[0, k] = result[0, k] * by_bracket + noise * by_noise
    result[0, d1] = coupling.learning_rate * by_bracket
    result[0, d1 + 1] = -bracket / (e * e) - damping
    return False


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _weighted(changes, coupling, result):  # type: ignore[no-untyped-def]
    """Changes of q, r and E[w^2] from those of the averages at the nodes."""
    d1 = coupling.u.shape[1]
    result[:] = 0.0
    for n in range(coupling.u_weight.size):
        weight = coupling.u_weight[n]
        for k in range(d1):
            result[k] += weight * coupling.u[n, k] * changes[0, n]
        result[d1] += weight * changes[1, n]
        result[d1 + 1] += weight * changes[2, n]


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
def _feedback(sensitivity, own, points, coupling, state, result):  # type: ignore[no-untyped-def]
    """Matrix from changes of q, r and E[w^2] at fixed coefficients to those of G, g and D with their feedback."""
    size = sensitivity.shape[0]
    d1 = size - 2
    loop = np.zeros((size, size))
    change = np.empty(size)
    call(respond, own.by_growth, own, points, state.changes)
    _weighted(state.changes, coupling, loop[0])
    call(respond, own.by_noise, own, points, state.changes)
    _weighted(state.changes, coupling, loop[size - 1])
    call(respond, own.by_pull, own, points, state.changes)
    scaled = np.empty_like(state.changes)
    for k in range(d1):
        for n in range(scaled.shape[1]):
            for j in range(3):
                scaled[j, n] = -coupling.u[n, k] * state.changes[j, n]
        _weighted(scaled, coupling, change)
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


@numba.njit(cache=True, nogil=True, error_model="numpy")
def advance(end, most_steps, closure, coupling, mesh, frame, own, state):  # type: ignore[no-untyped-def]
    """Take steps until the last one has passed `end`, or until `most_steps` were tried.

    Returns
    -------
    int
        `REACHED`, `PAUSED`, `STOPPED` by the closure, or `STUCK` where no step however short succeeds.
    """
    d1 = coupling.u.shape[1]
    averages, values = np.empty(d1 + 3), np.empty(d1 + 1)
    sensitivity, feedback = np.empty((d1 + 2, d1 + 2)), np.empty((d1 + 2, d1 + 2))
    change, reply = np.empty(d1 + 2), np.empty(d1 + 2)
    clock, points, tau, accepted = state.clock, mesh.points, coupling.learning_rate, False
    for _ in range(most_steps):
        if clock[1] >= end:
            return REACHED
        now, dt = clock[1], clock[2]
        if not accepted and not call(average, state.end, mesh, frame, state.sums, coupling, averages):
            return STUCK  # after a step that was accepted, the frame is there
        if call(_close, averages[:d1], closure, coupling, values):
            return STOPPED
        growth, noise = _growth(averages, values, tau)[0], 0.5 * values[d1]
        clock[4] = min(clock[4], noise)
        _tilt(coupling, values[:d1], state.tilts)
        if call(_sensitivity, averages, values, closure, coupling, sensitivity):
            return STOPPED
        force_slopes(state.end, mesh, own.before, own.here, own.after)
        call(eliminate, state.end, mesh, frame, own, state.sums, growth, state.tilts, noise, 1.0 / (dt * GAMMA), tau)
        call(_feedback, sensitivity, own, points, coupling, state, feedback)
        for stage in range(STAGES):
            if stage > 0:
                call(combine, state.end, state.increments, A[stage].copy(), state.stage)  # no constant: another type
                call(average, state.stage, mesh, frame, state.sums, coupling, averages)  # in order at the end alone
                if not np.isfinite(averages.sum()):
                    break
                if call(_close, averages[:d1], closure, coupling, values):
                    return STOPPED
                growth, noise = _growth(averages, values, tau)[0], 0.5 * values[d1]
                _tilt(coupling, values[:d1], state.tilts)
            X = state.stage if stage > 0 else state.end
            factors = C[stage] / dt
            call(solve_stage, X, mesh, frame, own, state.increments, factors, stage, growth, state.tilts, noise, tau)
            call(respond, state.increments[stage], own, points, state.changes)
            _weighted(state.changes, coupling, change)
            for i in range(d1 + 2):
                reply[i] = 0.0
                for j in range(d1 + 2):
                    reply[i] += feedback[i, j] * change[j]
            _tilt(coupling, reply[1 : d1 + 1], state.tilt_changes)
            correct(state.increments, stage, own, points, reply[0], state.tilt_changes, reply[d1 + 1])
        factor = retreat = RETREAT if clock[3] > 1.0 else FLIGHT
        accepted = False
        if np.isfinite(averages.sum()):
            squared_length(state.increments[STAGES - 1], frame, points, state.tilt_changes)
            error = np.sqrt((coupling.u_weight * state.tilt_changes).sum()) / coupling.tolerance
            # Far weights count more in r under a steep prior than in the mean square.
            call(respond, state.increments[STAGES - 1], own, points, state.changes)
            _weighted(state.changes, coupling, change)
            error = max(error, np.abs(change[: d1 + 1]).max() / coupling.tolerance)
            if np.isfinite(error):
                factor = min(GROW, max(SHRINK, CAUTION * max(error, 1e-10) ** (-1.0 / ORDER)))
                call(combine, state.end, state.increments, B.copy(), state.stage)
                accepted = error <= 1.0 and call(average, state.stage, mesh, frame, state.sums, coupling, averages)
                if not accepted:
                    factor = min(factor, retreat if error <= 1.0 else CAUTION)
        if accepted:
            factor = min(factor, clock[3])
            clock[3] = min(GROW, 1.15 * clock[3])  # the growth that a refused step stopped recovers
            state.counts[0] += 1
            clock[0], clock[1] = now, now + dt
            copy(state.end, state.start)
            copy(state.stage, state.end)
        else:
            state.counts[1] += 1
            clock[3] = 1.0
            if dt < 1e-14 * end:  # no shorter step moves the time
                return STUCK
        clock[2] = dt * factor
    return PAUSED


@numba.njit(cache=True, nogil=True, error_model="numpy")
def interpolate(time, mesh, frame, coupling, state, averages):  # type: ignore[no-untyped-def]
    """Points at a time within the last step, into `state.stage`, and their averages; whether they are in order."""
    x = (time - state.clock[0]) / max(state.clock[1] - state.clock[0], 1e-300)  # no step has been taken at t = 0
    factors = x * (B + (1.0 - x) * (DENSE[0] + x * (DENSE[1] + x * DENSE[2])))
    call(combine, state.start, state.increments, factors, state.stage)
    return call(average, state.stage, mesh, frame, state.sums, coupling, averages)
