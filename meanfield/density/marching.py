"""The steps of an evolution in one compiled loop: what small grids need, where Python costs more than the solution."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from meanfield.closures import Closure
from meanfield.closures.closure import drift_and_diffusion
from meanfield.density.evolution import LONGEST_STEP, MEMORY, START_ITERATIONS, Evolution
from meanfield.density.grid import Grid
from meanfield.density.kernel import midpoint_step
from meanfield.density.lanes import LANES, load, spread, store
from meanfield.density.steppers import LEAST_DIFFUSION, MakeStepper, NumbaStepper
from meanfield.problem import Problem
from meanfield.typing import FloatArray

DONE, LONG_STEP, BLOWN_UP = range(3)
"""How a march can end."""


class Field(NamedTuple):
    """What stays the same in all steps.

    Parameters
    ----------
    u : ndarray, shape (blocks * LANES, d1)
        Nodes; those that fill the last block have no weight.
    u_weight : ndarray, shape (blocks * LANES,)
    rows : ndarray, shape (4, cells)
        h times w, w phi(w), w^2 and 1.
    square_steps, potential_steps : ndarray, shape (cells - 1,)
        Differences of w^2/2 and Phi between neighbours.
    h : float
    worst_norm : float
        Error of E[w^2] = 1 at which to stop.
    """

    u: FloatArray
    u_weight: FloatArray
    rows: FloatArray
    square_steps: FloatArray
    potential_steps: FloatArray
    h: float
    worst_norm: float


class MarchingEvolution(Evolution):
    """An `Evolution` whose steps are compiled, on one thread."""

    def __init__(
        self, problem: Problem, closure: Closure, grid: Grid, make_stepper: type[NumbaStepper], worst_norm: float
    ) -> None:
        super().__init__(problem, closure, grid, make_stepper, worst_norm)
        nodes, padded = len(grid.u_weight), -(-len(grid.u_weight) // LANES) * LANES
        u, u_weight = np.zeros((padded, grid.u.shape[1])), np.zeros(padded)
        u[:nodes], u_weight[:nodes] = grid.u, grid.u_weight
        u[nodes:] = grid.u[-1]
        self._field = Field(u, u_weight, self._rows, self._square_steps, self._potential_steps, grid.h, worst_norm)

    def advance(self, times: FloatArray) -> None:
        """See `Evolution.advance`."""
        stepper = self._stepper
        assert isinstance(stepper, NumbaStepper)
        known = len(self._times)
        ends = np.concatenate([self._times, times])
        history = np.concatenate([self._history, np.empty((len(times), len(self._history[0])))])
        taken, end, rate = march(ends, history, known, self._closure.coefficients, self._field, *stepper.buffers)
        if taken % 2:
            stepper.accept()
        kept = slice(max(0, known + taken - MEMORY), known + taken)
        self._times, self._history = ends[kept].tolist(), list(history[kept])
        if end == LONG_STEP:
            self._check_step(rate, ends[known + taken] - ends[known + taken - 1])
        self._check()


def make_evolution(
    problem: Problem, closure: Closure, grid: Grid, make_stepper: MakeStepper, worst_norm: float
) -> Evolution:
    """The evolution that is fastest on this grid; the choice does not depend on the machine."""
    if make_stepper is NumbaStepper and NumbaStepper.most_workers(grid) == 1:
        return MarchingEvolution(problem, closure, grid, NumbaStepper, worst_norm)
    return Evolution(problem, closure, grid, make_stepper, worst_norm)


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def march(ends, history, known, closure, field, current, trial, scratch):  # type: ignore[no-untyped-def]
    """Take steps as `Evolution` does.

    Parameters
    ----------
    ends : ndarray, shape (known + steps,)
        Times that have been reached, then the ends of the steps to take.
    history : ndarray, shape (known + steps, d1 + 3)
        q, r, E[w^2] and the mass at these times; filled in.
    known : int
        How many of them are known.
    closure : Coefficients
    field : Field
    current, trial : ndarray, shape (blocks * cells * LANES,)
        The density, and room for the next one; they take turns.
    scratch : ndarray
        Working space of `midpoint_step`.

    Returns
    -------
    taken : int
        Steps that were taken.
    end : int
        `DONE`, `LONG_STEP` or `BLOWN_UP`.
    rate : float
        The relaxation rate that is too fast for the next step.
    """
    d1 = field.u.shape[1]
    guess, half, next_moments = np.empty(d1 + 3), np.empty(d1 + 3), np.empty(d1 + 3)
    a, b = np.empty(field.square_steps.size), np.empty(field.u_weight.size)
    sums = np.empty(4 * LANES)
    for step in range(known, ends.size):
        attempts = 1 if step >= MEMORY else START_ITERATIONS
        first = step - MEMORY if step >= MEMORY else max(0, step - 2)
        _extrapolate(ends[first:step], history[first:step], ends[step], guess)
        dt = ends[step] - ends[step - 1]
        for _ in range(attempts):
            for j in range(d1 + 3):
                half[j] = 0.5 * (history[step - 1, j] + guess[j])
            rate = _attempt(half, dt, closure, field, current, trial, scratch, a, b)
            if dt * rate > LONGEST_STEP:
                return step - known, LONG_STEP, rate
            _moments(trial, field, sums, next_moments)
            guess[:] = next_moments
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
def _attempt(half, dt, closure, field, current, trial, scratch, a, b):  # type: ignore[no-untyped-def]
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
            tilt += field.u[n, k] * g[k]
        b[n] = -tilt * field.h / D
    cells = numba.uint64(a.size + 1)
    blocks = numba.uint64(b.size // LANES)
    midpoint_step(current, trial, scratch, a, b, 0.5 * dt * D / (field.h * field.h), cells, blocks)
    return rate


@numba.njit(inline="always", error_model="numpy")
def _moments(P, field, sums, result):  # type: ignore[no-untyped-def]
    """q, r, E[w^2] and the mass."""
    d1, cells = field.u.shape[1], field.rows.shape[1]
    result[:] = 0.0
    for block in range(field.u_weight.size // LANES):
        _sums_of_block(P, numba.uint64(block), field.rows, numba.uint64(cells), sums)
        for lane in range(LANES):
            n = block * LANES + lane
            for k in range(d1):
                result[k] += field.u_weight[n] * field.u[n, k] * sums[lane]
            for j in range(3):
                result[d1 + j] += field.u_weight[n] * sums[(j + 1) * LANES + lane]


@numba.njit(error_model="numpy", cache=True, nogil=True, fastmath={"contract"})
def _sums_of_block(P, block, rows, cells, sums):  # type: ignore[no-untyped-def]
    """Sums over cells, weighted with each row, for all lanes of a block."""
    lanes = numba.uint64(LANES)
    first, force, second, mass = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
    for i in range(cells):
        p = load(P, (block * cells + i) * lanes)
        first = first + rows[0, i] * p
        force = force + rows[1, i] * p
        second = second + rows[2, i] * p
        mass = mass + rows[3, i] * p
    store(sums, numba.uint64(0), first)
    store(sums, lanes, force)
    store(sums, numba.uint64(2) * lanes, second)
    store(sums, numba.uint64(3) * lanes, mass)
