"""The steps of an evolution in one compiled loop, because on small grids Python would cost more than the solution."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numba
import numpy as np

from meanfield.density.evolution import LONGEST_STEP, MEMORY, START_ITERATIONS, Evolution
from meanfield.density.grid import Grid
from meanfield.density.kernel import midpoint_step
from meanfield.density.steppers import LEAST_DIFFUSION, MakeStepper, NumbaStepper, available_cores
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.closures.closure import drift_and_diffusion
from meanfield.families.contrastive.problem import Problem
from meanfield.numerics.compiled.thread_barrier import counters, give_way_address, meet
from meanfield.numerics.compiled.vectors import NARROW, WIDE, lanes_for, load, spread, store
from meanfield.process.interrupts import uninterrupted
from meanfield.typing import FloatArray, IntArray

VALUES_PER_THREAD = 20_000
"""A second thread pays only if each has so many values of P, 20 us of work; starting threads takes 50 for an output."""

DONE, LONG_STEP, BLOWN_UP = range(3)
"""How a march can end."""

Taken = tuple[int, int, float]
"""What `march` returns."""


class Field(NamedTuple):
    """What stays the same in all steps.

    Parameters
    ----------
    u : ndarray, shape (blocks * lanes, d1)
        Nodes; those that fill the last block have no weight.
    u_weight : ndarray, shape (blocks * lanes,)
    rows : ndarray, shape (4, cells)
        h times w, w phi(w), w^2 and 1.
    square_steps, potential_steps : ndarray, shape (cells - 1,)
        Differences of w^2/2 and Phi between neighbours.
    h : float
    worst_norm : float
        Error of E[w^2] = 1 at which to stop.
    lanes : int
        Nodes of a block.
    """

    u: FloatArray
    u_weight: FloatArray
    rows: FloatArray
    square_steps: FloatArray
    potential_steps: FloatArray
    h: float
    worst_norm: float
    lanes: int


class Meeting(NamedTuple):
    """What the threads of a march share.

    Parameters
    ----------
    sums : ndarray, shape (2, blocks, 4 * lanes)
        Moments of the nodes. Marches fill the two in turn, so that a thread never writes what a slower one still reads.
    arrived : ndarray of int
        From `meanfield.numerics.compiled.thread_barrier.counters`.
    give_way : int
    """

    sums: FloatArray
    arrived: IntArray
    give_way: int


class MarchingEvolution(Evolution):
    """An `Evolution` whose steps are compiled, on several threads where there is enough to do.

    Blocks of nodes do not depend on each other, and every thread adds up the moments of all blocks in the same order:
    numbers do not depend on the number of threads.
    """

    def __init__(
        self, problem: Problem, closure: Closure, grid: Grid, make_stepper: type[NumbaStepper], worst_norm: float
    ) -> None:
        super().__init__(problem, closure, grid, make_stepper, worst_norm)
        nodes = len(grid.u_weight)
        lanes = lanes_for(nodes)
        blocks = -(-nodes // lanes)
        padded = blocks * lanes
        u, u_weight = np.zeros((padded, grid.u.shape[1])), np.zeros(padded)
        u[:nodes], u_weight[:nodes] = grid.u, grid.u_weight
        u[nodes:] = grid.u[-1]
        steps = self._square_steps, self._potential_steps
        self._field = Field(u, u_weight, self._rows, *steps, grid.h, worst_norm, lanes)
        values = padded * grid.shape[1]
        most = min(available_cores(), int(numba.config.NUMBA_NUM_THREADS))  # type: ignore[attr-defined]
        threads = min(most, blocks, max(1, values // VALUES_PER_THREAD))
        bounds = np.linspace(0, blocks, threads + 1).astype(int)
        self._shares = list(pairwise(bounds.tolist()))
        self._sums = np.empty((2, blocks, 4 * lanes))
        self._scratch = np.empty((threads, grid.shape[1] * (lanes + 1)))
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def advance(self, times: FloatArray) -> None:
        """See `Evolution.advance`."""
        stepper = self._stepper
        assert isinstance(stepper, NumbaStepper)
        known, threads = len(self._times), len(self._shares)
        ends = np.concatenate([self._times, times])
        history = np.empty((threads, len(ends), len(self._history[0])))
        history[:, :known] = self._history
        meeting = Meeting(self._sums, counters(threads), give_way_address())

        def take(thread: int) -> Taken:
            coefficients, scratch = self._closure.coefficients, self._scratch[thread]
            result: Taken = march(
                ends, history[thread], known, coefficients, self._field, *stepper.buffers, scratch, meeting, thread,
                *self._shares[thread],
            )  # fmt: skip
            return result

        with uninterrupted():  # threads wait for each other
            taken, end, rate = self._side_by_side(take, meeting)
        if taken % 2:
            stepper.accept()
        kept = slice(max(0, known + taken - MEMORY), known + taken)
        self._times, self._history = ends[kept].tolist(), list(history[0, kept])
        if end == LONG_STEP:
            self._check_step(rate, ends[known + taken] - ends[known + taken - 1])
        self.check()

    def _side_by_side(self, take: Callable[[int], Taken], meeting: Meeting) -> Taken:
        """Have all threads take the steps; what the first one says."""
        try:
            others = [self._pool.submit(take, thread) for thread in range(1, len(self._shares))] if self._pool else []
            taken = take(0)
            for other in others:
                other.result()
        except BaseException:  # such as a thread that the system does not start: the others need not wait for it
            meeting.arrived[:] = np.iinfo(np.int64).max
            raise
        return taken


def make_evolution(
    problem: Problem, closure: Closure, grid: Grid, make_stepper: MakeStepper, worst_norm: float
) -> Evolution:
    """The compiled steps where there are any."""
    if make_stepper is NumbaStepper:
        return MarchingEvolution(problem, closure, grid, NumbaStepper, worst_norm)
    return Evolution(problem, closure, grid, make_stepper, worst_norm)


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def march(  # type: ignore[no-untyped-def]
    ends, history, known, closure, field, current, trial, scratch, meeting, thread, first_block, end_block
):
    """Take steps as `Evolution` does; all threads call this at once, each for its own blocks.

    Parameters
    ----------
    ends : ndarray, shape (known + steps,)
        Times that have been reached, then the ends of the steps to take.
    history : ndarray, shape (known + steps, d1 + 3)
        q, r, E[w^2] and the mass at these times; filled in, by every thread for itself.
    known : int
        How many of them are known.
    closure : Coefficients
    field : Field
    current, trial : ndarray, shape (blocks * cells * lanes,)
        The density, and room for the next one; they take turns.
    scratch : ndarray
        Working space of `midpoint_step`.
    meeting : Meeting
    thread, first_block, end_block : int
        Number of this thread, and its blocks.

    Returns
    -------
    taken : int
        Steps that were taken.
    end : int
        `DONE`, `LONG_STEP` or `BLOWN_UP`.
    rate : float
        The relaxation rate that is too fast for the next step.
    """
    d1, lanes = field.u.shape[1], field.lanes
    guess, half = np.empty(d1 + 3), np.empty(d1 + 3)
    a, b = np.empty(field.square_steps.size), np.empty((end_block - first_block) * lanes)
    size = lanes * field.rows.shape[1]
    current, trial = current[first_block * size : end_block * size], trial[first_block * size : end_block * size]
    own = first_block * lanes
    meetings = 0
    for step in range(known, ends.size):
        attempts = 1 if step >= MEMORY else START_ITERATIONS
        first = step - MEMORY if step >= MEMORY else max(0, step - 2)
        _extrapolate(ends[first:step], history[first:step], ends[step], guess)
        dt = ends[step] - ends[step - 1]
        for _ in range(attempts):
            for j in range(d1 + 3):
                half[j] = 0.5 * (history[step - 1, j] + guess[j])
            rate = _attempt(half, dt, closure, field, own, current, trial, scratch, a, b)
            if dt * rate > LONGEST_STEP:
                return step - known, LONG_STEP, rate
            meetings += 1
            sums = meeting.sums[meetings % 2]
            for block in range(first_block, end_block):
                _sums_of_block(trial, numba.uint64(block - first_block), field.rows, sums[block], lanes)
            meet(meeting.arrived, thread, meetings, meeting.give_way)
            _moments(sums, field, guess)
        history[step] = guess
        current, trial = trial, current
        if not abs(guess[d1 + 1] - 1.0) <= field.worst_norm:
            return step + 1 - known, BLOWN_UP, 0.0
    return ends.size - known, DONE, 0.0


@numba.njit(inline="always", error_model="numpy")
def _extrapolate(times, values, end, result):  # type: ignore[no-untyped-def]
    """The polynomial through the values at the times, at another time."""
    result[:] = 0.0
    for i in range(times.size):
        factor = 1.0
        for j in range(times.size):
            if j != i:
                factor *= (end - times[j]) / (times[i] - times[j])
        for k in range(result.size):
            result[k] += factor * values[i, k]


@numba.njit(inline="always", error_model="numpy")
def _attempt(half, dt, closure, field, own, current, trial, scratch, a, b):  # type: ignore[no-untyped-def]
    """Solve a step with coefficients that belong to moments; the relaxation rate is returned."""
    d1 = half.size - 3
    g = drift_and_diffusion(
        closure.expectation,
        half[:d1],
        closure.centering,
        closure.batch_size,
        closure.learning_rate,
        closure.diffusion_factors,
    )
    diffusion = 0.5 * g[d1]
    bracket = closure.learning_rate * half[d1] - diffusion
    for k in range(d1):
        bracket += half[k] * g[k]
    rate = max(abs(bracket), diffusion)
    if dt * rate > LONGEST_STEP:
        return rate
    bracket -= 2.0 * max(bracket, 0.0) * (half[d1 + 1] - 1.0)
    D = max(diffusion, LEAST_DIFFUSION)
    for i in range(a.size):
        a[i] = (bracket * field.square_steps[i] - closure.learning_rate * field.potential_steps[i]) / D
    for n in range(b.size):
        tilt = 0.0
        for k in range(d1):
            tilt += field.u[own + n, k] * g[k]
        b[n] = -tilt * field.h / D
    cells = numba.uint64(a.size + 1)
    blocks, lanes = numba.uint64(b.size // field.lanes), numba.uint64(field.lanes)
    midpoint_step(current, trial, scratch, a, b, 0.5 * dt * D / (field.h * field.h), cells, blocks, lanes)
    return rate


@numba.njit(inline="always", error_model="numpy")
def _moments(sums, field, result):  # type: ignore[no-untyped-def]
    """q, r, E[w^2] and the mass from the sums of all blocks."""
    d1, lanes = field.u.shape[1], field.lanes
    result[:] = 0.0
    for block in range(sums.shape[0]):
        for lane in range(lanes):
            n = block * lanes + lane
            for k in range(d1):
                result[k] += field.u_weight[n] * field.u[n, k] * sums[block, lane]
            for j in range(3):
                result[d1 + j] += field.u_weight[n] * sums[block, (j + 1) * lanes + lane]


@numba.njit(error_model="numpy", cache=True, nogil=True, fastmath={"contract"})
def _sums_of_block(P, block, rows, sums, lanes):  # type: ignore[no-untyped-def]
    """Sums over cells, weighted with each row, for all lanes of a block."""
    if lanes == NARROW:
        _weighted_sums(P, block, rows, sums, NARROW)
    else:
        _weighted_sums(P, block, rows, sums, WIDE)


@numba.njit(inline="always", error_model="numpy")
def _weighted_sums(P, block, rows, sums, lanes):  # type: ignore[no-untyped-def]
    """See `_sums_of_block`; `lanes` is a constant."""
    width, cells = numba.uint64(lanes), numba.uint64(rows.shape[1])
    nothing = spread(0.0, lanes)
    first, force, second, mass = nothing, nothing, nothing, nothing
    for i in range(cells):
        p = load(P, (block * cells + i) * width, lanes)
        first = first + rows[0, i] * p
        force = force + rows[1, i] * p
        second = second + rows[2, i] * p
        mass = mass + rows[3, i] * p
    store(sums, numba.uint64(0), first)
    store(sums, width, force)
    store(sums, numba.uint64(2) * width, second)
    store(sums, numba.uint64(3) * width, mass)
