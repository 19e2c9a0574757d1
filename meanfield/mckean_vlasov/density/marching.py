"""Compiled loop over the steps of an evolution: on small grids a loop in Python would cost more than the solution.

Each step is the implicit midpoint rule: the coefficients g, Lambda and G = q.g + tau r - Lambda/2 (where the norm is
free, that of the closure) belong to the mean of q, r and E[w^2] over the start and the end of the step. The end is
extrapolated by a cubic from the last steps, so that a step costs one solve; the first steps, which lack them, iterate.
Both differ from the midpoint rule by less than dt^3, so that the error is c dt^2 + O(dt^4), as Richardson extrapolation
wants it.

What is not compiled, such as a closure in Python or a step in FiPy, is called back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.mckean_vlasov.closures import closure_values
from meanfield.mckean_vlasov.density.sums import moments_from, sums_of_block
from meanfield.mckean_vlasov.drive import Drive, fill_numbers, piece_of
from meanfield.numerics.compiled.callbacks import call_back
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.thread_barrier import meet
from meanfield.numerics.finite_volumes.grid import LEAST_DIFFUSION
from meanfield.numerics.finite_volumes.kernel import midpoint_step
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray

EXTRAPOLATED_STEPS = 4
"""Number of past steps from which q and r at the end of the next step are extrapolated."""

DONE, LONG_STEP, BLOWN_UP, STOPPED = range(4)
"""Codes of the ends of a march."""

Taken = tuple[int, int, float]
"""Result of `march`."""


class Field(NamedTuple):
    """Constant arrays and numbers of all steps.

    Parameters
    ----------
    u : ndarray, shape (blocks * lanes, d)
        Factors of w in the overlaps that are linear in it; nodes that fill blocks have no weight.
    u_weight : ndarray, shape (blocks * lanes,)
    rho : ndarray, shape (blocks,)
        Variance of the noise of the nodes of a block. With a spectrum one more overlap, E[rho w^2], follows those of u.
    mean_variance : float
    rows : ndarray, shape (4, cells)
        h times w, w phi(w), w^2 and 1.
    square_steps, potential_steps : ndarray, shape (cells - 1,)
        Differences of w^2/2 and Phi between neighbours.
    drive : Drive
        Factors in time on g, Lambda and phi.
    norm : float
        E[w^2] where it is kept.
    worst_norm : float
        Error of E[w^2], relative to that, at which to stop; infinite where it is free.
    lanes : int
        Nodes of a block.
    """

    u: FloatArray
    u_weight: FloatArray
    rho: FloatArray
    mean_variance: float
    rows: FloatArray
    square_steps: FloatArray
    potential_steps: FloatArray
    h: float
    learning_rate: float
    drive: Drive
    norm: float
    worst_norm: float
    lanes: int


class Calls(NamedTuple):
    """Addresses of callbacks into Python, and the arrays that carry their arguments and results.

    Parameters
    ----------
    closure : int
        Address of the callback that reads `q` and writes `values`.
    reach : float
        Largest |q| at which the compiled closure is good.
    q : ndarray, shape (overlaps,), or (overlaps + 1,) where the norm is free
        q and, where it is free, E[w^2].
    values : ndarray, shape (overlaps + 1,), or (overlaps + 2,)
        g, Lambda and, where the norm is free, G.
    step : int
        Address of the callback that reads the density, `Room` and `of_step`, and writes the density after the step;
        0 for the compiled kernel.
    of_step : ndarray, shape (3,)
        Lambda/2, the time step, and whether the second of the two densities is the current one.
    stopped : ndarray of int, shape (1,)
        Whether the closure wants the march to stop.
    """

    closure: int
    reach: float
    q: FloatArray
    values: FloatArray
    step: int
    of_step: FloatArray
    stopped: IntArray


class Room(NamedTuple):
    """Working space of a thread.

    Parameters
    ----------
    faces : ndarray, shape (cells - 1,)
        Part of -(V_{i+1} - V_i)/D at each face that does not depend on u, for one variance after the other.
    tilts : ndarray, shape (own blocks * lanes,)
        Part of -(V_{i+1} - V_i)/D that depends on u, the same at every face.
    scratch : ndarray
        Working space of `midpoint_step`.
    """

    faces: FloatArray
    tilts: FloatArray
    scratch: FloatArray


class Meeting(NamedTuple):
    """Shared arrays of the threads of a march.

    Parameters
    ----------
    sums : ndarray, shape (2, blocks, 4 * lanes)
        Moments of the nodes. Marches fill the two in turn, so that a thread never writes what a slower one still reads.
    arrived : ndarray of int
        Counters of the barrier, from `meanfield.numerics.compiled.thread_barrier.counters`.
    """

    sums: FloatArray
    arrived: IntArray
    give_way: int


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def march(  # type: ignore[no-untyped-def]
    ends, history, known, closure, calls, field, current, trial, room, meeting, thread, first_block, end_block
):
    """Take steps; all threads call this at once, each for its own blocks.

    Parameters
    ----------
    ends : ndarray, shape (known + steps,)
        Times that have been reached, then the ends of the steps to take.
    history : ndarray, shape (known + steps, overlaps + 3)
        q, r, E[w^2] and the mass at these times; filled in, by every thread for itself.
    known : int
        Number of times that have been reached.
    closure : NamedTuple
        Closure of a type that is known to `closure_values`.
    calls : Calls
    field : Field
    current, trial : ndarray, shape (blocks * cells * lanes,)
        The density, and room for the next one; they take turns.
    room : Room
    meeting : Meeting
    thread, first_block, end_block : int
        Number of this thread, and its blocks.

    Returns
    -------
    taken : int
        Number of steps that were taken.
    end : int
        `DONE`, `LONG_STEP`, `BLOWN_UP` or `STOPPED`.
    rate : float
        The relaxation rate that is too fast for the next step.
    """
    overlaps, lanes = history.shape[1] - 3, field.lanes
    guess, half, driven = np.empty(overlaps + 3), np.empty(overlaps + 3), np.empty(calls.values.size)
    factors = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    size = lanes * field.rows.shape[1]
    current, trial = current[first_block * size : end_block * size], trial[first_block * size : end_block * size]
    meetings = attempted = 0
    for step in range(known, ends.size):
        # Each of the first steps is solved four times: there are too few past steps to extrapolate from.
        attempts = 1 if step >= EXTRAPOLATED_STEPS else 4
        oldest = step - EXTRAPOLATED_STEPS if step >= EXTRAPOLATED_STEPS else max(0, step - 2)
        _extrapolate(ends[oldest:step], history[oldest:step], ends[step], guess)
        dt = ends[step] - ends[step - 1]
        middle = ends[step - 1] + 0.5 * dt
        low, high = piece_of(field.drive, middle)
        call(fill_numbers, field.drive, middle, low, high, factors)
        for _ in range(attempts):
            for j in range(overlaps + 3):
                half[j] = 0.5 * (history[step - 1, j] + guess[j])
            if _length(half[:overlaps]) > calls.reach:
                meetings += 1
                values = _called_values(half, calls, meeting, thread, meetings)
                if calls.stopped[0] != 0:
                    return step - known, STOPPED, 0.0
            else:
                values = closure_values(closure, half[:overlaps])
            for k in range(driven.size):
                driven[k] = factors[0] * values[k]
            driven[overlaps] = factors[1] * values[overlaps]
            tau = field.learning_rate * factors[2]
            bracket, rate = _coefficients(half, driven, tau, field)
            if dt * rate > 2.0:  # longer midpoint steps reflect modes, and do not damp them
                return step - known, LONG_STEP, rate
            first = first_block
            while first < end_block:
                last = first + 1
                while last < end_block and field.rho[last] == field.rho[first]:
                    last += 1
                begin, end = first - first_block, last - first_block
                tilts = room.tilts[begin * lanes : end * lanes]
                D = _fill_differences(bracket, driven, tau, field, overlaps, first, room.faces, tilts)
                if calls.step != 0:
                    calls.of_step[0], calls.of_step[1], calls.of_step[2] = D, dt, (step - known) % 2
                    if call_back(calls.step):
                        return step - known, STOPPED, 0.0
                else:
                    cells = numba.uint64(field.rows.shape[1])
                    blocks, width = numba.uint64(end - begin), numba.uint64(lanes)
                    k = 0.5 * dt * D / (field.h * field.h)
                    before, after = current[begin * size : end * size], trial[begin * size : end * size]
                    midpoint_step(before, after, room.scratch, room.faces, tilts, k, cells, blocks, width)
                first = last
            attempted += 1
            sums = meeting.sums[attempted % 2]
            for block in range(first_block, end_block):
                sums_of_block(trial, numba.uint64(block - first_block), field.rows, sums[block], lanes)
            meetings += 1
            meet(meeting.arrived, thread, meetings, meeting.give_way)
            moments_from(sums, field, guess)
        history[step] = guess
        current, trial = trial, current
        if not abs(guess[overlaps + 1] / field.norm - 1.0) <= field.worst_norm:
            return step + 1 - known, BLOWN_UP, 0.0
    return ends.size - known, DONE, 0.0


@numba.njit(inline="always", error_model="numpy")
def _extrapolate(times, values, end, result):  # type: ignore[no-untyped-def]
    """Value at another time of the polynomial through the values at the times."""
    result[:] = 0.0
    for i in range(times.size):
        factor = 1.0
        for j in range(times.size):
            if j != i:
                factor *= (end - times[j]) / (times[i] - times[j])
        for k in range(result.size):
            result[k] += factor * values[i, k]


@numba.njit(inline="always", error_model="numpy")
def _length(q):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(q.size):
        total += q[k] * q[k]
    return np.sqrt(total)


@numba.njit(inline="always", error_model="numpy")
def _called_values(half, calls, meeting, thread, meetings):  # type: ignore[no-untyped-def]
    """Values of the closure by one call for all threads: two calls in Python may differ."""
    if thread == 0:
        overlaps = half.size - 3
        for k in range(calls.q.size):
            calls.q[k] = half[k] if k < overlaps else half[overlaps + 1]
        calls.stopped[0] = call_back(calls.closure)
    meet(meeting.arrived, thread, meetings, meeting.give_way)
    return calls.values


@numba.njit(inline="always", error_model="numpy")
def _coefficients(half, values, learning_rate, field):  # type: ignore[no-untyped-def]
    """G and the fastest relaxation rate."""
    overlaps = half.size - 3
    diffusion = 0.5 * values[overlaps]
    bracket = learning_rate * half[overlaps] - field.mean_variance * diffusion
    for k in range(overlaps):
        bracket += half[k] * values[k]
    bracket = values[overlaps + 1] if values.size > overlaps + 1 else bracket / field.norm
    rate = 0.0
    for block in range(field.rho.size):
        rho = field.rho[block]
        rate = max(rate, abs(_growth(bracket, values, field, overlaps, rho)), rho * diffusion)
    if values.size == overlaps + 1:
        # E[w^2] - 1 grows like exp(2 t bracket). It vanishes in the limit, so this changes nothing there, but it turns
        # the growth of its discretisation error under a strong prior into decay.
        bracket -= 2.0 * max(bracket, 0.0) * (half[overlaps + 1] / field.norm - 1.0)
    return bracket, rate


@numba.njit(inline="always", error_model="numpy")
def _growth(bracket, values, field, overlaps, rho):  # type: ignore[no-untyped-def]
    """Gain along weights of a variance; E[rho w^2] is the last overlap where variances differ."""
    for k in range(field.u.shape[1], overlaps):
        bracket -= rho * values[k]
    return bracket


@numba.njit(inline="always", error_model="numpy")
def _fill_differences(  # type: ignore[no-untyped-def]
    bracket, values, learning_rate, field, overlaps, block, faces, tilts
):
    """Fill in the potential differences of a step for nodes of one variance, from a block on, and return their D."""
    rho, linear, first = field.rho[block], field.u.shape[1], block * field.lanes
    growth = _growth(bracket, values, field, overlaps, rho)
    D = max(rho * (0.5 * values[overlaps]), LEAST_DIFFUSION)
    for i in range(faces.size):
        faces[i] = (growth * field.square_steps[i] - learning_rate * field.potential_steps[i]) / D
    for n in range(tilts.size):
        tilt = 0.0
        for k in range(linear):
            tilt += field.u[first + n, k] * values[k]
        tilts[n] = -tilt * field.h / D
    return D
