"""Compiled loop over time steps of the points of all nodes, coupled by q, r and E[w^2]."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.mckean_vlasov.density.lagrangian.coupling import (
    close,
    fill_feedback,
    fill_nodal,
    fill_sensitivity,
    growth_of,
    weighted,
)
from meanfield.mckean_vlasov.drive import fill_numbers, piece_of
from meanfield.numerics.compiled.array_operations import copy
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.quantile_frame.frame import average_force, force_slopes, place, weigh
from meanfield.numerics.quantile_frame.linearised import Nodal, eliminate, respond
from meanfield.numerics.quantile_frame.rosenbrock import DENSE, GAMMA, ORDER, STAGES, TIME_INCREMENTS, TIMES, A, B, C
from meanfield.numerics.quantile_frame.stages import add_to_stage, combine, correct, solve_stage, squared_length
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray

REACHED, PAUSED, STOPPED, STUCK, BLOWN_UP = range(5)
"""Codes of the ends of a march."""

LARGEST_GROWTH, SHORTEST = 1e6, 1e-7
"""Factor by which a free norm may grow, and step relative to the time while it grows: both tell of a blow-up."""

CAUTION, SHRINK, GROW = 0.9, 0.2, 5.0
"""Factors on the step: on what the estimated error allows, and its limits."""

RETREAT, FLIGHT = 0.6, 0.25
"""Factors on a step that ends with points out of order, and on one right after another. Within a step, points where
hardly any probability lies overtake each other for long."""


class State(NamedTuple):
    """Points at both ends of the last step, and room for a step.

    Parameters
    ----------
    clock : ndarray, shape (5,)
        Start and end of the last step, the length of the next one, the largest factor by which it may grow, and the
        least noise D that was met, relative to the factor of the force.
    counts : ndarray of int, shape (2,)
        Steps that were taken and that were refused.
    start, end, stage : ndarray, shape (blocks * points * LANES,)
    increments : ndarray, shape (STAGES, blocks * points * LANES)
    sums : ndarray, shape (4, blocks * LANES)
    changes : ndarray, shape (3, blocks * LANES)
    nodal, nodal_changes : Nodal
    """

    clock: FloatArray
    counts: IntArray
    start: FloatArray
    end: FloatArray
    stage: FloatArray
    increments: FloatArray
    sums: FloatArray
    changes: FloatArray
    nodal: Nodal
    nodal_changes: Nodal


@numba.njit(cache=True, nogil=True, error_model="numpy")
def average(X, mesh, frame, sums, coupling, averages):  # type: ignore[no-untyped-def]
    """Fill in q, r, E[w^2] and the mass; whether the points are in order and all numbers finite."""
    if mesh.grading.shape[1] > 0:
        place(X, mesh, frame)
    average_force(X, mesh, frame)
    ordered = weigh(X, mesh, frame, sums)
    linear, overlaps = coupling.u.shape[1], averages.size - 3
    averages[:] = 0.0
    for n in range(coupling.u_weight.size):
        weight = coupling.u_weight[n]
        if weight == 0.0:
            continue
        for k in range(linear):
            averages[k] += weight * coupling.u[n, k] * sums[1, n] / sums[0, n]
        for k in range(linear, overlaps):
            averages[k] += weight * coupling.rho[n] * sums[3, n] / sums[0, n]
        averages[overlaps] += weight * sums[2, n] / sums[0, n]
        averages[overlaps + 1] += weight * sums[3, n] / sums[0, n]
        averages[overlaps + 2] += weight * sums[0, n]
    return ordered and np.isfinite(averages.sum())


@numba.njit(cache=True, nogil=True, error_model="numpy")
def advance(end, most_steps, closure, coupling, mesh, frame, own, state):  # type: ignore[no-untyped-def]
    """Take steps until the last one has passed `end`, or until `most_steps` were tried.

    Returns
    -------
    int
        `REACHED`, `PAUSED`, `STOPPED` by the closure, `STUCK` where no step however short succeeds, or `BLOWN_UP` where
        a free norm grows beyond bounds.
    """
    overlaps = coupling.overlaps
    averages, values = np.empty(overlaps + 3), np.empty(coupling.values.size)
    judged = values.size  # q, r and, where it is free, E[w^2]
    sensitivity, feedback = np.empty((overlaps + 2, overlaps + 3)), np.empty((overlaps + 2, overlaps + 3))
    change, reply = np.empty(overlaps + 2), np.empty(overlaps + 2)
    clock, points, accepted = state.clock, mesh.points, False
    drive, factors, driven = coupling.drive, coupling.factors, own.by_rate.size > 0
    for _ in range(most_steps):
        if clock[1] >= end:
            return REACHED
        now, dt = clock[1], clock[2]
        low, high = piece_of(drive, now)
        ends_there = now + dt * (1.0 + 1e-9) >= high  # no step goes past a corner, and none is left that rounding made
        dt = high - now if ends_there else dt
        call(fill_numbers, drive, now, low, high, factors)
        tau = coupling.learning_rate * factors[2]
        if not accepted and not call(average, state.end, mesh, frame, state.sums, coupling, averages):
            return STUCK  # after a step that was accepted, the frame is there
        grown = averages[overlaps + 1] / coupling.norm
        if values.size > overlaps + 1 and (grown > LARGEST_GROWTH or (grown > 100.0 and dt < SHORTEST * now)):
            return BLOWN_UP
        if call(close, averages, closure, coupling, values):
            return STOPPED
        growth, noise = growth_of(averages, values, tau, coupling)[0], 0.5 * values[overlaps]
        clock[4] = min(clock[4], noise / max(factors[2], 0.01))  # less force acts too weakly to make layers
        fill_nodal(coupling, growth, values[:overlaps], noise, state.nodal)
        if call(fill_sensitivity, averages, values, closure, coupling, sensitivity):
            return STOPPED
        force_slopes(state.end, mesh, own.before, own.here, own.after)
        call(eliminate, state.end, mesh, frame, own, state.sums, state.nodal, 1.0 / (dt * GAMMA), tau)
        slope = factors[5]
        call(fill_feedback, sensitivity, own, points, coupling, state, feedback)
        for stage in range(STAGES):
            if stage > 0:
                call(combine, state.end, state.increments, A[stage].copy(), state.stage)  # no constant: another type
                call(average, state.stage, mesh, frame, state.sums, coupling, averages)  # in order at the end alone
                if not np.isfinite(averages.sum()):
                    break
                call(fill_numbers, drive, now + TIMES[stage] * dt, low, high, factors)
                tau = coupling.learning_rate * factors[2]
                if call(close, averages, closure, coupling, values):
                    return STOPPED
                growth, noise = growth_of(averages, values, tau, coupling)[0], 0.5 * values[overlaps]
                fill_nodal(coupling, growth, values[:overlaps], noise, state.nodal)
            X = state.stage if stage > 0 else state.end
            of_earlier = C[stage] / dt
            call(solve_stage, X, mesh, frame, own, state.increments, of_earlier, stage, state.nodal, tau)
            passed = dt * TIME_INCREMENTS[stage]
            if driven:
                call(add_to_stage, state.increments, stage, own.by_rate, -coupling.learning_rate * slope * passed)
            call(respond, state.increments[stage], own, points, state.changes)
            weighted(state.changes, coupling, change)
            for i in range(overlaps + 2):
                reply[i] = feedback[i, overlaps + 2] * passed
                for j in range(overlaps + 2):
                    reply[i] += feedback[i, j] * change[j]
            fill_nodal(coupling, reply[0], reply[1 : overlaps + 1], reply[overlaps + 1], state.nodal_changes)
            correct(state.increments, stage, own, points, state.nodal_changes)
        factor = retreat = RETREAT if clock[3] > 1.0 else FLIGHT
        accepted = False
        if np.isfinite(averages.sum()):
            lengths = state.nodal_changes.tilts
            squared_length(state.increments[STAGES - 1], frame, points, lengths)
            error = np.sqrt((coupling.u_weight * lengths).sum()) / coupling.tolerance
            # Far weights count more in r under a steep prior than in the mean square.
            call(respond, state.increments[STAGES - 1], own, points, state.changes)
            weighted(state.changes, coupling, change)
            error = max(error, np.abs(change[:judged]).max() / coupling.tolerance)
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
            clock[0], clock[1] = now, high if ends_there else now + dt
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
