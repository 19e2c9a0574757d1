"""One solution on a given number of points, at the output times."""

from __future__ import annotations

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.mckean_vlasov.closure_tiles import TiledClosure, tiled_closure_of
from meanfield.mckean_vlasov.closures import values_at_time, values_of
from meanfield.mckean_vlasov.density.lagrangian.budget import CALL_WORK, GRADED_WORK, SPILLED, SPILLED_POINTS, Budget
from meanfield.mckean_vlasov.density.lagrangian.coupling import Coupling
from meanfield.mckean_vlasov.density.lagrangian.marching import (
    BLOWN_UP,
    GROW,
    STOPPED,
    STUCK,
    State,
    advance,
    interpolate,
)
from meanfield.mckean_vlasov.density.lagrangian.points import Frames, graded, packed, unpacked
from meanfield.mckean_vlasov.density.start import initial_work, kinks_of
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.compiled.callbacks import Callback
from meanfield.numerics.compiled.scalar_functions import compile_loop, compile_scalar, is_kept
from meanfield.numerics.quantile_frame.frame import LANES, ROOT_TWO_PI, Frame, Mesh
from meanfield.numerics.quantile_frame.linearised import Elimination, Nodal
from meanfield.numerics.quantile_frame.rosenbrock import ORDER, STAGES
from meanfield.typing import FloatArray

WORK_PER_CALL = 2e6
"""Points times steps between two looks at signals and at the budget, some tenth of a second."""


class StuckError(BlowUpError):
    """Error of points that no step however short keeps in order."""


class DivergedError(BlowUpError):
    """Error of a norm that grows beyond bounds, on however many points."""


class ExpensiveError(BlowUpError):
    """Error of a level that takes more work than its budget has left.

    Attributes
    ----------
    level : Level
        What was reached of it.
    """

    level: Level


class Level:
    """Moments and points at the output times; NaN where they were not reached.

    Parameters
    ----------
    points : int
        Number of points of each node.
    tolerance : float
        Root mean square error of w that a step may make.
    budget : Budget
        What is left for the steps of this level and of others.

    Attributes
    ----------
    points : int
    tolerance : float
    limit : Limit
    moments : ndarray, shape (outputs, overlaps + 3)
        q, r, E[w^2] and the mass by the quadrature over points.
    zeta : ndarray, shape (nodes, points)
        Coordinates of the points along the curves.
    X : ndarray, shape (outputs, nodes, points)
        Weights of the points.
    given_u : ndarray, shape (3, outputs, nodes)
        Averages of w, w phi(w) and w^2 at every node.
    calls : int
        Number of closures that were called in Python.
    least_noise : ndarray, shape (phases,)
        Least D = Lambda/2 that was met in each phase, relative to the factor of the force; infinite if it has none.
    """

    def __init__(self, limit: Limit, frames: Frames, points: int, tolerance: float, budget: Budget) -> None:
        self.points, self.tolerance, self.limit, self._budget = points, tolerance, limit, budget
        self.frames, self.calls = frames, 0
        u, u_weight = frames.nodes.solved
        self.nodes = len(u)
        self.zeta, spacing, X = frames.start(limit, points)
        self._zeta, self._spacing = packed(self.zeta), packed(spacing)
        self._size = size = self._zeta.size
        padded = -(-self.nodes // LANES) * LANES
        filled = np.minimum(np.arange(padded), self.nodes - 1)
        self._factors, self._u_weight = limit.factors(u[filled]), np.zeros(padded)
        self._u_weight[: self.nodes] = u_weight
        start = packed(X)
        self._state = State(
            np.array([0.0, 0.0, 0.0, GROW, np.inf]),
            np.zeros(2, dtype=np.int64),
            start.copy(),
            start.copy(),
            start.copy(),
            np.zeros((STAGES, size)),
            np.zeros((4, padded)),
            np.zeros((3, padded)),
            *(Nodal(*(np.zeros(padded) for _ in Nodal._fields)) for _ in range(2)),
        )
        self._clock, self._counts = self._state.clock, self._state.counts
        self.least_noise = np.full(len(limit.phases), np.inf)
        self._averages = np.empty(limit.overlaps + 3)
        self._enter(0, limit.initial_arguments)
        outputs = len(limit.times)
        self.moments = np.full((outputs, limit.overlaps + 3), np.nan)
        self.X = np.full((outputs, self.nodes, points), np.nan)
        self.given_u = np.full((3, outputs, self.nodes), np.nan)

    def _enter(self, number: int, arguments: FloatArray) -> None:
        """Take the coefficients of a phase, which begins with these arguments of its closure."""
        self._number, size = number, self._size
        phase = self.limit.phases[number]
        mesh = _mesh(phase, self.frames, self._zeta, self._spacing, self.points)
        coupling, self._callback = self._couple(phase)
        weight = mesh.spacing * np.exp(-0.5 * mesh.zeta**2) / ROOT_TWO_PI
        frame = Frame(mesh.zeta.copy(), np.zeros(size), weight, np.zeros(size), np.zeros(size))
        own = Elimination(*(np.zeros(size) for _ in Elimination._fields))
        if not phase.drive.moves or phase.prior.strength == 0.0:
            own = own._replace(by_rate=np.empty(0))
        self._march = tiled_closure_of(phase)[0], coupling, mesh, frame, own, self._state
        self._clock[2:] = self._first_step(phase, arguments), GROW, np.inf

    def xi(self, output: int) -> FloatArray:
        """Quantiles of the points at an output time, on the scale of the normal law, shape (nodes, points)."""
        return np.asarray(self.zeta - graded(self.X[output], self.frames.grading.terms))

    def release(self) -> None:
        """Let go of what only further steps need, which is as large as the points at dozens of output times."""
        del self._march, self._callback, self._state, self._zeta, self._spacing

    @property
    def steps(self) -> int:
        """Number of steps that were taken."""
        return int(self._counts[0])

    @property
    def time(self) -> float:
        """Time that was reached."""
        return float(self._clock[1])

    @property
    def nearest_end(self) -> float:
        """Least |xi| of the last points of a node at an output time that was reached; infinite if none was."""
        X = self.X[:, :, [0, -1]]
        ends = np.abs(self.zeta[:, [0, -1]] - graded(X, self.frames.grading.terms))
        return float(np.min(ends, initial=np.inf, where=np.isfinite(X)))

    @property
    def work(self) -> float:
        """Points times steps that were tried, in units of those of few points without grading."""
        size = self._size
        unit = GRADED_WORK if self.frames.grading.terms.size else 1.0
        return unit * (1.0 + SPILLED * min(1.0, size / SPILLED_POINTS)) * size * self.attempts

    @property
    def attempts(self) -> int:
        """Number of steps that were tried."""
        return int(self._counts.sum())

    def _couple(self, phase: Limit) -> tuple[Coupling, Callback]:
        """Nodes in lanes, and the callback for a closure that is not compiled."""
        q, values = np.empty(phase.overlaps + phase.free_norm), np.empty(phase.judged)
        closure, reach = tiled_closure_of(phase)
        is_pilot = self._budget.is_pilot
        if is_pilot and isinstance(closure, TiledClosure):
            reach = -1.0  # the closure is called everywhere

        def call() -> bool:
            values[:] = values_of(phase, q)
            self.calls += 1
            return not self._budget.spend(0.0 if is_pilot else CALL_WORK)  # pilots have these calls counted

        callback = Callback(call)
        nodes = *self._factors, phase.mean_variance, phase.overlaps, self._u_weight
        numbers = float(phase.learning_rate), self.tolerance, phase.initial_norm, float(reach)
        return Coupling(*nodes, *numbers, phase.drive, phase.drive.room, callback.address, q, values), callback

    def _first_step(self, phase: Limit, arguments: FloatArray) -> float:
        """Length of the first step that is tried in a phase."""
        values = values_at_time(phase, phase.start, arguments)
        force = float(np.abs(phase.prior.force(np.array([1.0, 3.0]))).max())
        rate = phase.largest_variance * float(np.abs(values).sum()) + phase.learning_rate * force
        stop = float(self.limit.times[-1])
        # A fraction of the time in which the fastest coefficient acts, which follows the error that steps may make:
        # solutions of different accuracy must not share steps that only their growth limits.
        first = 2e-3 * self.tolerance ** (1.0 / ORDER)
        return min(stop, first / rate if rate > 0 else stop)

    def reach(self, index: int) -> None:
        """Advance to an output time; those before it must have been reached.

        Raises
        ------
        StuckError, ExpensiveError
            If the points cannot be advanced, or too slowly.
        """
        time = float(self.limit.times[index])
        # The step over an output time is taken again to end there: points within a long step may be out of order.
        for _ in range(8):
            self._advance(time)
            if self._interpolate(time):
                break
            self._return(time)
        else:
            raise self._stuck()
        self.moments[index] = self._averages if index > 0 else self._at_start(self._averages)
        sums = self._state.sums[:, : self.nodes]
        self.given_u[:, index] = sums[1:] / sums[0]
        self.X[index] = unpacked(self._state.stage, self.nodes, self.points)

    def _interpolate(self, time: float) -> bool:
        """Points at a time within the last step and their averages; whether they are in order."""
        _, coupling, mesh, frame, _, state = self._march
        return bool(interpolate(time, mesh, frame, coupling, state, self._averages))

    def _at_start(self, averages: FloatArray) -> FloatArray:
        """The averages with what is known at t = 0, which errors of points and of nodes in u do not touch."""
        limit, work = self.limit, initial_work(self.limit)
        q = limit.initial_arguments[: limit.overlaps]
        return np.array([*q, averages[-3] if np.isnan(work) else work, limit.initial_norm, averages[-1]])

    def _return(self, time: float) -> None:
        """Go back to the start of the last step, for one that ends at a time within it."""
        clock = self._clock
        clock[1:4] = clock[0], time - clock[0], 1.0
        self._state.end[:] = self._state.start

    def _advance(self, time: float) -> None:
        """Advance to a time, from phase to phase."""
        for number in range(self._number + 1, len(self.limit.phases)):
            start = self.limit.phases[number].start
            if time < start:
                break
            self._take_steps(start)
            self._interpolate(start)
            self._clock[0] = self._clock[1]
            self._state.start[:] = self._state.end
            self._enter(number, self.limit.arguments_of(self._averages))
        self._take_steps(time)

    def _take_steps(self, time: float) -> None:
        """Take steps until the last one has passed a time, or to the end of the phase."""
        steps = 1 if self._budget.is_pilot else max(1, int(WORK_PER_CALL / self._size))
        while self._clock[1] < time:
            before = self.work
            end = advance(time, steps, *self._march)
            self.least_noise[self._number] = self._clock[4]
            self._callback.reraise()
            if not self._budget.spend(self.work - before):
                raise self._expensive()
            if end == BLOWN_UP:
                raise self._diverged()
            if end in (STUCK, STOPPED):
                raise self._stuck()

    def _expensive(self) -> ExpensiveError:
        error = ExpensiveError(
            float(self._clock[1]),
            f"the density took more than half a minute of work, by {self.attempts} steps of {self.points} points last",
            f"raise density.tolerance, lower time.stop, or {self.limit.remedy_if_too_fast}",
        )
        error.level = self
        return error

    def _diverged(self) -> DivergedError:
        return DivergedError(
            float(self._clock[1]),
            "E[w^2] grows beyond all bounds, and is infinite in finite time",
            self.limit.remedy_if_norm_drifts,
        )

    def _stuck(self) -> StuckError:
        return StuckError(
            float(self._clock[1]),
            f"no time step however short keeps {self.points} points of the density in order",
            f"raise density.tolerance, {self.limit.remedy_if_too_fast}, or take density.scheme = 'eulerian'",
        )


def _mesh(limit: Limit, frames: Frames, zeta: FloatArray, spacing: FloatArray, points: int) -> Mesh:
    """The mesh of a limit in the layout of the kernel."""
    prior = limit.prior
    force = prior.functions.unit_force
    loop = compile_loop(force) if is_kept(force) else 0
    constants = compile_scalar(force), float(prior.strength), points, loop
    return Mesh(zeta, spacing, frames.grading.terms, kinks_of(prior), *constants)
