"""One second-order solution of the Fokker-Planck equation, advanced from output time to output time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.mckean_vlasov.closures import compiled_closure_of, values_of
from meanfield.mckean_vlasov.density.level_search import LongStepsError
from meanfield.mckean_vlasov.density.marching import (
    EXTRAPOLATED_STEPS,
    LONG_STEP,
    Calls,
    Field,
    Meeting,
    Room,
    Taken,
    march,
)
from meanfield.mckean_vlasov.density.start import initial_density
from meanfield.mckean_vlasov.density.sums import moments_of
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.compiled.callbacks import Callback
from meanfield.numerics.compiled.thread_barrier import counters, give_way_address
from meanfield.numerics.compiled.vectors import WIDE_LANES, lanes_for
from meanfield.numerics.finite_volumes.grid import Grid, MakeStep
from meanfield.numerics.finite_volumes.kernel import pack, unpack
from meanfield.process.cores import threads_of_loops
from meanfield.process.interrupts import uninterrupted
from meanfield.typing import FloatArray, IntArray

VALUES_PER_THREAD = 20_000
"""Least number of values of P per thread: they take 20 us, and starting threads takes 50 us for an output."""


@dataclass(frozen=True)
class Moments:
    """Averages over the density: q, r, E[w^2] and the total mass, in one vector so that steps can combine them."""

    vector: FloatArray

    @property
    def q(self) -> FloatArray:
        """Overlaps E[u w], shape (d1,)."""
        return self.vector[:-3]

    @property
    def r(self) -> float:
        """Average E[w phi(w)]."""
        return float(self.vector[-3])

    @property
    def norm(self) -> float:
        """Average E[w^2]."""
        return float(self.vector[-2])


class Evolution:
    """Density P_t on one grid, advanced by the steps of `meanfield.mckean_vlasov.density.marching`.

    Steps are compiled, on several threads where there is enough to do. Blocks of nodes do not depend on each other, and
    every thread adds up the moments of all blocks in the same order: numbers do not depend on the number of threads.

    Parameters
    ----------
    grid : Grid
        Cells and nodes.
    worst_norm : float
        Largest relative deviation of E[w^2] where the equation conserves it; a larger one means that the solution blew
        up.
    make_step : MakeStep, optional
        Other software for the steps, in place of our kernel.
    """

    def __init__(self, limit: Limit, grid: Grid, worst_norm: float, make_step: MakeStep | None = None) -> None:
        self.grid = grid
        self._limit = limit
        self._rows, self._places = _rows_of(limit.factors(grid.u)[1])
        self._current = pack(initial_density(limit, grid)[self._rows])
        self._trial = self._current.copy()
        self._worst_norm, self._step = worst_norm, make_step and make_step(grid)
        self._waiting: Sequence[object] = ()
        self._make_threads(alone=make_step is not None)
        self._enter(limit)
        self._times, self._history = [0.0], [self._moments()]

    def _enter(self, phase: Limit) -> None:
        """Take the coefficients of a phase."""
        self._phase = phase
        self._field = _field(phase, self.grid, self._worst_norm, self._rows, self._places)
        self._make_calls()

    def _make_threads(self, alone: bool) -> None:
        """Share the blocks among threads, with working space for each."""
        blocks, cells, lanes = self._current.shape
        threads = 1 if alone else min(threads_of_loops(), blocks, max(1, self._current.size // VALUES_PER_THREAD))
        bounds = np.linspace(0, blocks, threads + 1).astype(int)
        self._shares = list(pairwise(bounds.tolist()))
        self._rooms = [
            Room(np.empty(cells - 1), np.empty((end - first) * lanes), np.empty(cells * (lanes + 1)))
            for first, end in self._shares
        ]
        self._sums = np.empty((2, blocks, 4 * lanes))
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def _make_calls(self) -> None:
        """Callbacks for a closure or a step that is not compiled."""
        overlaps = self._phase.overlaps
        self._closure, reach = compiled_closure_of(self._phase)
        works = self._call_closure if reach < np.inf else None, self._call_step if self._step else None
        self._callbacks = [Callback(work) if work else None for work in works]
        closure, step = (callback.address if callback else 0 for callback in self._callbacks)
        stopped = np.zeros(1, dtype=np.int64)
        arguments, values = np.empty(overlaps + self._phase.free_norm), np.empty(self._phase.judged)
        self._calls = Calls(closure, reach, arguments, values, step, np.empty(3), stopped)

    @property
    def moments(self) -> Moments:
        """Averages over the current density."""
        return Moments(self._history[-1])

    @property
    def density(self) -> FloatArray:
        """Current density P(w|u), shape (nodes, cells)."""
        return unpack(self._current, len(self._rows))[self._places]

    def advance(self, times: FloatArray) -> None:
        """Take steps that end at `times`.

        Raises
        ------
        BlowUpError
            If steps are too long, the solution is no longer finite or E[w^2] is far from 1.
        """
        corners = self._limit.corners
        for piece in np.split(times, np.searchsorted(times, corners, side="right")):
            taken = 0
            while taken < len(piece):  # a signal that a handler ignores stops steps in Python for a moment
                taken += self._march(piece[taken:])
                self.check()
            if (now := self._times[-1]) in corners:  # q and r bend there, and are not extrapolated across
                if self._limit.phase_at(now) is not self._phase:
                    self._enter(self._limit.phase_at(now))
                self._times, self._history = [now], [self._moments()]

    def _march(self, times: FloatArray) -> int:
        """Take steps until one is refused, and return how many were taken."""
        known, threads = len(self._times), len(self._shares)
        ends = np.concatenate([self._times, times])
        history = np.empty((threads, len(ends), len(self._history[0])))
        history[:, :known] = self._history
        meeting = Meeting(self._sums, counters(threads), give_way_address())
        buffers = self._current.reshape(-1), self._trial.reshape(-1)

        def take(thread: int) -> Taken:
            result: Taken = march(
                ends, history[thread], known, self._closure, self._calls, self._field, *buffers, self._rooms[thread],
                meeting, thread, *self._shares[thread],
            )  # fmt: skip
            return result

        with uninterrupted() as self._waiting:  # threads wait for each other
            taken, end, rate = self._side_by_side(take, meeting)
        if taken % 2:
            self._current, self._trial = self._trial, self._current
        kept = slice(max(0, known + taken - EXTRAPOLATED_STEPS), known + taken)
        self._times, self._history = ends[kept].tolist(), list(history[0, kept])
        for callback in self._callbacks:
            if callback:
                callback.reraise()
        if end == LONG_STEP:
            raise self._long_step(rate, ends[known + taken] - ends[known + taken - 1])
        return taken

    def _side_by_side(self, take: Callable[[int], Taken], meeting: Meeting) -> Taken:
        """Have all threads take the steps, and return the result of the first one."""
        try:
            others = [self._pool.submit(take, thread) for thread in range(1, len(self._shares))] if self._pool else []
            taken = take(0)
            for other in others:
                other.result()
        except BaseException:  # such as a thread that the system does not start: the others need not wait for it
            meeting.arrived[:] = np.iinfo(np.int64).max
            raise
        return taken

    def _call_closure(self) -> bool:
        """Callback whose address is `Calls.closure`."""
        self._calls.values[:] = values_of(self._phase, self._calls.q)
        return bool(self._waiting)

    def _call_step(self) -> bool:
        """Callback whose address is `Calls.step`."""
        assert self._step is not None
        diffusion, dt, swapped = self._calls.of_step.tolist()
        nodes, room = self.grid.shape[0], self._rooms[0]
        current, trial = (self._trial, self._current) if swapped else (self._current, self._trial)
        trial[:] = pack(self._step(unpack(current, nodes), room.faces, room.tilts[:nodes], diffusion, dt))
        return bool(self._waiting)

    def _moments(self) -> FloatArray:
        """Moments of the current density."""
        result = np.empty(self._phase.overlaps + 3)
        moments_of(self._current.reshape(-1), self._field, self._sums[0], result)
        return result

    def _long_step(self, rate: float, dt: float) -> LongStepsError:
        """Error of steps that are so long that even the slowest modes of the density would change their sign."""
        return LongStepsError(
            self._times[-1],
            f"the density relaxes at a rate of {rate:.3g}, too fast for time steps of {dt:.3g}",
            f"raise density.steps, or {self._limit.remedy_if_too_fast}",
        )

    def check(self) -> None:
        """Refuse a density that is not finite or whose norm is wrong, from the start or by a blow-up.

        Raises
        ------
        BlowUpError
            If the solution is not finite or E[w^2] is far from 1.
        """
        now, kept = self.moments, self._limit.initial_norm
        if abs(now.norm / kept - 1) <= self._field.worst_norm and np.all(np.isfinite(now.vector)):
            return
        if self._limit.free_norm:
            raise BlowUpError(self._times[-1], "the density is not finite", self._limit.remedy_if_norm_drifts)
        raise BlowUpError(
            self._times[-1],
            f"E[w^2] = {now.norm:.4g} in the density, where the dynamics conserves {kept:g}",
            f"{self._limit.remedy_if_norm_drifts}, or raise density.steps and density.cells",
        )


def _rows_of(rho: FloatArray) -> tuple[IntArray, IntArray]:
    """Nodes of the rows of packed densities, and the row of each node.

    Nodes of one variance fill whole blocks, with copies of the last one.
    """
    groups = [np.flatnonzero(rho == value) for value in np.unique(rho)]
    lanes = lanes_for(len(rho)) if len(groups) == 1 else WIDE_LANES
    rows = np.concatenate([np.append(each, np.full(-len(each) % lanes, each[-1])) for each in groups])
    return rows, np.unique(rows, return_index=True)[1]


def _field(limit: Limit, grid: Grid, worst_norm: float, rows_of: IntArray, places: IntArray) -> Field:
    """Constant arrays and numbers of all steps."""
    lanes = lanes_for(len(rows_of))
    u, rho = (each[rows_of] for each in limit.factors(grid.u))
    u_weight = np.zeros(len(rows_of))
    u_weight[places] = grid.u_weight
    w = grid.centres
    rows = grid.h * np.array([w, w * limit.prior.force(w), w * w, np.ones_like(w)])
    steps = 0.5 * np.diff(w * w), limit.prior.potential_steps(w)
    rate, norm = float(limit.learning_rate), float(limit.initial_norm)
    worst = np.inf if limit.free_norm else worst_norm
    variances = np.ascontiguousarray(rho[::lanes]), limit.mean_variance
    return Field(u, u_weight, *variances, rows, *steps, grid.h, rate, limit.drive, norm, worst, lanes)
