"""One second-order solution of the Fokker-Planck equation, advanced from output time to output time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.density.grid import Grid, initial_density
from meanfield.density.steppers import MakeStepper
from meanfield.errors import BlowUpError
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.typing import FloatArray

MEMORY = 4
"""Steps from which q and r at the end of the next one are extrapolated."""

START_ITERATIONS = 4
"""Solves of each step before there are so many."""

LONGEST_STEP = 2.0
"""Largest step in units of the relaxation time; beyond it the midpoint rule mirrors what it should damp."""


class LongStepsError(BlowUpError):
    """Time steps are too long for the dynamics."""


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
        """E[w phi(w)]."""
        return float(self.vector[-3])

    @property
    def norm(self) -> float:
        """E[w^2]."""
        return float(self.vector[-2])


class Evolution:
    """P_t on one grid.

    Each step is the implicit midpoint rule: the coefficients g, Lambda and G = q.g + tau r - Lambda/2 belong to the
    mean of q and r over the start and the end of the step. The end is extrapolated by a cubic from the last steps, so
    that a step costs one solve; the first steps, which lack them, iterate. Both differ from the midpoint rule by less
    than dt^3, so that the error is c dt^2 + O(dt^4), as Richardson extrapolation wants it.

    Parameters
    ----------
    problem : Problem
    closure : Closure
        g and Lambda of the problem.
    grid : Grid
        Cells and nodes.
    make_stepper : MakeStepper
    worst_norm : float
        E[w^2] = 1 is conserved by the equation; a solution that misses it by more has blown up.
    """

    def __init__(
        self,
        problem: Problem,
        closure: Closure,
        grid: Grid,
        make_stepper: MakeStepper,
        worst_norm: float,
    ) -> None:
        self.grid = grid
        self._closure = closure
        self._worst_norm = worst_norm
        self._tau = problem.model.learning_rate
        self._stepper = make_stepper(grid, initial_density(problem, grid))
        w = grid.centres
        phi = problem.prior.force(w)
        self._rows = grid.h * np.array([w, w * phi, w * w, np.ones_like(w)])
        self._square_steps = 0.5 * np.diff(w * w)
        self._potential_steps = problem.prior.potential_steps(w)
        self._times = [0.0]
        self._history = [self._moments().vector]

    @property
    def moments(self) -> Moments:
        """Averages over the current density."""
        return Moments(self._history[-1])

    @property
    def density(self) -> FloatArray:
        """P(w|u), shape (nodes, cells)."""
        return self._stepper.density()

    def advance(self, times: FloatArray) -> None:
        """Take steps that end at `times`.

        Raises
        ------
        BlowUpError
            If the solution is no longer finite or E[w^2] is far from 1.
        """
        for end in times.tolist():
            self._step(end)
            self.check()

    def _step(self, end: float) -> None:
        dt = end - self._times[-1]
        start = self._history[-1]
        guess, attempts = self._guess(end)
        for _ in range(attempts):
            self._attempt(Moments(0.5 * (start + guess)), dt)
            guess = self._moments().vector
        self._stepper.accept()
        self._history = [*self._history[1 - MEMORY :], guess]
        self._times = [*self._times[1 - MEMORY :], end]

    def _guess(self, end: float) -> tuple[FloatArray, int]:
        """The moments at the end of the next step, and how often to solve it."""
        if len(self._times) < MEMORY:
            return _extrapolated(self._times[-2:], self._history[-2:], end), START_ITERATIONS
        return _extrapolated(self._times, self._history, end), 1

    def _attempt(self, half: Moments, dt: float) -> None:
        g, diffusion = self._closure(half.q)
        bracket = float(half.q @ g + self._tau * half.r - 0.5 * diffusion)
        self._check_step(max(abs(bracket), 0.5 * diffusion), dt)
        # E[w^2] - 1 grows like exp(2 t bracket). It vanishes in the limit, so this changes nothing there, but it turns
        # the growth of its discretisation error under a strong prior into decay.
        bracket -= 2.0 * max(bracket, 0.0) * (half.norm - 1.0)
        pull = bracket * self._square_steps - self._tau * self._potential_steps
        tilt = -(self.grid.u @ g) * self.grid.h
        self._stepper.attempt(pull, tilt, 0.5 * diffusion, dt)

    def _check_step(self, rate: float, dt: float) -> None:
        """Refuse steps in which even the slowest modes of the density would swing to the other side."""
        if dt * rate > LONGEST_STEP:
            raise LongStepsError(
                self._times[-1],
                f"the density relaxes at a rate of {rate:.3g}, too fast for time steps of {dt:.3g}",
                "raise density.steps, or lower model.learning_rate",
            )

    def _moments(self) -> Moments:
        first, weighted_force, second, mass = self._stepper.sums(self._rows)
        weight = self.grid.u_weight
        q = (weight * first) @ self.grid.u
        return Moments(np.array([*q, weight @ weighted_force, weight @ second, weight @ mass]))

    def check(self) -> None:
        """Stop where the numbers mean nothing any more, or never did on these cells.

        Raises
        ------
        BlowUpError
            If the solution is not finite or E[w^2] is far from 1.
        """
        now = self.moments
        if abs(now.norm - 1) <= self._worst_norm and np.all(np.isfinite(now.vector)):
            return
        raise BlowUpError(
            self._times[-1],
            f"E[w^2] = {now.norm:.4g} in the density, where the dynamics conserves 1",
            "lower model.learning_rate (or raise model.batch_size), or raise density.steps and density.cells",
        )


def _extrapolated(times: list[float], values: list[FloatArray], end: float) -> FloatArray:
    """The polynomial through the values at the times, at another time."""
    result = np.zeros_like(values[0])
    for i, (time, value) in enumerate(zip(times, values, strict=True)):
        factor = 1.0
        for j, other in enumerate(times):
            if j != i:
                factor *= (end - other) / (time - other)
        result += factor * value
    return result
